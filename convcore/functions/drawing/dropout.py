"""Dropout and alpha dropout, of elements or channels, by the default random generator."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.memory import empty_preserving
from convcore.functions._support.arguments import check_kind, check_tensor, number
from convcore.functions.elementwise.arithmetic import add, add_, mul, mul_
from convcore.functions.shapes.shape import squeeze, unsqueeze
from convcore.random import fill_bernoulli

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d"]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p, and divide the others by 1 - p.

    Parameters
    ----------
    input : Tensor
    p : number from [0, 1]
    training : bool
        False: the tensor itself is returned.
    inplace : bool
        Replace the tensor's own elements.

    Raises
    ------
    ValueError
        p is not from [0, 1].

    References
    ----------
    N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever, R. Salakhutdinov, "Dropout", JMLR 15,
    2014, section 10 (the larger weights while training).
    """
    check_tensor("dropout", input)
    return _dropped(input, p, training, inplace, feature=False)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Do what `dropout` does, to whole channels of (N, C, L) or (C, L)."""
    check_tensor("dropout1d", input)
    if input._array.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input._array.ndim}D input. Note "
            "that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial "
            "dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D "
            "inputs)."
        )
    return _unbatched(input, 2, p, training, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Do what `dropout` does, to whole channels of (N, C, H, W).

    Three axes are taken for (N, C, L), with a warning, as in PyTorch.
    """
    check_tensor("dropout2d", input)
    if input._array.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    else:
        _check_rank("dropout2d", input, (3, 4))
    return _dropped(input, p, training, inplace, feature=True)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Do what `dropout` does, to whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    check_tensor("dropout3d", input)
    _check_rank("dropout3d", input, (4, 5))
    return _unbatched(input, 4, p, training, inplace)


def _check_rank(function: str, x: Tensor, ranks: tuple[int, int]) -> None:
    rank = x._array.ndim
    if rank not in ranks:
        warnings.warn(
            f"{function}: Received a {rank}-D input to {function}, which is deprecated and will "
            "result in an error in a future release. To retain the behavior and silence this "
            "warning, please use dropout instead. Note that it exists to provide channel-wise "
            f"dropout on inputs of {ranks[0]} or {ranks[1]} axes.",
            stacklevel=3,
        )


def _unbatched(x: Tensor, rank: int, p: float, training: bool, inplace: bool) -> Tensor:
    """Drop channels of a batch, or of one image if there are ``rank`` axes."""
    if x._array.ndim != rank:
        return _dropped(x, p, training, inplace, feature=True)
    result = squeeze(_dropped(unsqueeze(x, 0), p, training, inplace, feature=True), 0)
    return x if inplace else result


def _probability(p: Any) -> float:
    p = number("dropout", "p", p)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def _dropped(x: Tensor, p: float, training: bool, inplace: bool, feature: bool) -> Tensor:
    p = _probability(p)
    if p == 0 or not training or x._array.size == 0:
        return x
    by = mul_ if inplace else mul
    if p == 1:
        return by(x, wrap(np.zeros((), x._array.dtype)))
    check_kind("bernoulli_scalar_cpu_", x, "fiubV")
    noise = _noise(x, p, feature)
    noise /= noise.dtype.type(1 - p)
    return by(x, wrap(noise))


def _noise(x: Tensor, p: float, feature: bool) -> np.ndarray:
    """Return zeros with probability p, else ones: one for each element, or for each channel."""
    array = x._array
    if not feature:
        noise = empty_preserving(array, array.dtype)
    else:
        if array.ndim < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        noise = np.empty((*array.shape[:2], *(1,) * (array.ndim - 2)), array.dtype)
    fill_bernoulli(noise, 1 - p)
    return noise


_LOWEST = 1.7580993408473766  # minus the limit of selu(x) for x -> -inf


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Set elements to the lowest value of `selu`, then restore the mean and the variance.

    The arguments are those of `dropout`.

    References
    ----------
    G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, "Self-Normalizing Neural Networks",
    NeurIPS 2017.
    """
    check_tensor("alpha_dropout", input)
    p = _probability(p)
    if p == 0 or not training or input._array.size == 0:
        return input
    times, plus = (mul_, add_) if inplace else (mul, add)
    if p == 1:
        return times(input, wrap(np.zeros((), input._array.dtype)))
    noise = _noise(input, p, feature=False)
    kind = noise.dtype.type
    scale = 1 / math.sqrt((_LOWEST**2 * p + 1) * (1 - p))
    shift = (noise - kind(1)) * kind(_LOWEST * scale) + kind(_LOWEST * scale * p)
    return plus(times(input, wrap(noise * kind(scale))), wrap(shift))


FUNCTIONS_ONLY = __all__
