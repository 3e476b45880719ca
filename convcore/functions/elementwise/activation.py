"""Activation functions: relu, gelu, silu and the like.

Activations are elementwise, except glu, which splits an axis ``dim``.  With ``inplace=True`` the
tensor's own elements are replaced, and the tensor is returned.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore.autograd import views
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, needs_history, record
from convcore.engine.layers.elementwise import elementwise
from convcore.engine.runtime.storages import may_overlap
from convcore.functions._support.arguments import check_arguments, check_kind, check_tensor, number
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.dispatch import (
    backward_of,
    compiled,
    flat_in,
    for_comparisons,
    of_each,
)
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import forward_only, in_place
from convcore.functions.elementwise.arithmetic import _number, add, div, mul, sub
from convcore.functions.elementwise.elementwise import abs, erf, erf_of, exp, sigmoid, square, tanh
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.elementwise.piecewise import masked
from convcore.functions.shapes.broadcast import fitted
from convcore.functions.shapes.shape import reshape
from convcore.functions.shapes.splitting import chunk
from convcore.functions.table import row

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "selu",
    "selu_",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
    "threshold_",
]


# relu


@row(lambda m, x: m.where(x < 0, 0, x), operator="Relu")
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the rectified linear unit max(x, 0) of each element x; NaN stays.

    Parameters
    ----------
    input : Tensor
    inplace : bool

    Raises
    ------
    RuntimeError
        input is a bool tensor, or complex: NotImplementedError.

    Notes
    -----
    Backward needs the result alone.

    Examples
    --------
    >>> import convcore
    >>> convcore.relu(convcore.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if inplace:
        return relu_(input)
    if not isinstance(input, Tensor):
        check_tensor("relu", input)
    array = input._array
    _refuse_unordered(array)
    if elementwise.has_kernel("relu", array):
        out = wrap(elementwise.forward("relu", array))
    else:
        out = wrap(of_each(_positive, array))
    if mode.enabled:
        record("ReluBackward0", (input,), out, _relu_backward, (out,))
    return out


def relu_(input: Tensor) -> Tensor:
    """Replace the negative elements by 0, in place."""
    check_tensor("relu_", input)
    _refuse_unordered(input._array)
    return views.write(input, _clip_at_zero, "ReluBackward0", (input,), _relu_backward, (input,))


def _refuse_unordered(array: np.ndarray) -> None:
    if array.dtype.kind in "bc":
        if array.dtype.kind == "c":
            raise NotImplementedError("clamp is not supported for complex types")
        raise RuntimeError("Boolean inputs not supported for relu")


def _positive(array: np.ndarray, out: np.ndarray | None = None) -> Any:
    """Return max(array, 0); NaN stays."""
    return np.maximum(array, array.dtype.type(0), out=out)


def _clip_at_zero(array: np.ndarray) -> None:
    if elementwise.has_kernel("relu", array):
        elementwise.forward_in_place("relu", array)
    else:
        _positive(array, array)


# NaN is not <= 0: a gradient goes on where the result is NaN, as in PyTorch.
_relu_backward = backward_of(("relu",), lambda grad, y: masked(grad, y._array != 0))


# Piecewise linear activations


def sloped(grad: Tensor, mask: np.ndarray, slope: float) -> Tensor:
    """Return the gradient where the mask is true, and ``slope`` times it elsewhere."""
    dtype = grad._array.dtype
    if 0 <= slope <= 1:  # np.where is far slower where the mask has no pattern
        slopes = np.asarray(np.maximum(mask, dtype.type(slope), dtype=dtype))
    else:
        slopes = np.where(mask, dtype.type(1), dtype.type(slope))
    if mode.enabled:
        return mul(grad, wrap(slopes))
    ignore_errstate(np.multiply, grad._array, slopes, out=slopes)
    return wrap(slopes)


@row(
    lambda m, x, negative_slope=0.01: m.where(x > 0, x, x * negative_slope),
    *({"negative_slope": 0.2}, {"negative_slope": 1.5}, {"negative_slope": 0.0}),
    operator="LeakyRelu",
    alpha="negative_slope",
)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return the leaky ReLU: x where x >= 0, and negative_slope * x elsewhere."""
    check_tensor("leaky_relu", input)
    slope = number("leaky_relu", "negative_slope", negative_slope)
    gradient = lambda g, x: sloped(g, x._array > 0, slope)  # noqa: E731
    if inplace and slope < 0:
        return views.inplace(input, forward_only("leakyReLu", leaky_relu), slope)
    return compiled(input, ("leaky_relu", slope), gradient, inplace)


