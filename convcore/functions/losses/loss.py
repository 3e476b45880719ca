"""Loss functions: MSE, L1, smooth L1, Huber, binary cross-entropy, KL divergence.

``reduction`` is 'mean', 'sum' or 'none'; ``size_average`` and ``reduce`` are its older form.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor, scalar_name, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.autograd.views import check_fits
from convcore.engine.layers.elementwise import elementwise
from convcore.functions._support.arguments import (
    check_arguments,
    check_kind,
    check_optional,
    number,
    refuse_complex,
    refuse_gradients,
)
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.activation import logsigmoid
from convcore.functions.elementwise.arithmetic import add, compute, div, mul, neg, rsub, sub
from convcore.functions.elementwise.elementwise import abs, exp, log, sigmoid
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.elementwise.piecewise import clamp, clamp_min, where
from convcore.functions.losses.loss_reduction import (
    gradient_of_each,
    reduce_losses,
    reduce_weighted,
    reduced_array,
    reduction_name,
)
from convcore.functions.reductions.reduce import sum
from convcore.functions.shapes.broadcast import broadcast_shape, broadcast_tensors, cast, fitted

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
]


# Regression losses


def _same_shapes(function: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return both, broadcast to one shape, with PyTorch's warning if their shapes differ."""
    check_arguments(function, input=input, target=target)
    if input._array.shape == target._array.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({input.shape}). This will likely lead to incorrect results due to broadcasting. Please "
        "ensure they have the same size.",
        stacklevel=3,
    )
    first, second = broadcast_tensors(input, target)
    return first, second


def _distance(
    name: str,
    kernel: str,
    most: float,
    factor: float,
    input: Tensor,
    target: Tensor,
    reduction: str,
) -> Tensor:
    """Return the reduced factor * h(input - target), h = d^2 / 2, a straight line from |d| = most.

    ``kernel`` is what PyTorch calls it in the error for a dtype of integers.
    """
    if target._array.dtype.kind == "b":  # of which no difference is taken
        target = wrap(target._array.astype(input._array.dtype))
    elif input._array.dtype.kind == "b":
        input = wrap(input._array.astype(target._array.dtype))
    x, y = input._array, target._array
    if elementwise.has_kernel("huber", x, y):
        values = elementwise.binary("huber", y, x, (most, factor))
    else:
        difference = compute(np.subtract, x, y)
        check_kind(kernel, wrap(difference), "fV")
        values = np.asarray(ignore_errstate(_bent, difference, most, factor), difference.dtype)
    out = reduced_array(values, reduction)
    if not mode.enabled:
        return out
    shape = values.shape

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
        a, b = x._array, y._array
        if reduction != "none" and not mode.enabled and elementwise.has_kernel("huber", a, b):
            by = factor * float(grad._array) / (a.size if reduction == "mean" else 1)
            grad_input = wrap(elementwise.binary("huber_slope", b, a, (most, by)))
        else:
            difference = sub(x, y)
            slope = mul(difference if most == math.inf else clamp(difference, -most, most), factor)
            grad_input = mul(slope, gradient_of_each(grad, reduction, shape))
        return grad_input if needs[0] else None, neg(grad_input) if needs[1] else None

    record(name, (input, target), out, fitted(backward, input, target), (input, target))
    return out


