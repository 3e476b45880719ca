"""The three bilinear maps of a convolution, on ndarrays.

    forward       y[n, o, j] = sum over c, t of  x[n, c, j*stride - before + t*dilation] * w[o, c, t]
    input_grad    gx = the same sum read for x, given gy in y's place
    weight_grad   gw = the same sum read for w

Each is linear in either argument, and the derivative of each is made of the other two; a transposed
convolution is input_grad used forwards.  Nothing here conjugates: PyTorch's gradients of complex
convolutions are these maps with the other argument conjugated.

What a call needs besides its arrays is made once for each combination of shapes, strides, dtypes and
parameters, and kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convcore.engine import jobs, memory
from convcore.engine.geometry import (
    Geometry,
    Padding,
    Spatial,
    index,
    make_geometry,
    per_axis,
    transposed_geometry,
)
from convcore.engine.layout import check_dtype, empty, is_channels_last, layout
from convcore.engine.plan import MapPlan
from convcore.kernels._sums import channel_sums

Array = NDArray[Any]

# Calls that are remembered: a net of a few hundred layers, each with its three maps, in a few shapes.
_REMEMBERED = 4096


def conv_forward(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
) -> Array:
    """Correlate input with weight.

    y[n, o, j] = bias[o] + sum over c, t of input[n, c, j*stride - before + t*dilation] *
    weight[o, c, t], where c runs over the channels of o's group and input is 0 in its padding.

    Parameters
    ----------
    input : (N, C_in, \\*sizes) or (C_in, \\*sizes); float32, float64, complex64 or complex128
        One to three spatial axes; any strides.
    weight : (C_out, C_in/G, \\*kernel), the same dtype
    bias : (C_out,), the same dtype, or None
    stride, dilation : int, or one int a spatial axis; at least 1
    padding : int, one int an axis, one (before, after) pair an axis, 'same' or 'valid'
    groups : int, a divisor of C_in and C_out

    Returns
    -------
    (N, C_out, \\*outs) or (C_out, \\*outs)
        A new array; channels_last in memory if input or weight is.

    Raises
    ------
    TypeError
        An argument is no array of the dtypes above, or the dtypes differ, or a parameter is no int.
    ValueError
        Shapes that do not go together, or a parameter out of range.
    MemoryError
        The result or the scratch cannot be had.

    Notes
    -----
    N * C_out * P * K multiply-adds.  Scratch: 512 KiB of patches a thread (`plan_conv` tells), never
    a matrix of all patches.  The bits do not depend on the number of threads.

    References
    ----------
    K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document
    processing (2006), section 2, for the product of a matrix of patches; here block by block.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
    >>> conv_forward(x, np.ones((1, 1, 2, 2)))[0, 0]
    array([[ 8., 12.],
           [20., 24.]])
    """
    if bias is not None and isinstance(weight, np.ndarray) and weight.ndim:
        bias = _checked_bias(bias, weight.dtype, weight.shape[0])
    return _apply(
        _forward_call,
        ("input", "weight"),
        input,
        weight,
        (stride, padding, dilation, groups),
        (bias,),
    )


def conv_input_grad(
    grad_output: Array,
    weight: Array,
    input_size: Spatial,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
) -> Array:
    """Return the gradient of a convolution with respect to its input.

    gx[n, c, i] = sum over o, t and the outputs j with j*stride - before + t*dilation = i of
    grad_output[n, o, j] * weight[o, c, t].

    Parameters
    ----------
    grad_output : (N, C_out, \\*outs) or (C_out, \\*outs); float32, float64, complex64 or complex128
    weight : (C_out, C_in/G, \\*kernel), the same dtype
    input_size : int, or one int a spatial axis
        The input's spatial sizes: a stride above 1 leaves them open.
    stride, padding, dilation, groups
        As for the forward map.

    Returns
    -------
    (N, C_in, \\*input_size) or (C_in, \\*input_size)
        A new array; channels_last in memory if grad_output or weight is.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `conv_forward`; also if grad_output's shape is not the forward map's output shape.

    Notes
    -----
    N * C_out * P * K multiply-adds at most; none are with zeros put between the elements of
    grad_output.  Scratch as for the forward map, and a copy of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> conv_input_grad(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), 3)[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]])
    """
    return _apply(
        _input_grad_call,
        ("grad_output", "weight"),
        grad_output,
        weight,
        (input_size, stride, padding, dilation, groups),
    )


def conv_weight_grad(
    input: Array,
    grad_output: Array,
    kernel_size: Spatial,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
) -> Array:
    """Return the gradient of a convolution with respect to its weight.

    gw[o, c, t] = sum over n, j of grad_output[n, o, j] * input[n, c, j*stride - before + t*dilation].

    Parameters
    ----------
    input : (N, C_in, \\*sizes) or (C_in, \\*sizes); float32, float64, complex64 or complex128
    grad_output : (N, C_out, \\*outs) or (C_out, \\*outs), the same dtype
    kernel_size : int, or one int a spatial axis
        Needed because a stride above 1 leaves it open.  An unbatched input needs one int an axis,
        because with a single int it would pass for a batch with an axis fewer.
    stride, padding, dilation, groups
        As for the forward map.

    Returns
    -------
    (C_out, C_in/G, \\*kernel_size)
        A new array; channels_last in memory if input or grad_output is.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `conv_forward`; also if grad_output's shape is not the forward map's output shape.

    Notes
    -----
    N * C_out * P * K multiply-adds.  Scratch as for the forward map; where the gradient is small,
    partial sums of at most 32 MiB in all, added in index order.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
    >>> conv_weight_grad(x, np.ones((1, 1, 2, 2)), 2)[0, 0]
    array([[ 8., 12.],
           [20., 24.]])
    """
    return _apply(
        _weight_grad_call,
        ("input", "grad_output"),
        input,
        grad_output,
        (kernel_size, stride, padding, dilation, groups),
    )


def conv_bias_grad(grad_output: Array, *, unbatched: bool = False) -> Array:
    """Return the gradient of a convolution with respect to its bias.

    gb[o] = sum over n, j of grad_output[n, o, j], added pairwise.

    Parameters
    ----------
    grad_output : (N, C_out, \\*outs), or (C_out, \\*outs) if unbatched
        float32, float64, complex64 or complex128; any number of spatial axes.

    Returns
    -------
    (C_out,)

    Raises
    ------
    TypeError, ValueError
        grad_output is no such array.

    Examples
    --------
    >>> import numpy as np
    >>> conv_bias_grad(np.ones((2, 3, 4, 4)))
    array([32., 32., 32.])
    """
    array = _checked_array("grad_output", grad_output)
    if array.ndim < (1 if unbatched else 2):
        raise ValueError(
            "grad_output must have an axis of channels: (N, C_out, *outs), or (C_out, *outs) if "
            f"unbatched, got shape {list(array.shape)}"
        )
    if unbatched:
        array = array[np.newaxis]
    sums = np.empty(array.shape[1], array.dtype)
    if array.size == 0:
        sums[...] = 0
        return sums
    # A view wherever the pixels of an image lie in one run, as in both memory formats; else a copy.
    pixels = array.reshape(*array.shape[:2], -1)
    if not pixels.flags.aligned or any(s % array.itemsize for s in pixels.strides):
        pixels = pixels.copy()
    strides = [s // array.itemsize for s in pixels.strides]
    channel_sums(array.dtype.char, pixels, sums, *pixels.shape, strides)
    return sums


def conv_transpose(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    output_padding: Spatial = 0,
    groups: int = 1,
    dilation: Spatial = 1,
) -> Array:
    """Return the transposed convolution: `conv_input_grad` used forwards.

    Parameters
    ----------
    input : (N, C_in, \\*sizes) or (C_in, \\*sizes); float32, float64, complex64 or complex128
    weight : (C_in, C_out/G, \\*kernel), the same dtype
    bias : (C_out,), the same dtype, or None
    stride, dilation : int, or one int a spatial axis
    padding : int, one int an axis, or one (before, after) pair an axis
        Elements cut off the output.
    output_padding : int, or one int an axis, smaller than stride or dilation there
        Elements added after the output.
    groups : int

    Returns
    -------
    (N, C_out, \\*outs) or (C_out, \\*outs)
        With outs = (sizes - 1)*stride - before - after + dilation*(kernel - 1) + 1 + output_padding.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `conv_forward`.

    References
    ----------
    V. Dumoulin, F. Visin, A guide to convolution arithmetic for deep learning (2016), section 4,
    arXiv 1603.07285.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose(np.ones((1, 1, 2)), np.ones((1, 1, 2)), stride=2)
    array([[[1., 1., 1., 1.]]])
    """
    output = _apply(
        _transpose_call,
        ("input", "weight"),
        input,
        weight,
        (stride, padding, output_padding, dilation, groups),
    )
    if bias is not None:
        channels = output.shape[input.ndim - weight.ndim + 1]
        bias = _checked_bias(bias, weight.dtype, channels)
        output += bias.reshape(-1, *(1,) * (weight.ndim - 2))
    return output


# ---- one call, prepared ----


class _Call:
    """A kernel with the plan of its memory: allocate, run, return."""

    __slots__ = ("channels_last", "convert", "kernel", "plan", "shape", "squeeze")

    def __init__(
        self, kernel: Any, plan: MapPlan, shape: Sequence[int], channels_last: bool, squeeze: bool
    ) -> None:
        self.kernel, self.plan, self.shape = kernel, plan, tuple(shape)
        self.channels_last, self.squeeze = channels_last, squeeze
        # Weights that the kernel cannot take as they lie; it tells none apart but the scattering.
        self.convert: Callable[[Array], Array] | None = None

    def __call__(self, left: Array, right: Array, extra: tuple[Array | None, ...]) -> Array:
        plan = self.plan
        if self.convert is not None:
            right = self.convert(right)
        # Everything is allocated before BLAS is held and threads start: nothing there can fail.
        output = empty(self.shape, left.dtype, self.channels_last)
        threads = self.kernel.threads()
        block = memory.take(plan.shared_bytes + threads * plan.scratch_bytes)
        try:
            self.kernel.run(left, right, output, block, threads, *extra)
        finally:
            memory.give(block)
        return output[0] if self.squeeze else output


def _apply(
    make: Callable[..., _Call],
    names: tuple[str, str],
    left: Array,
    right: Array,
    parameters: tuple[Any, ...],
    extra: tuple[Array | None, ...] = (),
) -> Array:
    """Make or remember the call for these arrays and parameters, and call it."""
    if type(left) is not np.ndarray or type(right) is not np.ndarray:
        left, right = _checked_array(names[0], left), _checked_array(names[1], right)
    try:
        call = make(
            left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype,
            *parameters,
        )  # fmt: skip
    except TypeError:
        # A list cannot be remembered, a tuple can; and what is wrong in itself is raised again.
        call = make(
            left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype,
            *map(_hashable, parameters),
        )  # fmt: skip
    if not (left.flags.aligned and right.flags.aligned):
        return _apply(make, names, left.copy(), right.copy(), parameters, extra)
    return call(left, right, extra)


_remembered = functools.lru_cache(maxsize=_REMEMBERED, typed=True)


@_remembered
def _forward_call(
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    x_dtype: np.dtype[Any],
    w_shape: tuple[int, ...],
    w_strides: tuple[int, ...],
    w_dtype: np.dtype[Any],
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
    groups: int,
) -> _Call:
    size = _common_itemsize(("input", x_dtype, x_strides), ("weight", w_dtype, w_strides))
    squeeze, x_shape, x_strides = _batched(x_shape, x_strides, len(w_shape))
    g = make_geometry(x_shape, w_shape, stride, padding, dilation, groups)
    last = is_channels_last(x_shape, x_strides) or is_channels_last(w_shape, w_strides)
    x, w = layout(x_shape, x_strides, size), layout(w_shape, w_strides, size)
    kernel, plan = jobs.forward_job(g, x_dtype.char, size, x, w, last)
    return _Call(kernel, plan, g.output_shape, last, squeeze)


@_remembered
def _input_grad_call(
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
    y_dtype: np.dtype[Any],
    w_shape: tuple[int, ...],
    w_strides: tuple[int, ...],
    w_dtype: np.dtype[Any],
    input_size: Spatial,
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
    groups: int,
) -> _Call:
    rank = _rank("weight", w_shape)
    squeeze, y_shape, y_strides = _batched(y_shape, y_strides, rank + 2, "grad_output")
    sizes = per_axis("input_size", input_size, rank, least=0)
    groups = index("groups", groups)
    g = make_geometry(
        (y_shape[0], w_shape[1] * max(groups, 1), *sizes), w_shape, stride, padding, dilation, groups
    )
    _check_output("grad_output", y_shape, g)
    return _make_input_grad(
        g, "grad_output", y_dtype, y_shape, y_strides, w_dtype, w_shape, w_strides, squeeze
    )


@_remembered
def _transpose_call(
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    x_dtype: np.dtype[Any],
    w_shape: tuple[int, ...],
    w_strides: tuple[int, ...],
    w_dtype: np.dtype[Any],
    stride: Spatial,
    padding: Padding,
    output_padding: Spatial,
    dilation: Spatial,
    groups: int,
) -> _Call:
    squeeze, x_shape, x_strides = _batched(x_shape, x_strides, len(w_shape))
    g = transposed_geometry(x_shape, w_shape, stride, padding, output_padding, dilation, groups)
    return _make_input_grad(
        g, "input", x_dtype, x_shape, x_strides, w_dtype, w_shape, w_strides, squeeze
    )


def _make_input_grad(
    g: Geometry,
    name: str,
    y_dtype: np.dtype[Any],
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
    w_dtype: np.dtype[Any],
    w_shape: tuple[int, ...],
    w_strides: tuple[int, ...],
    squeeze: bool,
) -> _Call:
    size = _common_itemsize((name, y_dtype, y_strides), ("weight", w_dtype, w_strides))
    last = is_channels_last(y_shape, y_strides) or is_channels_last(w_shape, w_strides)
    y, w = layout(y_shape, y_strides, size), layout(w_shape, w_strides, size)
    kernel, plan = jobs.input_grad_job(g, y_dtype.char, size, y, w, last)
    call = _Call(kernel, plan, g.input_shape, last, squeeze)
    if plan.tile:
        call.convert = _rows_of_taps if last else np.ascontiguousarray
    return call


@_remembered
def _weight_grad_call(
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    x_dtype: np.dtype[Any],
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
    y_dtype: np.dtype[Any],
    kernel_size: Spatial,
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
    groups: int,
) -> _Call:
    size = _common_itemsize(("input", x_dtype, x_strides), ("grad_output", y_dtype, y_strides))
    if len(x_shape) != len(y_shape):
        raise ValueError(
            "input and grad_output must have as many axes as each other, "
            f"got shapes {list(x_shape)} and {list(y_shape)}"
        )
    # The kernel's length tells the rank where it is a sequence; an int leaves the input batched.
    rank = len(kernel_size) if isinstance(kernel_size, tuple) else len(x_shape) - 2
    _, x_shape, x_strides = _batched(x_shape, x_strides, rank + 2)
    _, y_shape, y_strides = _batched(y_shape, y_strides, rank + 2, "grad_output")
    kernel = per_axis("kernel_size", kernel_size, rank)
    groups = index("groups", groups)
    w_shape = (y_shape[1], x_shape[1] // max(groups, 1), *kernel)
    g = make_geometry(x_shape, w_shape, stride, padding, dilation, groups)
    _check_output("grad_output", y_shape, g)
    last = is_channels_last(x_shape, x_strides) or is_channels_last(y_shape, y_strides)
    x, y = layout(x_shape, x_strides, size), layout(y_shape, y_strides, size)
    job, plan = jobs.weight_grad_job(g, x_dtype.char, size, x, y, last)
    return _Call(job, plan, g.weight_shape, last, squeeze=False)


# ---- checks ----


def _checked_array(name: str, value: Any) -> Array:
    """Return value as a plain ndarray; TypeError if it is none, or a masked one."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a numpy.ndarray, got {type(value).__name__}")
    check_dtype(name, value.dtype)
    return np.asarray(value)


