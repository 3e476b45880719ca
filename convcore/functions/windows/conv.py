"""Differentiable conv1d to conv3d and their transposes, made of three recorded bilinear maps.

The sum over n, o, c, j, t of x[n, c, j*stride - before + t*dilation] * w[o, c, t] * y[n, o, j] is
linear in each of x, w and y.  Its derivative by y is the convolution `_forward`, that by x is
`_input_grad`, that by w `_weight_grad`.  So the gradients of each of the three are the other two,
and gradients of any order come for free.  A transposed convolution is `_input_grad` used forwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from convcore import engine
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.engine.conv.epilogue import Activation
from convcore.engine.geometry import Steps, make_geometry, per_axis
from convcore.engine.runtime.casts import astype
from convcore.functions._support.axes import expand_to
from convcore.functions._support.conv_checks import ConvError, check_operands, conv_error
from convcore.functions._support.dispatch import flat_in, later_place_of
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.arithmetic import add, conj, mul
from convcore.functions.reductions.reduce import sum
from convcore.functions.shapes.broadcast import cast
from convcore.functions.shapes.shape import reshape, squeeze, unsqueeze
from convcore.functions.windows.padding import pad

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

_SINGLE = np.dtype(np.float32)

Needs = tuple[bool, ...]
# An activation as the engine takes it, and its gradient from that of its result and the result.
Fused = tuple[Activation, Callable[[Tensor, Tensor], Tensor]]


def _conv_transpose(
    rank: int, input: Tensor, weight: Tensor, bias: Tensor | None, output_padding: Any, steps: Steps
) -> Tensor:
    check_operands("conv_transpose", rank, input, weight, bias, steps, output_padding)
    try:
        if input._array.ndim == rank + 2:
            return _transposed(input, weight, bias, output_padding, steps)
        return squeeze(_transposed(unsqueeze(input, 0), weight, bias, output_padding, steps), 0)
    except ConvError as error:
        function, cause = f"conv_transpose{rank}d", error.cause
        raise conv_error(function, cause, input, weight, bias, steps, output_padding) from None


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve (N, C_in, W) or (C_in, W) with (C_out, C_in/G, KW); the rest as for `conv2d`."""
    return convolution(1, input, weight, bias, Steps(stride, padding, dilation, groups))


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve images with a kernel, which is not flipped (a cross-correlation).

    Parameters
    ----------
    input : (N, C_in, H, W) or (C_in, H, W)
    weight : (C_out, C_in/G, KH, KW), the same dtype
    bias : (C_out,), the same dtype, optional
    stride, dilation : int, or one int an axis
    padding : int, one int an axis, 'valid' (none) or 'same' (as large an output; stride 1 only)
        Zeros on both sides; of an odd total for 'same' the extra zero stands after.
    groups : int
        Divides C_in and C_out; each group of output channels sees its group of input channels.

    Returns
    -------
    (N, C_out, OH, OW) or (C_out, OH, OW)
        With OH = (H + 2*padding - dilation*(KH - 1) - 1) // stride + 1, and OW likewise.
        channels_last in memory if input or weight is.

    Raises
    ------
    TypeError
        An argument is no tensor, or a parameter no int.
    RuntimeError
        Shapes or dtypes that do not go together, or a parameter out of its range.
    NotImplementedError
        bool tensors.

    Notes
    -----
    float16 and bfloat16 are computed in float32 and rounded once; integers are computed in
    float64, and refused where that would not be exact.  Memory, algorithms and what is parallel:
    see `convcore.engine.conv_forward`.

    Examples
    --------
    >>> import convcore
    >>> image = convcore.arange(9.0).view(1, 1, 3, 3)
    >>> conv2d(image, convcore.ones(1, 1, 2, 2))
    tensor([[[[ 8., 12.],
              [20., 24.]]]])
    """
    return convolution(2, input, weight, bias, Steps(stride, padding, dilation, groups))


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve (N, C_in, D, H, W) or (C_in, D, H, W) with (C_out, C_in/G, KD, KH, KW).

    The rest as for `conv2d`.
    """
    return convolution(3, input, weight, bias, Steps(stride, padding, dilation, groups))


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transpose a convolution: (N, C_in, W) or (C_in, W) with (C_in, C_out/G, KW).

    The rest as for `conv_transpose2d`.
    """
    steps = Steps(stride, padding, dilation, groups)
    return _conv_transpose(1, input, weight, bias, output_padding, steps)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transpose a convolution: add up copies of the kernel, each scaled by one input pixel.

    It is the input gradient of the `conv2d` with the same weight and parameters.

    Parameters
    ----------
    input : (N, C_in, H, W) or (C_in, H, W)
    weight : (C_in, C_out/G, KH, KW), the same dtype
    bias : (C_out,), the same dtype, optional
    stride, dilation : int, or one int an axis
    padding : int, or one int an axis
        Pixels cut off both sides of the output.
    output_padding : int, or one int an axis, smaller than stride or dilation there
        Pixels added after the output.
    groups : int

    Returns
    -------
    (N, C_out, OH, OW) or (C_out, OH, OW)
        With OH = (H - 1)*stride - 2*padding + dilation*(KH - 1) + 1 + output_padding, and OW
        likewise.

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError
        As `conv2d`.

    Examples
    --------
    >>> import convcore
    >>> conv_transpose2d(convcore.ones(1, 1, 1, 2), convcore.ones(1, 1, 1, 3), stride=2)
    tensor([[[[1., 1., 2., 1., 1.]]]])
    """
    steps = Steps(stride, padding, dilation, groups)
    return _conv_transpose(2, input, weight, bias, output_padding, steps)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transpose a convolution: (N, C_in, D, H, W) or unbatched, (C_in, C_out/G, KD, KH, KW).

    The rest as for `conv_transpose2d`.
    """
    steps = Steps(stride, padding, dilation, groups)
    return _conv_transpose(3, input, weight, bias, output_padding, steps)


def convolution(
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    steps: Steps,
    fused: Fused | None = None,
) -> Tensor:
    """Return a convolution over ``rank`` axes, or its activation where one is ``fused``."""
    padding = steps.padding
    check_operands("conv", rank, input, weight, bias, steps)
    try:
        if padding.__class__ is str and padding == "same":
            input, steps = _with_symmetric_padding(rank, input, weight, steps)
        if input._array.ndim == rank + 2:
            return _forward(input, weight, bias, steps, fused)
        return squeeze(_forward(unsqueeze(input, 0), weight, bias, steps, fused), 0)
    except ConvError as error:
        raise conv_error(f"conv{rank}d", error.cause, input, weight, bias, steps) from None


def _with_symmetric_padding(rank: int, x: Tensor, w: Tensor, steps: Steps) -> tuple[Tensor, Steps]:
    """Return input and steps for 'same' with equal padding on both sides.

    Of an odd total, one zero is first appended to the input, as in PyTorch, where hooks see it.
    """
    strides, dilations = _per_axis(rank, stride=steps.stride, dilation=steps.dilation)
    if strides != (1,) * rank:
        return x, steps  # which the engine refuses
    totals = [d * (k - 1) for d, k in zip(dilations, w._array.shape[2:], strict=True)]
    if not any(total % 2 for total in totals) or min(totals) < 0:
        return x, steps
    padded = pad(x, [n for total in reversed(totals) for n in (0, total % 2)])
    return padded, steps._replace(padding=tuple([total // 2 for total in totals]))


def _per_axis(rank: int, **values: Any) -> list[tuple[int, ...]]:
    """Return one int an axis for each of the values; strides and dilations are at least 1."""
    try:
        return [
            per_axis(name, value, rank, least=0 if name == "output_padding" else 1)
            for name, value in values.items()
        ]
    except (TypeError, ValueError) as cause:
        raise ConvError(cause) from None


class _Kernel(NamedTuple):
    """What a gradient needs to know of the weights."""

    sizes: Sequence[int]
    dtype: np.dtype

    @classmethod
    def of(cls, w: Tensor) -> _Kernel:
        return cls(w._array.shape[2:], w._array.dtype)


# The three bilinear maps.  `needs` and the results of a backward go with the recorded inputs.


def _forward(
    x: Tensor, w: Tensor, bias: Tensor | None, steps: Steps, fused: Fused | None = None
) -> Tensor:
    """Return y = conv(x, w) + bias, followed by the activation if one is fused."""
    if not w._array.shape[1]:
        return _of_no_channels(x, w, bias, steps)
    b = None if bias is None else bias._array
    if fused is not None:
        return _forward_fused(x, w, bias, b, steps, fused)
    out = wrap(_computed(engine.conv_forward, x._array, w._array, b, steps))
    if mode.enabled:
        backward = partial(_forward_backward, x._array.shape[2:], _Kernel.of(w), steps)
        record("ConvolutionBackward0", (x, w, bias), out, _flat(backward, x, w), _needed(x, w))
        describe(out, steps=steps, bias=bias, transposed=False)
    return out


def _of_no_channels(x: Tensor, w: Tensor, bias: Tensor | None, steps: Steps) -> Tensor:
    """Return the convolution of images without channels: zeros, or the bias."""
    (n, c_in, *sizes), (c_out, _, *kernel) = x._array.shape, w._array.shape
    try:
        if c_in:
            raise ValueError(
                f"Given groups={steps.groups}, weight of size {list(w.shape)}, expected input"
                f"{list(x.shape)} to have 0 channels, but got {c_in} channels instead"
            )
        shape = make_geometry((n, 1, *sizes), (c_out, 1, *kernel), *steps[:3]).output_shape
    except (TypeError, ValueError) as cause:
        raise ConvError(cause) from None
    nothing = add(sum(x), sum(w))  # which keeps both in the graph
    if bias is not None:
        nothing = add(nothing, reshape(bias, (1, c_out, *(1,) * len(sizes))))
    return mul(wrap(np.ones(shape, x._array.dtype)), nothing)


def _forward_fused(
    x: Tensor, w: Tensor, bias: Tensor | None, b: np.ndarray | None, steps: Steps, fused: Fused
) -> Tensor:
    activation, derivative = fused
    forward = partial(engine.conv_forward, activation=activation)
    out = wrap(_computed(forward, x._array, w._array, b, steps))
    if mode.enabled:
        backward = _flat(partial(_forward_backward, x._array.shape[2:], _Kernel.of(w), steps), x, w)
        record(
            "ConvolutionActivationBackward0",
            (x, w, bias),
            out,
            lambda needs, grad, x, w, y: backward(needs, derivative(grad, y), x, w),
            (*_needed(x, w), out),
        )
    return out


def _forward_backward(
    sizes: Sequence[int],
    kernel: _Kernel,
    steps: Steps,
    needs: Needs,
    grad: Tensor,
    x: Tensor,
    w: Tensor,
) -> tuple:
    return (
        _input_grad(grad, conj(w), sizes, steps) if needs[0] else None,
        _weight_grad(conj(x), grad, kernel, steps) if needs[1] else None,
        _bias_grad(grad, kernel.dtype) if needs[2] else None,
    )


def _input_grad(y: Tensor, w: Tensor, sizes: Sequence[int], steps: Steps) -> Tensor:
    """Return the input gradient x of a convolution with these input sizes from its output's, y."""
    out = wrap(_computed(engine.conv_input_grad, y._array, w._array, sizes, steps))
    if mode.enabled:
        backward = partial(_transposed_backward, _Kernel.of(w), steps)
        record("ConvolutionBackwardBackward0", (y, w, None), out, backward, _needed(y, w))
    return out


