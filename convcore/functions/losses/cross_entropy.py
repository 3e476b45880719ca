"""Negative log-likelihood and cross-entropy of class indices or probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.creation.arguments import checked_int
from convcore._tensor.dtypes import FLOATING
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.engine.layers.softmax import nll
from convcore.functions._support.arguments import (
    check_arguments,
    check_kind,
    check_optional,
    number,
    refuse_gradients,
)
from convcore.functions._support.axes import expand_to, wide_total_of
from convcore.functions._support.dispatch import dispatch_pair, flat_in, later_place_of
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.arithmetic import add, div, mul
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.losses.loss_reduction import reduction_name
from convcore.functions.normalization.softmax import log_softmax
from convcore.functions.shapes.broadcast import fitted
from convcore.functions.shapes.shape import reshape

__all__ = ["cross_entropy", "nll_loss"]


@in_float32
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return -weight[target] * input[target]: the negative logarithm of a class's likelihood.

    Parameters
    ----------
    input : Tensor (N, C), (C,) or (N, C, d1, d2, ...)
        Logarithms of probabilities.
    target : Tensor (N,), () or (N, d1, d2, ...) of int64 or uint8
        Classes.
    weight : Tensor (C,) or None
        A factor for each class; the mean is then the weighted one.
    ignore_index : int
        A target that counts for nothing.
    reduction : 'mean', 'sum' or 'none'

    Raises
    ------
    IndexError
        A target is no class.
    ValueError, RuntimeError
        The shapes do not belong together, or the target's dtype is another one.
    """
    check_arguments("nll_loss", input=input, target=target)
    reduction = reduction_name(reduction, size_average, reduce, frames=2)
    return _class_loss(input, target, weight, ignore_index, reduction)


def _class_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float = 0.0,
) -> Tensor:
    refuse_gradients("nll_loss_forward", weight=weight)
    ignore_index = checked_int("nll_loss", "ignore_index", ignore_index)
    if not -(2**63) <= ignore_index < 2**63:
        raise RuntimeError(f"nll_loss(): ignore_index must fit in 64 bits, got {ignore_index}")
    _check_classes(input, target, weight)
    x, classes = input._array, target._array
    if x.dtype.kind != "f":
        check_kind("nll_loss_out_frame", input, "f")
    if x.ndim == 1:
        classes = classes.reshape(())
    weights = None if weight is None else weight._array
    each = reduction == "none"
    try:
        loss, total = nll.forward(x, classes, weights, ignore_index, each, smoothing)
    except IndexError as error:
        count = x.shape[nll.class_axis(x.shape)]
        outside = (classes != ignore_index) & ((classes < 0) | (classes >= count))
        hinted(error, hints.class_range(int(classes[outside][0]), count))
        raise
    divisor = total if reduction == "mean" else 1.0
    if reduction == "mean":
        loss = loss / total if total else ignore_errstate(np.divide, loss, total)
    out = wrap(np.asarray(loss, x.dtype))
    if mode.enabled:
        like = x.shape, x.dtype, nll.is_nhwc(x)
        place = later_place_of(input)

        def backward(needs: tuple[bool, ...], grad: Tensor, target: Tensor, weight: Any) -> Tensor:
            options = ignore_index, reduction, smoothing
            result = _class_gradient(grad, like, divisor, target, weight, *options)
            return flat_in(result, place)

        name = "NllLossBackward0" if x.ndim <= 2 else "NllLoss2DBackward0"
        record(name, (input,), out, backward, (target, weight))
    return out


def _class_gradient(
    grad: Tensor,
    like: tuple[Any, Any, bool],
    divisor: float,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Tensor:
    """Return the adjoint of `_class_loss`, which is linear: each is the other's gradient."""
    weights = None if weight is None else weight._array
    options = weights, ignore_index, smoothing
    out = wrap(nll.backward(grad._array, divisor, like, target._array, *options))

    def backward(needs: tuple[bool, ...], grad: Tensor, target: Tensor, weight: Any) -> Tensor:
        return _class_loss(grad, target, weight, ignore_index, reduction, smoothing)

    record("NllLossBackward0Backward0", (grad,), out, backward, (target, weight))
    return out


def _check_classes(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    shape, given = input._array.shape, target._array.shape
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) > 1 and (shape[0], *shape[2:]) != given:
        raise _size_error(shape, given)
    if target._array.dtype not in (np.int64, np.uint8):
        found = scalar_name(target._array.dtype)
        raise hinted(
            RuntimeError(f"expected target dtype to be Long or Byte, but got {found}"),
            hints.class_dtype(shape, given, target._array.dtype.kind == "f"),
        )
    if len(shape) == 1 and len(given) == 1 and given[0] != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {given[0]}"
        )
    if len(shape) == 1 and len(given) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    _check_class_weights("", shape, weight)


