"""Addition, subtraction, multiplication and division of tensors and numbers.

Operands broadcast and are promoted as PyTorch promotes them.  The first lines of each function are
its common case, two tensors of one dtype or a tensor and a number; they are what a small operation
costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.creation.arguments import checked_number, number_as
from convcore._tensor.dtypes import (
    INEXACT,
    can_cast_numpy,
    common,
    get_default_dtype,
    number_dtype,
    result_numpy,
)
from convcore._tensor.dtypes import of as of_numpy
from convcore._tensor.meta import MetaArray, NoValuesError, check_together, meta, of_elements
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, needs_history, record
from convcore.autograd.views import check_apart, check_fits, check_writable, inplace
from convcore.engine.layers.elementwise import elementwise
from convcore.functions._support.arguments import check_tensor
from convcore.functions._support.dispatch import dispatch_pair, of_each
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place, in_place_methods
from convcore.functions.shapes.broadcast import broadcast_shape, fitted, joint_shape

__all__ = [
    "add",
    "conj",
    "div",
    "divide",
    "mul",
    "multiply",
    "neg",
    "negative",
    "positive",
    "rsub",
    "sub",
    "subtract",
    "true_divide",
]

_OPERANDS = (Tensor, int, float, complex)  # bool is an int
_ndarray = np.ndarray
_HALF, _SINGLE = np.dtype("float16"), np.dtype("float32")
_EXACT = {np.multiply, np.true_divide, np.floor_divide}  # numbers are not rounded to half precision
_FRACTIONS = (float, complex, np.inexact)
_ONE = 1  # what alpha is most often; not True, and not 1.0


def operand(value: Any, function: str) -> Any:
    """Return an operand as a Tensor or a Python number.

    Raises
    ------
    TypeError
        It is neither, nor a NumPy number or array.
    """
    if isinstance(value, _OPERANDS):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, _ndarray):
        of_numpy(value.dtype)  # raises where no tensor has it
        return wrap(value)
    raise TypeError(
        f"unsupported operand type(s) for {function}: 'Tensor' and '{type(value).__name__}'"
    )


def compute(ufunc: Any, a: Any, b: Any) -> np.ndarray:
    """Return ``ufunc(a, b)`` of arrays or numbers, computed and given in PyTorch's dtype."""
    dtype = None
    try:
        dtype = common(a, b) if isinstance(a, _ndarray) else common(b, a)
        result = ignore_errstate(_apply, ufunc, a, b, dtype)
    except ValueError:
        raise RuntimeError(_broadcast_error(a, b)) from None
    except NoValuesError:
        return of_elements(lambda a, b: compute(ufunc, a, b), joint_shape(a, b), a, b)
    except TypeError as error:
        if dtype is None:
            raise
        if "No loop" not in str(error):
            raise
        kernel = f"{getattr(ufunc, '__name__', 'ufunc')}_cpu"
        name = scalar_name(dtype)
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'") from None
    except AttributeError:
        raise _no_tensor(a) from None
    return result if isinstance(result, _ndarray) else np.asarray(result)


def _computed_wide(ufunc: Any, a: Any, b: Any, dtype: np.dtype, out: Any = None) -> np.ndarray:
    """Return ``ufunc(a, b)`` of real arrays or numbers, computed in float32 and rounded once.

    A number, also of an array without axes, is rounded to the dtype first unless it is a factor or
    a divisor, as in PyTorch.
    """
    wide = [_in_single(x, dtype, ufunc in _EXACT) for x in (a, b)]
    value = np.asarray(ufunc(*wide, dtype=_SINGLE, casting="unsafe"))
    if out is None:
        return value.astype(dtype)
    np.copyto(out, value, casting="unsafe")
    return out


def _in_single(x: Any, dtype: np.dtype, exact: bool) -> Any:
    if not isinstance(x, _ndarray):
        return x if exact else float(_number(x, dtype))
    return (x if exact and not x.ndim else x.astype(dtype, copy=False)).astype(np.float32)


def _no_tensor(value: Any) -> TypeError:
    """Return the error for an operation of two numbers."""
    kind = type(value).__name__
    return TypeError(f"argument 'input' (position 1) must be Tensor, not {kind}")


