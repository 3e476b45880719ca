"""Elementwise functions of three tensors: lerp, addcmul, addcdiv; the shapes broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.creation.arguments import checked_number, factor
from convcore._tensor.dtypes import common, result_numpy
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.engine.layers.elementwise.elementwise import is_half
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place_methods, older_order
from convcore.functions.elementwise.arithmetic import (
    _number,
    compute,
    conj,
    div,
    mul,
    neg,
    rsub,
    sub,
)
from convcore.functions.elementwise.elementwise import square
from convcore.functions.shapes.broadcast import broadcast_shape, fitted

__all__ = ["addcdiv", "addcmul", "lerp"]


@names_arguments
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Return input + weight * (end - input), element by element.

    Parameters
    ----------
    input, end : Tensor of one dtype
    weight : number or Tensor, of their dtype if it has axes
        The shapes broadcast.
    """
    check_arguments("lerp", input=input, end=end)
    for name, value in (("end", end), ("weight", weight)):
        if not isinstance(value, Tensor) or (value is weight and value._array.ndim == 0):
            continue
        if input._array.dtype != value._array.dtype:
            names = [scalar_name(t._array.dtype).lower() for t in (input, value)]
            raise RuntimeError(f"expected dtype {names[0]} for `{name}` but got dtype {names[1]}")
    start, stop = input._array, end._array
    promoted = isinstance(weight, Tensor) and weight._array.dtype != start.dtype
    half = start.dtype if is_half(start.dtype) and not promoted else None
    if half:  # rounded once
        start, stop = start.astype(np.float32), stop.astype(np.float32)
    way = compute(np.subtract, stop, start)
    if isinstance(weight, Tensor) and weight._array.dtype.kind in "iub":
        weight = wrap(weight._array.astype(way.dtype))  # 1 - weight wraps around below 0
    if isinstance(weight, Tensor):
        w = weight._array.astype(np.float32) if half else weight._array
    else:
        w = _number(checked_number("lerp", weight, "weight"), way.dtype)
    broadcast_shape(way.shape, np.shape(w))
    dtype = common(way, w) if isinstance(weight, Tensor) or np.iscomplexobj(w) else way.dtype
    # From the nearer end, so that weight 1 gives exactly `end`.
    near = ignore_errstate(lambda: np.absolute(w) < 0.5)
    from_start = lambda: start + w * way  # noqa: E731
    from_end = lambda: stop - way * (1 - w)  # noqa: E731
    if near.ndim == 0:
        value = ignore_errstate(from_start if near else from_end)
    else:
        value = ignore_errstate(lambda: np.where(near, from_start(), from_end()))
    out = wrap(ignore_errstate(np.asarray, value, half or dtype))
    if not mode.enabled:
        return out
    inputs = (input, end, weight) if isinstance(weight, Tensor) else (input, end)
    saved = (input, end, weight) if isinstance(weight, Tensor) else (None, None, weight)
    name = "LerpBackward1" if isinstance(weight, Tensor) else "LerpBackward0"
    record(name, inputs, out, fitted(_lerp_backward, *inputs), saved)
    return out


def _lerp_backward(
    needs: tuple[bool, ...], grad: Tensor, start: Any, end: Any, weight: Any
) -> tuple:
    rest = rsub(weight, 1) if isinstance(weight, Tensor) else 1 - weight
    grads = (
        mul(grad, conj(rest)) if needs[0] else None,
        mul(grad, conj(weight)) if needs[1] else None,
    )
    if len(needs) == 2:
        return grads
    return (*grads, mul(grad, conj(sub(end, start))) if needs[2] else None)


@names_arguments
def addcmul(input: Tensor, tensor1: Any, tensor2: Tensor, *older: Tensor, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 * tensor2, element by element; the shapes broadcast.

    PyTorch's older order of arguments is understood, too: input, value, tensor1, tensor2.
    """
    if older:
        value, tensor1, tensor2 = older_order("addcmul", tensor1, tensor2, *older)

    def gradients(needs: tuple[bool, ...], grad: Tensor, a: Tensor, b: Tensor, value: Any) -> tuple:
        return (
            grad if needs[0] else None,
            mul(grad, conj(_scaled(b, value))) if needs[1] else None,
            mul(grad, conj(_scaled(a, value))) if needs[2] else None,
        )

    return _add_scaled("Addcmul", np.multiply, gradients, value, input, tensor1, tensor2)


@names_arguments
def addcdiv(input: Tensor, tensor1: Any, tensor2: Tensor, *older: Tensor, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 / tensor2, element by element; the shapes broadcast.

    PyTorch's older order of arguments is understood, too: input, value, tensor1, tensor2.

    Raises
    ------
    RuntimeError
        All are integers: their quotient is none.
    """
    if older:
        value, tensor1, tensor2 = older_order("addcdiv", tensor1, tensor2, *older)
    check_arguments("addcdiv", input=input, tensor1=tensor1, tensor2=tensor2)
    if tensor1._array.dtype.kind in "iub" and tensor2._array.dtype.kind in "iub":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: convert a tensor to a "
            "floating-point dtype, or use addcmul with a quotient that is rounded as you want it"
        )

    def gradients(needs: tuple[bool, ...], grad: Tensor, a: Tensor, b: Tensor, value: Any) -> tuple:
        return (
            grad if needs[0] else None,
            _scaled(div(grad, conj(b)), conj(value)) if needs[1] else None,
            neg(mul(grad, conj(div(_scaled(a, value), square(b))))) if needs[2] else None,
        )

    return _add_scaled("Addcdiv", np.true_divide, gradients, value, input, tensor1, tensor2)


def _add_scaled(
    node: str, ufunc: np.ufunc, gradients: Callable, value: Any, x: Tensor, a: Tensor, b: Tensor
) -> Tensor:
    """Return x + value * ufunc(a, b)."""
    arrays = [one._array for one in (x, a, b)]
    if not arrays[0].dtype == arrays[1].dtype == arrays[2].dtype:
        dtype = result_numpy(*arrays)  # of all three: a product of bytes would wrap around
        arrays = [array.astype(dtype) for array in arrays]
    if value.__class__ is not int:
        value = factor(node.lower(), "value", value, arrays[0].dtype)
    dtype = arrays[0].dtype
    if is_half(dtype):  # rounded once
        arrays = [array.astype(np.float32) for array in arrays]
    if value != 1:  # before the product, which may overflow
        arrays[1] = compute(np.multiply, arrays[1], value)
    change = compute(ufunc, *arrays[1:])
    out = wrap(ignore_errstate(compute(np.add, arrays[0], change).astype, dtype, copy=False))
    if mode.enabled:
        record(f"{node}Backward0", (x, a, b), out, fitted(gradients, x, a, b), (a, b, value))
    return out


def _scaled(x: Tensor, value: Any) -> Tensor:
    return x if value == 1 else mul(x, value)


METHODS = in_place_methods(addcdiv, addcmul, lerp)
