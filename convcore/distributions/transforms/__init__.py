"""Transforms: invertible maps with the logarithm of their Jacobian determinant."""

from convcore.distributions.transforms.composition import ComposeTransform, identity_transform
from convcore.distributions.transforms.of_numbers import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    SigmoidTransform,
    TanhTransform,
)
from convcore.distributions.transforms.transform import Transform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "SigmoidTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
