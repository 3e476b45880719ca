"""Elementwise functions of a tensor (exp, sqrt, sigmoid, erf ...), and powers.

All take a Tensor of any shape and give one of the same shape and memory format.  Integers and bools
are computed in the default floating-point type, except where the result is an integer anyway
(`abs`, `floor`, ...).  Each function's gradient stands beside it or below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import get_default_dtype
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.functions._support.arguments import check_tensor, check_tensors, refuse_complex
from convcore.functions._support.dispatch import Op, backward_of, dispatch, of_each
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place, in_place_methods
from convcore.functions._support.scipy_special import of_one
from convcore.functions.elementwise import arithmetic
from convcore.functions.elementwise.arithmetic import (
    add,
    compute,
    conj,
    div,
    mul,
    neg,
    operand,
    sub,
)
from convcore.functions.elementwise.piecewise import masked, where, zeros_like
from convcore.functions.shapes.broadcast import fitted
from convcore.functions.table import row

__all__ = [
    "abs",
    "absolute",
    "acos",
    "arccos",
    "arcsin",
    "arctan",
    "arctan2",
    "asin",
    "atan",
    "atan2",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "pow",
    "reciprocal",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
]


def _as_float(array: np.ndarray) -> np.ndarray:
    """Return the array; of integers and bools, in the default floating-point type."""
    if array.dtype.kind in "fcV":
        return array
    return ignore_errstate(array.astype, get_default_dtype().numpy)


class Unary(Protocol):
    __name__: str

    def __call__(self, input: Tensor) -> Tensor: ...


def _of_input(ufunc: Callable, does: str, gradient: Callable, name: str = "") -> Unary:
    """Return a function whose gradient needs its input x: ``gradient(grad, x)``."""
    return _unary(ufunc, does, gradient, "input", name, ())


def _of_result(
    ufunc: Callable, does: str, gradient: Callable, name: str = "", op: Op = ()
) -> Unary:
    """Return a function whose gradient needs its result y: ``gradient(grad, y)``."""
    return _unary(ufunc, does, gradient, "result", name, op)


def _unary(ufunc: Callable, does: str, gradient: Callable, saved: str, name: str, op: Op) -> Unary:
    """Return the function of a tensor that ``ufunc`` is of an array.

    Parameters
    ----------
    ufunc : callable
    does : str
        What it returns, for its docstring.
    gradient : callable
        ``gradient(grad, saved)``, of Tensors.
    saved : 'input' or 'result'
        What the gradient needs.
    name : str
        '' for the ufunc's.
    op : tuple
        The compiled op that takes over for arrays of its dtypes, as in `dispatch`; () if none.
    """
    name = name or ufunc.__name__.replace("arc", "a")  # PyTorch's asin is NumPy's arcsin
    node = f"{name.title()}Backward0"
    backward = backward_of(op, gradient)

    def function(input: Tensor) -> Tensor:
        if not isinstance(input, Tensor):
            check_tensor(name, input)
        out = wrap(dispatch(op, ufunc, _as_float(input._array)))
        if mode.enabled:
            record(node, (input,), out, backward, (input if saved == "input" else out,))
            describe(out, forward=ufunc, kernel=op)
        return out

    return named(function, name, does)


def named(function: Callable, name: str, does: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {does}."
    return function


# Exponentials and logarithms


exp = _of_result(np.exp, "e to the power of each element", lambda g, y: g * conj(y))
exp2 = _of_result(np.exp2, "2 to the power of each element", lambda g, y: g * conj(y) * math.log(2))
expm1 = _of_result(
    np.expm1, "exp(x) - 1 of each element x, accurate near 0", lambda g, y: g * (conj(y) + 1)
)
log = _of_input(np.log, "the natural logarithm of each element", lambda g, x: g / conj(x))
log2 = _of_input(
    np.log2, "the logarithm to base 2 of each element", lambda g, x: g / (conj(x) * math.log(2))
)
log10 = _of_input(
    np.log10, "the logarithm to base 10 of each element", lambda g, x: g / (conj(x) * math.log(10))
)
log1p = _of_input(
    np.log1p, "log(1 + x) of each element x, accurate near 0", lambda g, x: g / (conj(x) + 1)
)


# Roots and powers


def _rsqrt(array: np.ndarray) -> np.ndarray:
    wide = array.astype(np.float32) if array.dtype.kind == "V" else array
    return np.asarray(np.reciprocal(np.sqrt(wide)), array.dtype)


sqrt = _of_result(
    np.sqrt, "the square root of each element, NaN of negative ones", lambda g, y: g / (conj(y) * 2)
)
rsqrt = _of_result(
    _rsqrt,
    "1 over the square root of each element",
    lambda g, y: g * conj(pow(y, 3)) * -0.5,
    "rsqrt",
)


def square(input: Tensor) -> Tensor:
    """Return the square of each element."""
    return pow(input, 2)


def reciprocal(input: Tensor) -> Tensor:
    """Return 1 over each element."""
    check_tensor("reciprocal", input)
    return arithmetic._reciprocal(input)


def pow(input: Any, exponent: Any) -> Tensor:
    """Return input to the power of exponent, element by element.

    Parameters
    ----------
    input, exponent : Tensor or number, one of them at least a Tensor
        They broadcast.

    Raises
    ------
    RuntimeError
        An integer tensor is raised to a negative integer number, or the shapes do not broadcast.

    Examples
    --------
    >>> import convcore
    >>> convcore.tensor([1.0, 2.0, 3.0]) ** 2
    tensor([1., 4., 9.])
    """
    input, exponent = operand(input, "** or pow()"), operand(exponent, "** or pow()")
    if not isinstance(exponent, Tensor):
        return _pow_number(input, exponent)
    a = input._array if isinstance(input, Tensor) else input
    out = wrap(power_of(a, exponent._array))
    if mode.enabled:
        if isinstance(input, Tensor):
            saved = (input, exponent, out if exponent.requires_grad else None)
            backward = fitted(_pow_backward, input, exponent)
            record("PowBackward1", (input, exponent), out, backward, saved)
        else:
            backward = fitted(_number_pow_backward, exponent)
            record("PowBackward2", (exponent,), out, backward, (input, exponent, out))
    return out


def _pow_number(x: Tensor, n: Any) -> Tensor:
    array = x._array
    if array.dtype.kind in "iub" and type(n) is int and n < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    out = wrap(power_of(array, n))
    if mode.enabled:
        backward = lambda needs, grad, x: (_pow_number_backward(grad, x, n),)  # noqa: E731
        saved = x if n != 0 else None
        if out._array.dtype != array.dtype:
            backward = fitted(backward, x)
        record("PowBackward0", (x,), out, backward, (saved,))
        describe(out, forward=lambda array: power_of(array, n))
    return out


# NumPy's general power is far slower than a product.
_POWERS: dict[float, Callable] = {
    0.5: np.sqrt,
    2: np.square,
    3: lambda array: np.multiply(np.square(array), array),
    -0.5: _rsqrt,
    -1: np.reciprocal,
    -2: lambda array: np.reciprocal(np.square(array)),
}


def power_of(array: Any, n: Any) -> np.ndarray:
    """Return array ** n, of arrays or of an array and a number."""
    short = None
    if type(n) in (int, float):
        # A float power of integers is a default float.
        kinds = "fc" + "iu" * (type(n) is int) if n > 0 else "f"
        short = _POWERS.get(n) if array.dtype.kind in kinds else None
    if short is None:
        bools = _is_bool(array) and _is_bool(n)  # for which NumPy has no power
        if bools or not _has_negative_integers(n):
            return compute(np.greater_equal if bools else np.power, array, n)
        return compute(_integer_power, array, n)
    return of_each(short, array, warns=True)


def _has_negative_integers(n: Any) -> bool:
    return isinstance(n, np.ndarray) and n.dtype.kind == "i" and bool((n < 0).any())


def _integer_power(array: Any, n: Any, out: Any = None, *, dtype: Any, casting: Any) -> np.ndarray:
    """Return array ** n; of integers and a negative n, 1 / array ** -n without its fraction."""
    if dtype.kind not in "iu":
        return np.power(array, n, dtype=dtype, casting=casting)
    upward = np.power(array, np.abs(n), dtype=dtype, casting=casting)
    return np.where(n >= 0, upward, np.where(np.abs(array) == 1, upward, 0)).astype(dtype)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) == np.bool_


def _pow_number_backward(grad: Tensor, x: Any, n: Any) -> Tensor:
    if n == 0:
        return zeros_like(grad)
    if n == 1:
        return mul(grad, 1)
    slope = mul(x, n) if n == 2 else mul(pow(x, n - 1), n)
    return mul(grad, conj(slope))


def _pow_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, n: Tensor, y: Any) -> tuple:
    grad_x = grad_n = None
    if needs[0]:
        slope = mul(grad, conj(mul(pow(x, sub(n, 1)), n)))
        grad_x = masked(slope, n._array != 0)
    if needs[1]:
        complex_base = y._array.dtype.kind == "c" and x._array.dtype.kind != "c"
        grad_n = mul(grad, conj(mul(y, _log_of_base(x, n, complex_base))))
    return grad_x, grad_n


def _number_pow_backward(
    needs: tuple[bool, ...], grad: Tensor, x: Any, n: Tensor, y: Tensor
) -> tuple:
    if x == 0:
        slopes = np.where(n._array.real >= 0, 0, -math.inf).astype(y._array.real.dtype)
        return (mul(grad, conj(mul(y, wrap(np.asarray(slopes))))),)
    logarithm = np.log(complex(x)) if isinstance(x, complex) or x < 0 else math.log(x)
    if y._array.dtype.kind != "c" and isinstance(logarithm, complex):
        logarithm = math.nan
    return (mul(grad, conj(mul(y, logarithm))),)


_COMPLEX_ONE = wrap(np.ones((), np.complex64))


def _log_of_base(x: Tensor, n: Tensor, as_complex: bool) -> Tensor:
    """Return log(x), and 0 where x is zero and n is not below: there x**n log(x) is taken for 0."""
    flat = np.asarray((x._array == 0) & (n._array.real >= 0))
    if flat.any():
        x = where(wrap(flat), 1, x)
    return log(mul(x, _COMPLEX_ONE) if as_complex else x)  # of negative numbers too


# Size and sign


def abs(input: Tensor) -> Tensor:
    """Return the absolute value of each element, a real number."""
    check_tensor("abs", input)
    array = input._array
    if array.dtype.kind == "b":
        raise NotImplementedError("\"abs_cpu\" not implemented for 'Bool'")
    out = wrap(of_each(np.absolute, array))
    if mode.enabled:
        record("AbsBackward0", (input,), out, _abs_backward, (input,))
    return out


def abs_(input: Tensor) -> Tensor:
    """Do what `abs` does, in place, to real numbers."""
    check_tensor("abs_", input)
    refuse_complex("In-place abs is not supported for complex tensors.", input)
    return _abs_in_place(input)


_abs_in_place = in_place(abs)


def _abs_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor) -> Tensor:
    return mul(grad, sgn(x))


def sgn(input: Tensor) -> Tensor:
    """Return each element over its absolute value, and 0 for 0."""
    check_tensor("sgn", input)
    array = input._array
    if array.dtype.kind != "c":
        return step("SgnBackward0", _sign, input)
    out = wrap(of_each(np.sign, array))  # NumPy 2: z / |z|
    if mode.enabled:
        record("SgnBackward0", (input,), out, _sgn_backward, (input,))
    return out


def _sgn_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor) -> Tensor:
    # d(z / |z|) keeps the part of dz that is at a right angle to z.
    size, direction = abs(x), sgn(x)
    along = mul(grad, conj(direction))
    radial = mul(mul(add(along, conj(along)), 0.5), direction)
    return masked(div(sub(grad, radial), size), size._array != 0)


def _sign(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "b":
        return array.copy(order="K")
    result = np.asarray(np.sign(array))
    if array.dtype.kind in "fV":  # bfloat16 is a "V"; PyTorch has no sign of NaN but 0
        np.copyto(result, 0, where=np.isnan(array))
    return result


def step(name: str, ufunc: Callable, x: Tensor) -> Tensor:
    """Return ``ufunc(x)`` of a function that is constant between its jumps."""
    if not isinstance(x, Tensor):
        check_tensor(name[:-9].lower(), x)
    out = wrap(of_each(ufunc, x._array, warns=True))
    record(name, (x,), out, _step_backward)
    return out


def _step_backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
    return zeros_like(grad)


def sign(input: Tensor) -> Tensor:
    """Return -1, 0 or 1, by the sign of each element."""
    check_tensor("sign", input)
    if input._array.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
            "torch.sgn instead."
        )
    return step("SignBackward0", _sign, input)


# Angles


sin = _of_input(
    np.sin, "the sine of each element, an angle in radians", lambda g, x: g * conj(cos(x))
)
cos: Unary = _of_input(
    np.cos, "the cosine of each element, an angle in radians", lambda g, x: -(g * conj(sin(x)))
)
tan = _of_result(
    np.tan, "the tangent of each element, an angle in radians", lambda g, y: g * conj(square(y) + 1)
)
asin = _of_input(
    np.arcsin,
    "the angle whose sine each element is, in radians",
    lambda g, x: g * conj(rsqrt(1 - square(x))),
)
acos = _of_input(
    np.arccos,
    "the angle whose cosine each element is, in radians",
    lambda g, x: -(g * conj(rsqrt(1 - square(x)))),
)
atan = _of_input(
    np.arctan,
    "the angle whose tangent each element is, in radians",
    lambda g, x: g / conj(square(x) + 1),
)


def atan2(input: Tensor, other: Tensor) -> Tensor:
    """Return the angle in radians of the point (other, input), seen from the origin."""
    check_tensors("atan2", input, other)
    a, b = input._array, other._array
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        a, b = _as_float(a), _as_float(b)
    out = wrap(compute(np.arctan2, a, b))
    if mode.enabled:
        record(
            "Atan2Backward0",
            (input, other),
            out,
            fitted(_atan2_backward, input, other),
            (input, other),
        )
    return out


def _atan2_backward(needs: tuple[bool, ...], grad: Tensor, y: Tensor, x: Tensor) -> tuple:
    squared = add(square(y), square(x))
    over = masked(div(grad, squared), squared._array != 0)
    return (mul(over, x) if needs[0] else None, neg(mul(over, y)) if needs[1] else None)


# Hyperbolic functions and their relatives


sinh = _of_input(np.sinh, "the hyperbolic sine of each element", lambda g, x: g * conj(cosh(x)))
cosh: Unary = _of_input(
    np.cosh, "the hyperbolic cosine of each element", lambda g, x: g * conj(sinh(x))
)
tanh = row(lambda m, x: m.tanh(x), operator="Tanh")(
    _of_result(
        np.tanh,
        "the hyperbolic tangent of each element",
        lambda g, y: g * conj(1 - square(y)),
        op=("tanh",),
    )
)


def sigmoid_of(array: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)) of floating-point or complex numbers."""
    value = np.negative(array)
    if value.ndim == 0:
        return np.reciprocal(np.exp(value) + value.dtype.type(1))
    np.exp(value, out=value)
    value += 1
    return np.reciprocal(value, out=value)


