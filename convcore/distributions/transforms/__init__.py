"""Transforms: invertible maps with the logarithm of their Jacobian determinant."""

from convcore.distributions.transforms.composition import (
    ComposeTransform,
    IndependentTransform,
    identity_transform,
)
from convcore.distributions.transforms.of_numbers import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from convcore.distributions.transforms.transform import Transform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "IndependentTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