def _checked_bias(bias: Any, dtype: np.dtype[Any], channels: int) -> Array:
    """Return bias, contiguous; an error unless it is one number a channel, of the same dtype."""
    bias = _checked_array("bias", bias)
    if bias.dtype != dtype:
        raise TypeError(
            "Input type and bias type should be the same: "
            f"bias must have the dtype of input, {dtype.name}, got {bias.dtype.name}"
        )
    if bias.shape != (channels,):
        raise ValueError(
            f"bias must have one element an output channel, shape [{channels}], "
            f"got shape {list(bias.shape)}"
        )
    return np.require(bias, requirements="CA")


def _common_itemsize(*arrays: tuple[str, np.dtype[Any], tuple[int, ...]]) -> int:
    """Return the itemsize of the one dtype of the arrays; an error if there is no such dtype."""
    for name, dtype, strides in arrays:
        check_dtype(name, dtype)
        if any(s % dtype.itemsize for s in strides):
            raise ValueError(
                f"{name} must have strides that are whole elements, got {list(strides)} bytes "
                f"for {dtype.name}; copy it first"
            )
    (left, left_dtype, _), (right, right_dtype, _) = arrays
    if left_dtype != right_dtype:
        raise TypeError(
            f"{left} and {right} should be the same dtype, "
            f"got {left_dtype.name} and {right_dtype.name}"
        )
    return left_dtype.itemsize