@row(
    lambda m, x, min_val=-1.0, max_val=1.0: m.clip(x, min_val, max_val),
    {"min_val": -0.7, "max_val": 1.2},
)
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Clamp each element to [min_val, max_val].

    Raises
    ------
    ValueError
        min_val is above max_val.
    """
    check_tensor("hardtanh", input)
    min_val = number("hardtanh", "min_val", min_val)
    max_val = number("hardtanh", "max_val", max_val)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _hardtanh(input, min_val, max_val, inplace)


def _hardtanh(x: Tensor, low: float, high: float, inplace: bool) -> Tensor:
    def gradient(grad: Tensor, x: Tensor) -> Tensor:
        array = for_comparisons(x._array)
        return masked(grad, ~((array <= low) | (array >= high)))

    return compiled(x, ("clamp", low, high), gradient, inplace, "Hardtanh")


@row(lambda m, x: m.clip(x, 0, 6))
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clamp each element to [0, 6]."""
    check_tensor("relu6", input)
    return _hardtanh(input, 0.0, 6.0, inplace)


@row(
    lambda m, x, threshold, value: m.where(x <= threshold, value, x),
    {"threshold": 0.3, "value": 5.0},
)
@names_arguments
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return each element that is above ``threshold``, and ``value`` for the others."""
    return _threshold_of(input, threshold, value, inplace)


def _threshold_of(input: Tensor, threshold: float, value: float, inplace: bool) -> Tensor:
    check_tensor("threshold", input)
    check_kind("threshold_cpu", input, "fiubV")
    threshold = number("threshold", "threshold", threshold)
    args = input, threshold, number("threshold", "value", value)
    if not inplace:
        return _threshold(*args)
    if may_overlap(input._array) and not needs_history(input):  # to do it twice does no harm
        input._array[...] = _threshold(*args)._array
        input._counter[0] += 1
        return input
    return views.inplace(input, _threshold, *args[1:])


def _threshold(x: Tensor, least: float, value: float) -> Tensor:
    op, array = ("threshold", least, value), x._array
    if elementwise.computes("threshold", array.dtype):
        out = wrap(of_each(lambda array: elementwise.forward("threshold", array, op[1:]), array))
    else:
        small = (array.astype(np.uint8) if array.dtype.kind == "b" else array) <= least
        out = wrap(np.asarray(np.where(small, _number(value, array.dtype), array)))
    if mode.enabled:
        backward = backward_of(op, lambda g, x: masked(g, ~(for_comparisons(x._array) <= least)))
        record("ThresholdBackward0", (x,), out, backward, (x,))
        describe(out, kernel=op)
    return out


@row(lambda m, x: m.clip(x + 3, 0, 6) / 6, operator="HardSigmoid", alpha=1 / 6, beta=0.5)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the piecewise linear sigmoid of each element x: x / 6 + 1 / 2, clamped to [0, 1]."""
    return compiled(input, ("hardsigmoid",), _hardsigmoid_gradient, inplace)


def _hardsigmoid_gradient(grad: Tensor, x: Tensor) -> Tensor:
    return masked(grad, (x._array > -3) & (x._array < 3)) / 6