def _broadcast(kernel: str, ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sum or product of two arrays of different shapes or dtypes."""
    value = elementwise.by_channel(kernel, *((a, b) if a.size >= b.size else (b, a)))
    return compute(ufunc, a, b) if value is None else value


def _apply(ufunc: np.ufunc, a: Any, b: Any, dtype: np.dtype, out: np.ndarray | None = None) -> Any:
    if dtype.kind == "V" or (dtype == _HALF and ufunc in _EXACT and _has_number(a, b)):
        return _computed_wide(ufunc, a, b, dtype, out)
    if not isinstance(a, _ndarray):
        a = _number(a, dtype)
    elif not isinstance(b, _ndarray):
        b = _number(b, dtype)
    return ufunc(a, b, out=out, dtype=dtype, casting="unsafe")


def _has_number(a: Any, b: Any) -> bool:
    """Return whether an operand is a number, or an array without axes beside one with axes."""
    return 0 in (ndims := (np.ndim(a), np.ndim(b))) and any(ndims)


def _number(number: Any, dtype: np.dtype) -> Any:
    """Return a number in a dtype, in which it may wrap around or become infinite."""
    try:
        return dtype.type(number)
    except ValueError:  # NaN as an integer
        return number_as(number, dtype)
    except OverflowError:
        array = np.asarray(number)
        if array.dtype.kind == "O":  # beyond 64 bits
            raise RuntimeError(
                f"value cannot be converted to type int64_t without overflow: {number}"
            ) from None
        return array.astype(dtype)


def _broadcast_error(a: Any, b: Any) -> str:
    try:
        joint_shape(a, b)
    except RuntimeError as error:
        return str(error)
    raise


def conj(input: Any) -> Any:
    """Return the complex conjugate of a tensor or number; of a real one, itself."""
    if isinstance(input, Tensor):
        return _conj(input) if input._array.dtype.kind == "c" else input
    if not isinstance(input, int | float | complex):
        raise _no_tensor(input)
    return input.conjugate()


def _conj(x: Tensor) -> Tensor:
    out = wrap(of_each(np.conjugate, x._array))
    record("ConjBackward0", (x,), out, lambda needs, grad: conj(grad))
    return out


def mul(input: Tensor, other: Any) -> Tensor:
    """Return input * other, element by element.

    Parameters
    ----------
    input : Tensor
    other : Tensor or number, of a shape that broadcasts with input's

    Raises
    ------
    RuntimeError
        The shapes do not broadcast.

    Examples
    --------
    >>> import convcore
    >>> convcore.tensor([1.0, 2.0]) * 3
    tensor([3., 6.])
    """
    if isinstance(other, Tensor) and isinstance(input, Tensor):
        a, b = input._array, other._array
        if a.dtype is b.dtype and a.shape == b.shape:
            value = dispatch_pair("product", np.multiply, a, b)
            out = wrap(value if isinstance(value, _ndarray) else np.asarray(value))
            backward = _mul_backward
        else:
            out = wrap(_broadcast("product", np.multiply, a, b))
            backward = None
        if mode.enabled:
            # A view may have come to require a gradient with its base; else the flag is enough.
            x_needs = input._requires_grad if input._view is None else input.requires_grad
            y_needs = other._requires_grad if other._view is None else other.requires_grad
            if x_needs or y_needs:
                record(
                    "MulBackward0",
                    (input, other),
                    out,
                    backward or fitted(_mul_backward, input, other),
                    (input if y_needs else None, other if x_needs else None),
                )
        return out
    input, other = operand(input, "*"), operand(other, "*")
    if isinstance(input, Tensor):
        if isinstance(other, Tensor):
            return mul(input, other)
        out = wrap(compute(np.multiply, input._array, other))
        record(
            "MulBackward0", (input, None), out, _fitted_to(_mul_backward, input, out), (None, other)
        )
        describe(out, number=other)
        return out
    if not isinstance(other, Tensor):
        other = wrap(np.asarray(other, number_dtype(other)))
    return mul(other, input)


def _mul_backward(needs: tuple[bool, ...], grad: Tensor, x: Any, y: Any) -> tuple:
    return (mul(grad, conj(y)) if needs[0] else None, mul(grad, conj(x)) if needs[1] else None)


def _fitted_to(backward: Any, input: Tensor, out: Tensor) -> Any:
    """Return the backward of an operation with a number, which may have promoted the tensor."""
    return backward if input._array.dtype == out._array.dtype else fitted(backward, input, None)


def add(input: Tensor, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
    """Return input + alpha * other, element by element.

    Parameters
    ----------
    input : Tensor
    other : Tensor or number, of a shape that broadcasts with input's
    alpha : number

    Raises
    ------
    RuntimeError
        The shapes do not broadcast.

    Notes
    -----
    PyTorch's older order of arguments, ``add(input, alpha, other)``, is understood.
    """
    if older:
        other, alpha = older[0], other
    if alpha is not _ONE:
        other = _scaled(input, other, alpha)
    if isinstance(other, Tensor) and isinstance(input, Tensor):
        a, b = input._array, other._array
        if a.dtype is b.dtype and a.shape == b.shape:
            value = dispatch_pair("sum", np.add, a, b)
            out = wrap(value if isinstance(value, _ndarray) else np.asarray(value))
            record("AddBackward0", (input, other), out, _add_backward)
            return out
        out = wrap(_broadcast("sum", np.add, a, b))
        record("AddBackward0", (input, other), out, fitted(_add_backward, input, other))
        return out
    input, other = operand(input, "+"), operand(other, "+")
    if isinstance(input, Tensor):
        if isinstance(other, Tensor):
            return add(input, other)
        out = wrap(compute(np.add, input._array, other))
        record("AddBackward0", (input, None), out, _fitted_to(_add_backward, input, out))
        describe(out, number=other)
        return out
    if not isinstance(other, Tensor):
        other = wrap(np.asarray(other, number_dtype(other)))
    return add(other, input)


def checked_scale(function: str, name: str, value: Any, dtype: np.dtype) -> Any:
    """Return an argument that scales a summand of a sum of a dtype: of that kind, or below."""
    if value.__class__ is int:
        return value
    value = checked_number(function, value, name)
    if isinstance(value, bool) and dtype.kind != "b":
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if isinstance(value, _FRACTIONS) and dtype.kind in "biu":
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number."
        )
    if isinstance(value, complex) and dtype.kind != "c":
        raise RuntimeError(
            f"For non-complex input tensors, argument {name} must not be a complex number."
        )
    return value


def _scaled(x: Any, y: Any, alpha: Any) -> Any:
    """Return ``alpha * y``, which is to be added to ``x``."""
    y = operand(y, "+")
    dtype = result_numpy(x, y)
    alpha = checked_scale("add", "alpha", alpha, dtype)
    if alpha == 1:
        return y
    if not isinstance(y, Tensor):
        return y * alpha
    if y._array.dtype == dtype:
        return mul(y, bool(alpha) if dtype.kind == "b" else alpha)
    # In the result's dtype: -2 times an unsigned integer would wrap around.
    return mul(y, wrap(np.full((1,) * y._array.ndim, _number(alpha, dtype), dtype)))


def _add_backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
    return grad if needs[0] else None, grad if needs[1] else None


def sub(input: Tensor, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
    """Return input - alpha * other, element by element; the rest as for `add`."""
    if older:
        other, alpha = older[0], other
    return _sub(input, other, alpha, "SubBackward0")


def rsub(input: Any, other: Any, alpha: Any = 1) -> Tensor:
    """Return other - alpha * input, element by element."""
    return _sub(other, input, alpha, f"RsubBackward{0 if isinstance(other, Tensor) else 1}")


def _sub(x: Any, y: Any, alpha: Any, name: str) -> Tensor:
    if alpha is not _ONE:
        y = _scaled(x, y, alpha)
    x, y = operand(x, "-"), operand(y, "-")
    a = x._array if isinstance(x, Tensor) else x
    b = y._array if isinstance(y, Tensor) else y
    _refuse_bools(a, b)
    out = wrap(compute(np.subtract, a, b))
    if name != "SubBackward0":  # PyTorch's order of edges: what is subtracted comes first
        record(name, (y, x), out, fitted(_rsub_backward, y, x))
    else:
        record(name, (x, y), out, fitted(_sub_backward, x, y))
    _describe_number(out, x, y)
    return out


def _describe_number(out: Tensor, x: Any, y: Any) -> None:
    """Tell the node which of two operands is a number, if one is."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        describe(out, number=x if isinstance(y, Tensor) else y)


def _refuse_bools(a: Any, b: Any) -> None:
    if bool not in (type(a), type(b)) and np.bool_ not in (
        getattr(value, "dtype", None) for value in (a, b)
    ):
        return
    kinds = [np.asarray(value).dtype.kind for value in (a, b)]
    if kinds == ["b", "b"]:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    raise RuntimeError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead."
    )