def _transposed(
    y: Tensor, w: Tensor, bias: Tensor | None, output_padding: Any, steps: Steps
) -> Tensor:
    """Return the transposed convolution: `_input_grad` of the sizes by output_padding, + bias."""
    if output_padding != 0:
        y, output_padding = _below_stride(y, output_padding, steps)
    b = None if bias is None else bias._array
    transpose = partial(engine.conv_transpose, output_padding=output_padding)
    out = wrap(ignore_errstate(_computed, transpose, y._array, w._array, b, steps))
    if mode.enabled:
        backward = partial(_transposed_backward, _Kernel.of(w), steps)
        record("ConvolutionBackward0", (y, w, bias), out, _flat(backward, y, w), _needed(y, w))
        describe(out, steps=steps, bias=bias, transposed=True, output_padding=output_padding)
    return out


def _transposed_backward(
    kernel: _Kernel, steps: Steps, needs: Needs, grad: Tensor, y: Tensor, w: Tensor
) -> tuple:
    return (
        _forward(grad, conj(w), None, steps) if needs[0] else None,
        _weight_grad(grad, conj(y), kernel, steps) if needs[1] else None,
        _bias_grad(grad, kernel.dtype) if needs[2] else None,
    )


def _weight_grad(x: Tensor, y: Tensor, kernel: _Kernel, steps: Steps) -> Tensor:
    """Return the weight gradient of a convolution of input x with output gradient y."""
    array = _computed(engine.conv_weight_grad, x._array, y._array, kernel.sizes, steps)
    out = wrap(
        array if array.dtype == kernel.dtype else ignore_errstate(astype, array, kernel.dtype)
    )
    if mode.enabled:
        backward = partial(_weight_grad_backward, x._array.shape[2:], steps)
        record("ConvolutionBackwardBackward0", (x, y), out, backward, _needed(x, y))
    return out