@row(lambda m, x: x * m.hardsigmoid(x))
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the piecewise swish: each element times its `hardsigmoid`."""
    return compiled(input, ("hardswish",), _hardswish_gradient, inplace)


def _hardswish_gradient(grad: Tensor, x: Tensor) -> Tensor:
    curved = grad * (x / 3 + 0.5)
    pairs = ((x._array, -3), (3, x._array))
    flat, steep = (ignore_errstate(np.less_equal, *pair) for pair in pairs)
    return masked(curved, ~(flat | steep)) + masked(grad, steep)


@row(
    lambda m, x, lambd=0.5: m.where(m.abs(x) <= lambd, 0, x),
    {"lambd": 0.6},
    operator="Shrink",
    lambd="lambd",
    bias=0.0,
)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return each element, and 0 where it lies in [-lambd, lambd]."""
    check_tensor("hardshrink", input)
    lambd = number("hardshrink", "lambd", lambd)
    return compiled(input, ("hardshrink", lambd), partial(_outside, lambd))


@row(
    lambda m, x, lambd=0.5: x - m.clip(x, -lambd, lambd),
    {"lambd": 0.6},
    operator="Shrink",
    lambd="lambd",
    bias="lambd",
)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return each element moved towards 0 by ``lambd``, and 0 where it lies within.

    Raises
    ------
    RuntimeError
        lambd is negative.
    """
    check_tensor("softshrink", input)
    lambd = number("softshrink", "lambd", lambd)
    most = float(np.finfo(input._array.dtype).max) if input._array.dtype.kind == "f" else np.inf
    if not 0 <= lambd <= most:
        raise RuntimeError(
            f"lambda must be in range [0, {most:g}] for input dtype "
            f"{scalar_name(input._array.dtype)}, but found {lambd:g}"
        )
    return compiled(input, ("softshrink", lambd), partial(_outside, lambd))


def _outside(edge: float, grad: Tensor, x: Tensor) -> Tensor:
    """Return the gradient where x is not in [-edge, edge], and 0 elsewhere."""
    return masked(grad, ~(np.absolute(x._array) <= edge))


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return the parametric ReLU: each element, times its channel's weight where it is negative.

    Parameters
    ----------
    input : Tensor (N, C, ...)
    weight : Tensor of one element, or of C

    Raises
    ------
    RuntimeError
        weight has neither one element nor one a channel.
    """
    check_arguments("prelu", input=input, weight=weight)
    _check_prelu_dtypes(input, weight)
    rank, size = input._array.ndim, weight._array.size
    channels = input._array.shape[1] if rank > 1 else 1
    if size not in (1, channels):
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{size} and channel size = {channels}."
        )
    if rank > 1 or weight._array.ndim != rank:
        weight = reshape(weight, (1, size, *(1,) * (rank - 2)) if rank > 1 else (1,) * rank)
    out = wrap(_by_slopes("prelu", input._array, weight._array))
    if mode.enabled:
        saved = (input, weight)
        record("PreluKernelBackward0", saved, out, fitted(_prelu_backward, *saved), saved)
    return out


def _check_prelu_dtypes(input: Tensor, weight: Tensor) -> None:
    x, w = input._array.dtype, weight._array.dtype
    if "c" in (x.kind, w.kind):
        if x != w:
            raise RuntimeError(
                f"prelu: Type promoting not supported. Got {scalar_name(x)} and {scalar_name(w)}"
            )
        check_kind("prelu_cpu", input, "fiubV")


def _by_slopes(kernel: str, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return each element, or 1, times its channel's slope where it is negative."""
    if x.ndim > 2:
        channels = np.zeros((1, x.shape[1], *(1,) * (x.ndim - 2)), slopes.dtype) + slopes
        value = elementwise.by_channel(kernel, x, channels)
        if value is not None:
            return value
    if kernel == "prelu":
        return np.asarray(np.where(x > 0, x, ignore_errstate(np.multiply, x, slopes)))
    return np.where(x > 0, x.dtype.type(1), slopes)


def _prelu_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, weight: Tensor) -> tuple:
    grad_x = grad_weight = None
    if needs[0]:
        if mode.enabled:
            positive = x._array > 0
            grad_x = add(masked(grad, positive), masked(mul(grad, weight), ~positive))
            grad_x = flat_in(grad_x, x)
        else:
            grad_x = mul(grad, wrap(_by_slopes("prelu_slope", x._array, weight._array)))
    if needs[1]:
        grad_weight = flat_in(masked(mul(grad, x), ~(x._array > 0)), weight)
    return grad_x, grad_weight