def _rank(name: str, shape: tuple[int, ...]) -> int:
    """Return the number of spatial axes of a weight."""
    if not 3 <= len(shape) <= 5:
        raise ValueError(
            f"{name} should have at least three dimensions and at most five: "
            f"(C_out, C_in/G, *kernel), got shape {list(shape)}"
        )
    return len(shape) - 2


def _batched(
    shape: tuple[int, ...], strides: tuple[int, ...], ndim: int, name: str = "input"
) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    """Return (was unbatched, shape, strides) with a batch axis put before an unbatched array."""
    if len(shape) == ndim - 1:
        return True, (1, *shape), (0, *strides)
    if len(shape) != ndim:
        raise ValueError(
            f"Expected {ndim - 1}D (unbatched) or {ndim}D (batched) {name} to conv{ndim - 2}d, "
            f"but got {name} of size: {list(shape)}"
        )
    return False, shape, strides


def _check_output(name: str, shape: tuple[int, ...], g: Geometry) -> None:
    if shape != g.output_shape:
        raise ValueError(
            f"{name} must have the shape of the convolution's output, {list(g.output_shape)}, "
            f"got {list(shape)}"
        )


def _hashable(value: Any) -> Any:
    """Return nested lists and arrays as tuples, anything else as it is."""
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return value
    return tuple(map(_hashable, value))


def _rows_of_taps(weight: Array) -> Array:
    """Return (O, C, \*kernel) weights as a contiguous (O, \*kernel, C)."""
    return np.ascontiguousarray(np.moveaxis(weight, 1, -1))
