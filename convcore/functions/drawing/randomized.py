"""Activations that draw random numbers: rrelu and gumbel_softmax."""

from __future__ import annotations

import math
import warnings

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.autograd import views
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_kind, check_tensor
from convcore.functions._support.dispatch import flat_in, later_place_of
from convcore.functions._support.in_place import forward_only
from convcore.functions.drawing.sampling import exponential_
from convcore.functions.elementwise.activation import leaky_relu
from convcore.functions.elementwise.arithmetic import add, div, mul, sub
from convcore.functions.elementwise.elementwise import log
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.indexing.scatter import scatter
from convcore.functions.normalization.softmax import softmax
from convcore.random import fill_uniform

__all__ = ["gumbel_softmax", "rrelu", "rrelu_"]


@names_arguments
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return x where it is positive, else x times a slope that is drawn for each element.

    Parameters
    ----------
    input : Tensor of a floating-point dtype
    lower, upper : numbers
        Between which slopes are drawn; their mean is the slope outside of training.
    training : bool
    inplace : bool

    References
    ----------
    B. Xu, N. Wang, T. Chen, M. Li, "Empirical evaluation of rectified activations in convolutional
    network", 2015.
    """
    check_tensor("rrelu", input)
    if inplace:
        is_negative = not training and lower + upper < 0
        function = forward_only("leakyReLu", _rrelu) if is_negative else _rrelu
        return views.inplace(input, function, lower, upper, training)
    return _rrelu(input, lower, upper, training)


@in_float32
def _rrelu(input: Tensor, lower: float, upper: float, training: bool) -> Tensor:
    check_kind("rrelu_out_cpu", input, "f")
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound:g}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slopes = np.ones(input._array.shape, input._array.dtype)
    low = input._array <= 0
    drawn = np.empty(np.count_nonzero(low))
    fill_uniform(drawn, lower, upper)
    slopes[low] = drawn
    out, factors = wrap(np.asarray(input._array * slopes)), wrap(slopes)
    if mode.enabled:
        place = later_place_of(input)
        backward = lambda needs, grad, slopes: flat_in(mul(grad, slopes), place)  # noqa: E731
        record("RreluWithNoiseBackward0", (input,), out, backward, (factors,))
    return out


@names_arguments
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """Do what `rrelu` does, in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Sample from a relaxed categorical distribution: softmax((logits + Gumbel noise) / tau).

    Parameters
    ----------
    logits : Tensor
        Unnormalised log-probabilities.
    tau : number
        The temperature; the smaller, the nearer to one-hot.
    hard : bool
        Whether to return one-hot samples, with the gradients of the soft ones.
    eps : ignored
    dim : int

    References
    ----------
    E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", ICLR 2017.
    """
    check_tensor("gumbel_softmax", logits)
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = exponential_(wrap(np.empty(logits._array.shape, logits._array.dtype)))
    soft = softmax(div(sub(logits, log(noise)), tau), dim)
    if not hard:
        return soft
    best = np.argmax(soft._array, axis=dim if soft._array.ndim else None, keepdims=True)
    zeros = wrap(np.zeros(soft._array.shape, soft._array.dtype))
    chosen = scatter(zeros, dim, wrap(np.asarray(best, np.int64)), value=1.0)
    return add(sub(chosen, soft.detach()), soft)


FUNCTIONS_ONLY = __all__