def _size_error(shape: tuple[int, ...], given: tuple[int, ...]) -> Exception:
    """Return the error of targets that have not a batch's shape without the axis of the classes."""
    if shape[:1] != given[:1]:
        batch = given[0] if given else 1
        error = ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({batch})."
        )
        return hinted(error, hints.BATCH_SIZE.format(list(shape), batch))
    expected = [shape[0], *shape[2:]]
    if len(shape) == 2:
        text = "0D or 1D target tensor expected, multi-target not supported"
    elif len(shape) != 4:
        text = f"Expected target size {expected}, got {list(given)}"
    elif len(given) != 3:
        text = (
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
            f"{len(given)}"
        )
    else:
        text = f"size mismatch (got input: {list(shape)} , target: {list(given)}"
    return hinted(RuntimeError(text), hints.class_shape(shape, given))


def _check_class_weights(prefix: str, shape: tuple[int, ...], weight: Tensor | None) -> None:
    classes = shape[nll.class_axis(shape)]
    if weight is not None and weight._array.shape != (classes,):
        raise RuntimeError(
            f"{prefix}weight tensor should be defined either for all {classes} classes or no "
            f"classes but got weight tensor of shape: {list(weight._array.shape)}"
        )


@in_float32
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the `nll_loss` of the `log_softmax` of scores.

    Parameters
    ----------
    input : Tensor (N, C), (C,) or (N, C, d1, d2, ...)
        Scores of the classes.
    target : Tensor of classes, as for `nll_loss`, or of probabilities, of input's shape
    weight : Tensor (C,) or None
        A factor for each class.
    ignore_index : int
        A class, as target, that counts for nothing; below 0 where targets are probabilities.
    reduction : 'mean', 'sum' or 'none'
    label_smoothing : number from [0, 1]
        How much of the target goes in equal parts to all classes.

    Raises
    ------
    IndexError, ValueError, RuntimeError
        As `nll_loss`; and label_smoothing is not from [0, 1].

    References
    ----------
    C. Szegedy and others, "Rethinking the Inception Architecture for Computer Vision", CVPR 2016,
    section 7 (label smoothing).

    Examples
    --------
    >>> import convcore
    >>> scores = convcore.tensor([[2.0, 0.0]])
    >>> convcore.nn.functional.cross_entropy(scores, convcore.tensor([0]))
    tensor(0.1269)
    """
    check_arguments("cross_entropy", input=input, target=target)
    reduction = reduction_name(reduction, size_average, reduce, frames=2)
    label_smoothing = number("cross_entropy", "label_smoothing", label_smoothing)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    shape = input._array.shape
    if shape == target._array.shape and target._array.dtype.kind not in FLOATING:
        raise hinted(
            RuntimeError(
                "Expected floating point type for target with class probabilities, got "
                f"{scalar_name(target._array.dtype)}"
            ),
            hints.class_shape(shape, shape),
        )
    if shape == target._array.shape:
        if checked_int("cross_entropy", "ignore_index", ignore_index) >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    along = nll.class_axis(shape)
    try:
        likelihood = log_softmax(input, along) if shape else input
    except NotImplementedError as error:  # of integers
        if target._array.dtype.kind not in "fV":
            raise
        raise hinted(NotImplementedError(str(error)), hints.SWAPPED) from None
    return _class_loss(likelihood, target, weight, ignore_index, reduction, label_smoothing)


def _weighted(x: Tensor, weight: Tensor | None) -> Tensor:
    """Return ``x`` times the weights of the classes."""
    if weight is None:
        return x
    rank = x._array.ndim
    return mul(x, reshape(weight, (-1, *(1,) * (rank - 1 - nll.class_axis(x._array.shape)))))


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    shape = input._array.shape
    check_optional("cross_entropy", weight=weight)
    _check_class_weights("cross_entropy: ", shape, weight)
    along = nll.class_axis(shape)
    classes = max(shape[along], 1)
    if smoothing:
        target = add(mul(target, 1 - smoothing), smoothing / classes)
    likelihood = _weighted(log_softmax(input, along), weight)
    count = math.prod(shape) / classes if reduction == "mean" else 1
    over = (along,) if reduction == "none" else tuple(range(len(shape)))
    return _negative_product(likelihood, target, over, count)


def _negative_product(x: Tensor, y: Tensor, over: tuple[int, ...], count: float) -> Tensor:
    """Return -x * y summed over some axes, divided by a count."""
    products = np.asarray(dispatch_pair("product", np.multiply, x._array, y._array))
    total = ignore_errstate(np.true_divide, wide_total_of(products, over, False), -count)
    out = wrap(np.asarray(total, products.dtype))

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
        each = expand_to(div(grad, -count), over, products.shape)
        return mul(y, each) if needs[0] else None, mul(x, each) if needs[1] else None

    record("SoftCrossEntropyBackward0", (x, y), out, fitted(backward, x, y), (x, y))
    return out


FUNCTIONS_ONLY = __all__
