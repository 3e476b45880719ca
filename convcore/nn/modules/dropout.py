"""Dropout layers: in training, random elements or channels are set to zero."""

from __future__ import annotations

from collections.abc import Callable

from convcore._tensor import Tensor
from convcore.functions._support.arguments import number
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.modules.utils import at_call

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"]


class _DropoutNd(Module):
    _drop: Callable[..., Tensor]
    _printed_attributes = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= number(type(self).__name__, "p", p) <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout in training; return ``input`` itself in evaluation."""
        return self._drop(input, self.p, self.training, self.inplace)


class Dropout(_DropoutNd):
    """Dropout: in training, zero each element with probability p, scale the rest by 1 / (1 - p).

    Parameters
    ----------
    p : float
        The probability, between 0 and 1.
    inplace : bool
        Whether the input is overwritten.

    Raises
    ------
    ValueError
        ``p`` is not between 0 and 1.

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

    _drop = at_call(functional.dropout)


class Dropout1d(_DropoutNd):
    """Channel dropout of (N, C, L) or (C, L): whole channels are zeroed; see `Dropout`."""

    _drop = at_call(functional.dropout1d)


class Dropout2d(_DropoutNd):
    """Channel dropout of (N, C, H, W): whole channels are zeroed; see `Dropout`.

    References
    ----------
    J. Tompson et al., "Efficient object localization using convolutional networks", CVPR 2015,
    section 3.2.
    """

    _drop = at_call(functional.dropout2d)


class Dropout3d(_DropoutNd):
    """Channel dropout of (N, C, D, H, W) or (C, D, H, W); see `Dropout`."""

    _drop = at_call(functional.dropout3d)


class AlphaDropout(_DropoutNd):
    """Alpha dropout: in training, drop elements but keep mean and variance; for `SELU` nets.

    Parameters
    ----------
    p, inplace
        As for `Dropout`.

    References
    ----------
    G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017, section "New dropout
    technique".
    """

    _drop = at_call(functional.alpha_dropout)