sigmoid = row(lambda m, x: 1 / (1 + m.exp(-x)), operator="Sigmoid")(
    _of_result(
        sigmoid_of,
        "1 / (1 + exp(-x)) of each element x",
        lambda g, y: g * conj(y * (1 - y)),
        *("sigmoid", ("sigmoid",)),
    )
)


erf_of = of_one("erf", "erf_vml_cpu")
erf = _of_input(
    erf_of,
    "the error function of each element, 2/sqrt(pi) times the integral of exp(-t^2)",
    lambda g, x: g * exp(-square(x)) * (2 / math.sqrt(math.pi)),
    "erf",
)


absolute = abs
arccos = acos
arcsin = asin
arctan = atan
arctan2 = atan2

METHODS = {
    "__abs__": abs,
    "__ipow__": in_place(pow),
    "__pow__": pow,
    "__rpow__": lambda self, other: pow(other, self),
}
METHODS |= in_place_methods(
    *(abs, acos, asin, atan, atan2, cos, cosh, erf, exp, exp2, expm1, log),
    *(log10, log1p, log2, pow, reciprocal, rsqrt, sgn, sigmoid, sign, sin, sinh, sqrt, square, tan),
    tanh,
)
METHODS["abs_"] = abs_
for _alias, _name in (
    *(("absolute", "abs"), ("arccos", "acos"), ("arcsin", "asin"), ("arctan", "atan")),
    *(("arctan2", "atan2"),),
):
    METHODS[f"{_alias}_"] = METHODS[f"{_name}_"]