def _sub_backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
    return grad if needs[0] else None, neg(grad) if needs[1] else None


def _rsub_backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
    return neg(grad) if needs[0] else None, grad if needs[1] else None


def neg(input: Tensor) -> Tensor:
    """Return -input.

    Raises
    ------
    RuntimeError
        input is a bool tensor.
    """
    check_tensor("neg", input)
    array = input._array
    if array.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    out = wrap(of_each(np.negative, array))
    record("NegBackward0", (input,), out, _neg_backward)
    describe(out, forward=np.negative)
    return out


def _neg_backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
    return neg(grad)


def positive(input: Tensor) -> Tensor:
    """Return the tensor itself: +input.

    Raises
    ------
    RuntimeError
        input is a bool tensor.
    """
    check_tensor("positive", input)
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def div(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return input / other, element by element; integers are divided as floats.

    Parameters
    ----------
    input : Tensor
    other : Tensor or number, of a shape that broadcasts with input's
    rounding_mode : None, 'trunc' or 'floor'
        Round the quotient towards zero or down; the gradient is zero then.

    Raises
    ------
    RuntimeError
        The shapes do not broadcast, or another rounding mode.
    """
    input, other = operand(input, "/"), operand(other, "/")
    a = input._array if isinstance(input, Tensor) else input
    b = other._array if isinstance(other, Tensor) else other
    if not isinstance(a, _ndarray):
        if not isinstance(other, Tensor):
            first = wrap(np.asarray(input, number_dtype(input)))
            return div(first, other, rounding_mode=rounding_mode)
        if rounding_mode is None:  # PyTorch's own decomposition: 4 / x is a product
            return mul(_reciprocal(other), input)
    if rounding_mode is not None:
        out = _div_rounded(a, b, rounding_mode)
        record("DivBackward2", (input, other), out, fitted(_div_rounded_backward, input, other))
        return out
    dtype = common(a, b)
    if dtype.kind in "biu":
        dtype = get_default_dtype().numpy
    try:
        if elementwise.is_half(dtype):
            value = ignore_errstate(_apply, np.true_divide, a, b, dtype)
        else:
            value = ignore_errstate(np.true_divide, a, b, dtype=dtype, casting="unsafe")
    except ValueError:
        raise RuntimeError(_broadcast_error(a, b)) from None
    except NoValuesError:
        check_together(a, b)
        value = meta(joint_shape(a, b), dtype)
    out = wrap(value if isinstance(value, _ndarray) else np.asarray(value))
    if mode.enabled:
        y_needs = isinstance(other, Tensor) and other.requires_grad
        record(
            "DivBackward0",
            (input, other),
            out,
            fitted(_div_backward, input, other),
            (input if y_needs else None, other),
        )
        _describe_number(out, input, other)
    return out


def _div_backward(needs: tuple[bool, ...], grad: Tensor, x: Any, y: Any) -> tuple:
    by_y = div(grad, conj(y))
    return (by_y if needs[0] else None, neg(mul(by_y, conj(div(x, y)))) if needs[1] else None)


def _reciprocal(x: Tensor) -> Tensor:
    array = x._array
    dtype = array.dtype if array.dtype.kind in "fcV" else get_default_dtype().numpy
    out = wrap(of_each(lambda array: _one_by(array, dtype), array, warns=True))
    record("ReciprocalBackward0", (x,), out, _reciprocal_backward, (out,))
    return out


def _one_by(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    try:
        return np.true_divide(1, array, dtype=dtype)
    except TypeError:
        return _computed_wide(np.true_divide, 1, array, dtype)


def _reciprocal_backward(needs: tuple[bool, ...], grad: Tensor, y: Tensor) -> Tensor:
    return neg(mul(grad, conj(mul(y, y))))


def _div_rounded(a: Any, b: Any, rounding_mode: str) -> Tensor:
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    is_float = _is_float(a, b)
    if is_float and rounding_mode == "trunc":
        return wrap(of_each(np.trunc, compute(np.true_divide, a, b)))
    quotient = compute(np.floor_divide, a, b)
    if not is_float and quotient.size and not isinstance(quotient, MetaArray) and not np.all(b):
        raise RuntimeError("ZeroDivisionError")
    if rounding_mode == "floor":
        return wrap(quotient)
    remainder = compute(np.subtract, a, compute(np.multiply, quotient, b))
    upward = (remainder != 0) & (quotient < 0)
    return wrap(np.asarray(quotient + upward.astype(quotient.dtype)))


def _div_rounded_backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
    """Return zeros: a rounded quotient is constant between its jumps."""
    return tuple([wrap(np.zeros_like(grad._array)) if need else None for need in needs])


def _is_float(a: Any, b: Any) -> bool:
    dtype = common(b, a) if not isinstance(a, _ndarray) else common(a, b)
    return dtype.kind in INEXACT


multiply = mul
subtract = sub
divide = true_divide = div
negative = neg


def _inplace(ufunc: np.ufunc, function: Any, name: str) -> Any:
    """Return the in-place form of an operation: in one step where nothing is recorded."""

    def method(x: Tensor, other: Any, *older: Any, **named: Any) -> Tensor:
        if named or older or needs_history(x, other):
            return inplace(x, function, other, *older, **named)
        a = x._array
        y = operand(other, name)
        b = y._array if isinstance(y, Tensor) else y
        check_writable(x)
        if isinstance(other, Tensor) and other._counter is x._counter:
            check_apart(x, other)
        dtype = common(a, b)
        if ufunc is np.true_divide and dtype.kind in "biu":
            dtype = get_default_dtype().numpy
        if ufunc is np.subtract:
            _refuse_bools(a, b)
        if not can_cast_numpy(dtype, a.dtype):
            names = [scalar_name(d) for d in (dtype, a.dtype)]
            raise RuntimeError(
                f"result type {names[0]} can't be cast to the desired output type {names[1]}"
            )
        shape = getattr(b, "shape", ())
        if a.shape != shape:
            check_fits(a.shape, broadcast_shape(a.shape, shape))
        ignore_errstate(_apply, ufunc, a, b, dtype, a)
        x._counter[0] += 1
        return x

    method.__name__ = f"{function.__name__}_"
    method.__wrapped__ = function  # type: ignore[attr-defined]  # help() shows its arguments
    method.__doc__ = f"Replace the tensor by `{function.__name__}` of it and another, in place."
    return method


add_ = _inplace(np.add, add, "+")
sub_ = _inplace(np.subtract, sub, "-")
mul_ = _inplace(np.multiply, mul, "*")
div_ = _inplace(np.true_divide, div, "/")


def _rdiv(x: Tensor, other: Any) -> Tensor:
    return div(other, x)


FUNCTIONS_ONLY = {"rsub"}
METHODS = {
    "add_": add_,
    "div_": div_,
    "divide_": div_,
    "mul_": mul_,
    "multiply_": mul_,
    "sub_": sub_,
    "subtract_": sub_,
    "true_divide_": div_,
    "__add__": add,
    "__iadd__": add_,
    "__imul__": mul_,
    "__isub__": sub_,
    "__itruediv__": div_,
    "__mul__": mul,
    "__neg__": neg,
    "__pos__": positive,
    "__radd__": add,
    "__rmul__": mul,
    "__rsub__": rsub,
    "__rtruediv__": _rdiv,
    "__sub__": sub,
    "__truediv__": div,
    "negative_": in_place(neg),
    **in_place_methods(neg),
}