def _weight_grad_backward(
    sizes: Sequence[int], steps: Steps, needs: Needs, grad: Tensor, x: Tensor, y: Tensor
) -> tuple:
    return (
        _input_grad(conj(y), grad, sizes, steps) if needs[0] else None,
        _forward(conj(x), grad, None, steps) if needs[1] else None,
    )


def _needed(left: Tensor, right: Tensor) -> tuple:
    """Return what the gradients of a bilinear map need: of each operand's, the other operand."""
    return left if right.requires_grad else None, right if left.requires_grad else None


def _flat(backward: Callable, left: Tensor, right: Tensor) -> Callable:
    """Return a backward whose gradients are functions of both operands of a bilinear map.

    That by one operand is linear in the other.  Where only one requires grad, its own gradient
    does not depend on it; it counts as a function of it, as in PyTorch, with a derivative of zero.
    """
    if left.requires_grad == right.requires_grad:
        return backward
    place = later_place_of(left if left.requires_grad else right)

    def flat(needs: Needs, *saved: Any) -> tuple:
        return tuple([g if g is None else flat_in(g, place) for g in backward(needs, *saved)])

    return flat


def _bias_grad(grad: Tensor, dtype: np.dtype) -> Tensor:
    """Return the bias gradient: the sum of each channel of the output gradient."""
    array = grad._array
    if array.dtype.char not in "EfdFD":
        array = astype(array, _SINGLE)
    sums = engine.conv_bias_grad(array)
    if sums.dtype != dtype:
        sums = ignore_errstate(sums.astype, dtype)
    out = wrap(sums)
    backward = partial(_bias_grad_backward, array.shape, grad._array.dtype)
    record("SumBackward1", (grad,), out, backward)
    return out