# Smooth activations


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@row(
    lambda m, x, alpha=1.0: m.where(x > 0, x, alpha * m.expm1(m.minimum(x, 0))),
    {"alpha": 0.7},
    operator="Elu",
    alpha="alpha",
)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the exponential linear unit: x, and alpha * (exp(x) - 1) where x is negative."""
    check_tensor("elu", input)
    return _elu(input, number("elu", "alpha", alpha), 1.0, 1.0, inplace)


@row(
    lambda m, x: _SELU_SCALE * m.where(x > 0, x, _SELU_ALPHA * m.expm1(m.minimum(x, 0))),
    operator="Selu",
)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the scaled ELU: `elu` with the alpha and the scale that keep means 0 and variances 1.

    References
    ----------
    G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, "Self-Normalizing Neural Networks",
    NeurIPS 2017.
    """
    check_tensor("selu", input)
    return _elu(input, _SELU_ALPHA, _SELU_SCALE, 1.0, inplace)


@row(
    lambda m, x, alpha=1.0: m.where(x > 0, x, alpha * m.expm1(m.minimum(x, 0) / alpha)),
    {"alpha": 0.7},
    operator="Celu",
    alpha="alpha",
)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the continuously differentiable ELU: x, and alpha * (exp(x / alpha) - 1) below 0.

    Raises
    ------
    RuntimeError
        alpha is 0.
    """
    check_tensor("celu", input)
    alpha = number("celu", "alpha", alpha)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _elu(input, alpha, 1.0, 1.0 / alpha, inplace, "Celu")


def _elu(
    x: Tensor, alpha: float, scale: float, input_scale: float, inplace: bool, node: str = "Elu"
) -> Tensor:
    """Return scale * x, and scale * alpha * (exp(input_scale * x) - 1) where x is negative."""
    if inplace and alpha < 0:
        function = partial(_elu, inplace=False, node=node)
        return views.inplace(x, forward_only("elu", function), alpha, scale, input_scale)

    def gradient(grad: Tensor, x: Tensor) -> Tensor:
        positive = x._array > 0
        # What is above 0 must not become infinite only to be masked; 0 has no second derivative.
        slope = exp(masked(x, ~(x._array >= 0)) * input_scale)
        curve = grad * slope * (alpha * scale * input_scale)
        return masked(grad, positive) * scale + masked(curve, ~positive)

    return compiled(x, ("elu", alpha * scale, scale, input_scale), gradient, inplace, node)


def _gelu_formula(m: Any, x: Any, approximate: str = "none") -> Any:
    inner = x * math.sqrt(0.5)
    if approximate == "tanh":
        inner = (x + x * (x * x) * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * ((m.erf if approximate == "none" else m.tanh)(inner) + 1)


@row(_gelu_formula, {}, {"approximate": "tanh"})
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return the Gaussian error linear unit: x times the normal distribution function of x.

    Parameters
    ----------
    input : Tensor
    approximate : 'none' or 'tanh'
        'tanh' takes tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) for the error function.

    Raises
    ------
    RuntimeError
        Another value of ``approximate``.

    References
    ----------
    D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415, sections 2 and 4.
    """
    check_tensor("gelu", input)
    if approximate == "none":
        return compiled(input, ("gelu",), _gelu_gradient, ufunc=_gelu)
    if approximate == "tanh":
        return compiled(input, ("gelu_tanh",), _gelu_tanh_gradient, node="Gelu")
    raise RuntimeError("approximate argument must be either none or tanh.")


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * (erf_of(np.asarray(x * x.dtype.type(math.sqrt(0.5)))) + 1) * x.dtype.type(0.5)


