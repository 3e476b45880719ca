"""Dropout as modules: in training, a random part of what passes is zeroed."""

from __future__ import annotations

from collections.abc import Callable

from convcore._tensor import Tensor
from convcore.functions._support.arguments import number
from convcore.nn import functional
from convcore.nn.modules.module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(Module):
    _drop: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= number(type(self).__name__, "p", p) <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Drop a part of ``input`` in training; return ``input`` itself otherwise."""
        return self._drop(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zero each element with a probability and scale the others by 1 / (1 - p).

    Parameters
    ----------
    p : float
        The probability, between 0 and 1.
    inplace : bool
        Whether the input itself is changed.

    Raises
    ------
    ValueError
        ``p`` is no probability.

    References
    ----------
    G. Hinton et al., "Improving neural networks by preventing co-adaptation of feature detectors",
    2012.

    Examples
    --------
    >>> import convcore
    >>> Dropout(0.2).eval()(convcore.ones(2))
    tensor([1., 1.])
    """

    _drop = staticmethod(functional.dropout)


class Dropout1d(_DropoutNd):
    """In training, zero whole channels of (N, C, L) or (C, L); see `Dropout`."""

    _drop = staticmethod(functional.dropout1d)


class Dropout2d(_DropoutNd):
    """In training, zero whole channels of (N, C, H, W); see `Dropout`.

    References
    ----------
    J. Tompson et al., "Efficient object localization using convolutional networks", CVPR 2015,
    section 3.2.
    """

    _drop = staticmethod(functional.dropout2d)


class Dropout3d(_DropoutNd):
    """In training, zero whole channels of (N, C, D, H, W) or (C, D, H, W); see `Dropout`."""

    _drop = staticmethod(functional.dropout3d)


class AlphaDropout(_DropoutNd):
    """In training, drop elements so that their mean and variance stay; for `SELU` networks.

    Parameters
    ----------
    p, inplace
        As for `Dropout`.

    References
    ----------
    G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017, section "New dropout
    technique".
    """

    _drop = staticmethod(functional.alpha_dropout)


class FeatureAlphaDropout(_DropoutNd):
    """In training, drop whole channels as `AlphaDropout` drops elements."""

    _drop = staticmethod(functional.feature_alpha_dropout)