def _bias_grad_backward(
    shape: tuple[int, ...], dtype: np.dtype, needs: Needs, grad: Tensor
) -> Tensor:
    spread = expand_to(grad, (0, *range(2, len(shape))), shape)
    return spread if spread._array.dtype == dtype else cast(spread, dtype)


# Calls of the engine


def _computed(
    function: Callable, left: np.ndarray, right: np.ndarray, third: Any, steps: Steps
) -> np.ndarray:
    """Return one of the engine's passes of two arrays, in the dtype of the first.

    Beside pixels of bfloat16 weights may be float32, as autocast leaves them: they are rounded
    where products are in bfloat16.  And a weight gradient is float32 there.

    third : the bias, the input's sizes or the kernel's
    """
    stride, padding, dilation, groups = steps
    try:
        if left.dtype.char not in "fdFDE":
            function = partial(_computed_in_another_dtype, function)
        return function(
            left, right, third, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
    except (TypeError, ValueError) as cause:
        raise ConvError(cause) from None


def _computed_in_another_dtype(
    function: Callable, left: np.ndarray, right: np.ndarray, *rest: Any, **steps: Any
) -> np.ndarray:
    """Round results of float16 once; give integers if float64 holds them."""
    dtype = left.dtype
    if dtype != right.dtype or dtype.kind not in "fiu":
        raise TypeError("dtypes that do not go together, or that nothing is computed in")
    wide = np.dtype(np.float32 if dtype.kind == "f" else np.float64)
    for third in rest:
        if isinstance(third, np.ndarray) and third.dtype != dtype:
            raise TypeError("bias must have the dtype of input")
    arrays = [left, right, *rest]
    for place, array in enumerate(arrays):  # also a bias
        if isinstance(array, np.ndarray) and array.dtype == dtype:
            arrays[place] = array.astype(wide)
    result = function(*arrays, **steps)
    if dtype.kind == "f":
        return ignore_errstate(result.astype, dtype)
    # No sum of some of the products can be larger than that of all their absolute values.
    arrays = [abs(array) if isinstance(array, np.ndarray) else array for array in arrays]
    if function(*arrays, **steps).max(initial=0) >= 2**53:
        raise ValueError(
            "the sums of products of these integers are beyond what float64 holds exactly"
        )
    return result.astype(np.int64).astype(dtype)


def _below_stride(y: Tensor, output_padding: Any, steps: Steps) -> tuple[Tensor, Any]:
    """Return an input and an output padding below the stride that give the same output.

    The dilation allows a longer one, but then a plain convolution over the output has more pixels
    than the input has: those are zeros put after it.
    """
    rank = y._array.ndim - 2
    strides, dilations, extras = _per_axis(
        rank, stride=steps.stride, dilation=steps.dilation, output_padding=output_padding
    )
    zeros = [
        extra // stride if extra < dilation else 0
        for extra, stride, dilation in zip(extras, strides, dilations, strict=True)
    ]
    if not any(zeros):
        return y, output_padding
    rest = [e - z * s for e, z, s in zip(extras, zeros, strides, strict=True)]
    return pad(y, [p for z in reversed(zeros) for p in (0, z)]), tuple(rest)


# The gradients as functions, for convcore.nn.grad


def gradient_by_input(
    rank: int, input_size: Sequence[int], weight: Tensor, grad_output: Tensor, steps: Steps
) -> Tensor:
    """Return the gradient of a convolution by its input of shape ``input_size``."""
    sizes = tuple(input_size)
    check_operands("conv", rank, grad_output, weight, None, steps)
    try:
        _check_shapes(rank, sizes, weight._array.shape, grad_output._array.shape, steps.groups)
        return _input_grad(grad_output, weight, sizes[2:], steps)
    except ConvError as error:
        raise conv_error(f"conv{rank}d", error.cause, grad_output, weight, None, steps) from None


def gradient_by_weight(
    rank: int, input: Tensor, weight_size: Sequence[int], grad_output: Tensor, steps: Steps
) -> Tensor:
    """Return the gradient of a convolution by its weight of shape ``weight_size``."""
    sizes = tuple(weight_size)
    check_operands("conv", rank, input, grad_output, None, steps)
    try:
        _check_shapes(rank, input._array.shape, sizes, grad_output._array.shape, steps.groups)
        kernel = _Kernel(sizes[2:], input._array.dtype)
        return _weight_grad(input, grad_output, kernel, steps)
    except ConvError as error:
        raise conv_error(f"conv{rank}d", error.cause, input, grad_output, None, steps) from None


def _check_shapes(
    rank: int, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], groups: int
) -> None:
    """Raise if shapes do not match in sizes that the engine is not given."""
    if len(w) != rank + 2:
        raise RuntimeError(f"expected a weight of {rank + 2} dimensions, but got size {list(w)}")
    if len(x) != rank + 2:
        raise RuntimeError(
            f"Expected {rank + 2}-dimensional input for {rank + 2}-dimensional weight {list(w)}, "
            f"but got {len(x)}-dimensional input of size {list(x)} instead"
        )
    if groups > 0 and w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{list(w)}] instead"
        )
    if groups > 0 and x[1] != w[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w)}, expected input{list(x)} to have "
            f"{w[1] * groups} channels, but got {x[1]} channels instead"
        )
    if y[:2] != (x[0], w[0]):
        raise RuntimeError(
            f"expected grad_output to have a batch of {x[0]} and {w[0]} channels, but got size "
            f"{list(y)}"
        )


FUNCTIONS_ONLY = __all__