def _bent(difference: np.ndarray, most: float, factor: float) -> np.ndarray:
    size = np.absolute(difference)
    if most == math.inf:
        return np.square(size) * (0.5 * factor)
    bent = np.minimum(size, size.dtype.type(most))
    return bent * (size - bent * 0.5) * factor


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean squared error: the mean, or the sum, of (input - target)^2.

    Parameters
    ----------
    input, target : Tensors of one shape
        Others broadcast, with a warning.
    reduction : 'mean', 'sum' or 'none'
    weight : Tensor of input's shape, or None
        A factor for each element; the mean is then the weighted one.

    Raises
    ------
    ValueError
        weight has another shape, or the reduction another name.

    Examples
    --------
    >>> import convcore
    >>> convcore.nn.functional.mse_loss(convcore.zeros(2), convcore.tensor([1.0, 3.0]))
    tensor(5.)
    """
    reduction = reduction_name(reduction, size_average, reduce)
    input, target = _same_shapes("mse_loss", input, target)
    square = "MseLossBackward0", "mse_cpu", math.inf, 2.0, input, target
    if weight is None:
        return _distance(*square, reduction)
    _check_weight("mse_loss", input, weight)
    return reduce_weighted(_distance(*square, "none"), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean absolute error |input - target|; the arguments are those of `mse_loss`."""
    reduction = reduction_name(reduction, size_average, reduce)
    x, y = _same_shapes("l1_loss", input, target)
    distance = abs(sub(x, y))
    if weight is None:
        return reduce_losses(distance, reduction)
    _check_weight("l1_loss", input, weight)
    return reduce_weighted(distance, weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return the smooth L1 loss of d = input - target, quadratic where |d| < beta.

    The loss is |d| - beta / 2, and d^2 / (2 beta) where |d| < beta.  The other arguments
    are those of `mse_loss`.

    Raises
    ------
    RuntimeError
        beta is negative.
    """
    reduction = reduction_name(reduction, size_average, reduce)
    input, target = _same_shapes("smooth_l1_loss", input, target)
    beta = number("smooth_l1_loss", "beta", beta)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduce_losses(abs(sub(input, target)), reduction)
    return _distance(
        "SmoothL1LossBackward0", "smooth_l1_cpu", beta, 1 / beta, input, target, reduction
    )


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return the Huber loss of d = input - target, linear where |d| > delta.

    The loss is d^2 / 2, and delta * (|d| - delta / 2) where |d| > delta.  The other
    arguments are those of `mse_loss`, but that the mean is the plain one.

    Raises
    ------
    RuntimeError
        delta is not above 0.
    """
    reduction = reduction_name(reduction)
    input, target = _same_shapes("huber_loss", input, target)
    delta = number("huber_loss", "delta", delta)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if input.dtype != target.dtype and input.is_floating_point() and not target.is_complex():
        target = cast(target, input._array.dtype)  # PyTorch's result has the dtype of the input
    bent = "HuberLossBackward0", "huber_cpu", delta, 1.0, input, target
    if weight is None:
        return _distance(*bent, reduction)
    _check_weight("huber_loss", input, weight)
    return reduce_losses(mul(_distance(*bent, "none"), weight), reduction)


def _check_weight(function: str, input: Tensor, weight: Tensor) -> None:
    check_optional(function, weight=weight)
    if weight._array.shape != input._array.shape:
        raise ValueError("Weights and input must have the same size.")


# Losses of probabilities


@in_float32
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the binary cross-entropy of probabilities.

    It is -(target * log(input) + (1 - target) * log(1 - input)), with logarithms of at least -100.

    Parameters
    ----------
    input : Tensor of probabilities
    target : Tensor of input's shape
    weight : Tensor or None
        A factor for each element's loss; it broadcasts to input's shape.
    reduction : 'mean', 'sum' or 'none'

    Raises
    ------
    ValueError
        The shapes differ.
    RuntimeError
        An element of input or target is not from [0, 1], their dtypes differ, or weight does not
        broadcast to their shape.
    NotImplementedError
        An integer tensor.
    """
    check_arguments("binary_cross_entropy", input=input, target=target)
    refuse_gradients("binary_cross_entropy", weight=weight)
    reduction = reduction_name(reduction, size_average, reduce, frames=2)
    if input._array.shape != target._array.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    x, t = input._array, target._array
    if x.dtype != t.dtype:
        found, expected = scalar_name(t.dtype), scalar_name(x.dtype)
        raise hinted(
            RuntimeError(f"Found dtype {found} but expected {expected}"),
            hints.FLOAT_TARGETS if t.dtype.kind in "iub" else "",
        )
    check_kind("binary_cross_entropy", input, "f")
    for name, array in (("input", x), ("target", t)):
        if not np.all((array >= 0) & (array <= 1)):
            raise hinted(
                RuntimeError(f"all elements of {name} should be between 0 and 1"),
                hints.NO_PROBABILITIES if name == "input" else "",
            )
    _check_factors(x.shape, weight)
    factor = 1 if weight is None else weight._array
    values = ignore_errstate(_binary_cross_entropy, x, t) * factor
    out = reduced_array(np.asarray(values, x.dtype), reduction)
    if not mode.enabled:
        return out
    shape = x.shape

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, t: Tensor, w: Any) -> tuple:
        each = gradient_of_each(grad, reduction, shape)
        each = each if w is None else mul(each, w)
        grad_input = grad_target = None
        if needs[0]:
            grad_input = mul(each, div(sub(x, t), clamp_min(mul(x, rsub(x, 1)), 1e-12)))
        if needs[1]:
            odds = sub(clamp_min(log(rsub(x, 1)), -100), clamp_min(log(x), -100))
            grad_target = mul(each, odds)
        return grad_input, grad_target

    inputs = (input, target)
    saved = (input, target, weight)
    record("BinaryCrossEntropyBackward0", inputs, out, fitted(backward, *inputs), saved)
    return out


def _check_factors(shape: tuple[int, ...], *factors: Tensor | None) -> None:
    """Raise RuntimeError for a factor that does not broadcast to the shape of a loss."""
    for factor in factors:
        if factor is not None:
            check_fits(shape, broadcast_shape(shape, factor._array.shape))


def _binary_cross_entropy(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    lowest = x.dtype.type(-100)
    return (t - 1) * np.maximum(np.log1p(-x), lowest) - t * np.maximum(np.log(x), lowest)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross-entropy of sigmoid(input), without its overflow.

    Parameters
    ----------
    input : Tensor
    target : Tensor of input's shape
    weight : Tensor or None
        A factor for each element's loss; it broadcasts to input's shape.
    reduction : 'mean', 'sum' or 'none'
    pos_weight : Tensor or None
        A factor for the loss of targets 1; it broadcasts to input's shape.

    Raises
    ------
    ValueError
        The shapes differ.
    RuntimeError
        weight or pos_weight does not broadcast to them; target has integers, which are classes of
        `cross_entropy` but no probabilities.
    """
    check_arguments("binary_cross_entropy_with_logits", input=input, target=target)
    refuse_gradients("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    reduction = reduction_name(reduction, size_average, reduce)
    if input._array.shape != target._array.shape:
        raise hinted(
            ValueError(
                f"Target size ({target.shape}) must be the same as input size ({input.shape})"
            ),
            hints.other_axis(input.shape, target.shape),
        )
    check_kind("log_sigmoid_cpu", input, "fiubV")
    x, t = input._array, target._array
    if t.dtype.kind in "iub":
        _refuse_integers(x.dtype, t.dtype)
    _check_factors(x.shape, weight, pos_weight)
    values = ignore_errstate(_with_logits, x, t, None if pos_weight is None else pos_weight._array)
    values = values if weight is None else values * weight._array
    out = reduced_array(np.asarray(values), reduction)
    if not mode.enabled:
        return out
    shape = out._array.shape if reduction == "none" else np.shape(values)

    def backward(
        needs: tuple[bool, ...], grad: Tensor, x: Tensor, t: Tensor, w: Any, pos: Any
    ) -> tuple:
        each = gradient_of_each(grad, reduction, shape)
        each = each if w is None else mul(each, w)
        grad_input = grad_target = None
        if needs[0] and pos is None:
            grad_input = mul(sub(sigmoid(x), t), each)
        elif needs[0]:
            positive = mul(t, pos)
            grad_input = mul(each, sub(mul(sub(add(positive, 1), t), sigmoid(x)), positive))
        if needs[1]:
            slope = neg(x)
            if pos is not None:
                slope = sub(logsigmoid(neg(x)), mul(pos, logsigmoid(x)))
            grad_target = mul(each, slope)
        return grad_input, grad_target

    inputs, saved = (input, target), (input, target, weight, pos_weight)
    name = "BinaryCrossEntropyWithLogitsBackward0"
    record(name, inputs, out, fitted(backward, *inputs), saved)
    return out


def _refuse_integers(wanted: np.dtype, found: np.dtype) -> None:
    raise hinted(
        RuntimeError(
            f"result type {scalar_name(wanted)} can't be cast to the desired output type "
            f"{scalar_name(found)}"
        ),
        hints.FLOAT_TARGETS,
    )


def _with_logits(x: np.ndarray, t: np.ndarray, pos: np.ndarray | None) -> np.ndarray:
    if elementwise.has_kernel("logsigmoid", x):
        log_sigmoid = elementwise.forward("logsigmoid", x)
    else:
        log_sigmoid = np.minimum(x, 0) - np.log1p(np.exp(-np.absolute(x)))
    if pos is not None:
        log_sigmoid = ((pos - 1) * t + 1) * log_sigmoid
    return (1 - t) * x - log_sigmoid


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the Kullback-Leibler divergence target * (log(target) - input), pointwise.

    Parameters
    ----------
    input : Tensor of logarithms of probabilities
    target : Tensor of probabilities, or of their logarithms if ``log_target``
    reduction : 'batchmean', 'mean', 'sum' or 'none'
        'batchmean' is the sum over the size of the first axis, which is the divergence.
    log_target : bool
    """
    check_arguments("kl_div", input=input, target=target)
    refuse_complex("kl_div: Complex inputs not supported.", input, target)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            stacklevel=2,
        )
    if log_target:
        values = mul(exp(target), sub(target, input))
    else:
        # 0 * log(0) is 0, and so is the gradient there.  What is below 0 is NaN, as log gives it.
        counts = wrap(np.asarray(target._array != 0))
        values = sub(mul(target, log(where(counts, target, 1.0))), mul(target, input))
    if reduction == "batchmean":
        total = sum(values)
        return div(total, input._array.shape[0]) if input._array.ndim else total
    name = reduction_name(reduction, size_average, reduce, more=("batchmean",))
    return reduce_losses(values, name)


FUNCTIONS_ONLY = __all__