def _gelu_gradient(grad: Tensor, x: Tensor) -> Tensor:
    below = (erf(x * math.sqrt(0.5)) + 1) * 0.5
    density = exp(square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))
    return grad * (below + x * density)


def _gelu_tanh_gradient(grad: Tensor, x: Tensor) -> Tensor:
    squared = square(x)
    root = math.sqrt(2 / math.pi)
    high = tanh(x * (squared * 0.044715 + 1) * root)
    inner_slope = (squared * (3 * 0.044715) + 1) * root
    slope = x * (1 - square(high)) * inner_slope
    return grad * ((high + 1 + slope) * 0.5)


@row(lambda m, x: x * m.sigmoid(x))
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the sigmoid linear unit (swish): each element times its `sigmoid`."""
    return compiled(input, ("silu",), _silu_gradient, inplace)


def _silu_gradient(grad: Tensor, x: Tensor) -> Tensor:
    s = sigmoid(x)
    return grad * (s * (x * (1 - s) + 1))


@row(lambda m, x: x * m.tanh(m.softplus(x)))
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return each element times the tanh of its `softplus`."""
    return compiled(input, ("mish",), _mish_gradient, inplace)


def _mish_gradient(grad: Tensor, x: Tensor) -> Tensor:
    t = tanh(softplus(x))
    return grad * (t + x * sigmoid(x) * (1 - square(t)))


def _softplus_formula(m: Any, x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = x * beta
    soft = m.maximum(scaled, 0) + m.log1p(m.exp(-m.abs(scaled)))
    return m.where(scaled > threshold, x, soft / beta)


@row(_softplus_formula, {}, {"beta": 2.0, "threshold": 3.0}, operator="Softplus")
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta, and x itself where beta * x is above threshold."""
    check_tensor("softplus", input)
    beta = number("softplus", "beta", beta)
    threshold = number("softplus", "threshold", threshold)

    def gradient(grad: Tensor, x: Tensor) -> Tensor:
        scaled = x * beta
        straight = scaled._array > threshold
        return masked(grad, straight) + masked(grad * sigmoid(scaled), ~straight)

    return compiled(input, ("softplus", beta, threshold), gradient)


@row(lambda m, x: -m.softplus(-x))
def logsigmoid(input: Tensor) -> Tensor:
    """Return the logarithm of the `sigmoid` of each element."""
    return compiled(input, ("logsigmoid",), lambda g, x: g * sigmoid(-x), node="LogSigmoid")


@row(lambda m, x: x / (1 + m.abs(x)), operator="Softsign")
def softsign(input: Tensor) -> Tensor:
    """Return x / (1 + |x|) of each element x."""
    check_tensor("softsign", input)
    return div(input, add(abs(input), 1))


@row(lambda m, x: x - m.tanh(x))
def tanhshrink(input: Tensor) -> Tensor:
    """Return each element minus its tanh."""
    return sub(input, tanh(input))


@in_float32
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the gated linear unit: the first half along an axis times the `sigmoid` of the second.

    Raises
    ------
    RuntimeError
        The axis has an odd size.
    """
    check_tensor("glu", input)
    if input._array.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    along = wrap_dim(dim, input._array.ndim)
    size = input._array.shape[along]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {along} is size {size}")
    value, gate = chunk(input, 2, along)
    return mul(value, sigmoid(gate))


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Replace each element, in place, by `elu` of it; backward refuses a negative alpha."""
    return elu(input, alpha, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Replace each element, in place, by `leaky_relu` of it; backward refuses negative slopes."""
    return leaky_relu(input, negative_slope, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Replace each element, in place, by `celu` of it; backward refuses a negative alpha."""
    return celu(input, alpha, inplace=True)


@names_arguments
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Replace each element that is not above ``threshold``, in place, by ``value``."""
    return _threshold_of(input, threshold, value, inplace=True)


hardtanh_ = in_place(hardtanh)
selu_ = in_place(selu)

FUNCTIONS_ONLY = {*__all__} - {"hardshrink", "prelu", "relu", "relu_"}
