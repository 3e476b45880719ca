"""The oracle: slow, obvious convolutions, pools and pads that the engine's own are tested against.

Two levels, each simple enough to be believed by reading it:

- the passes, im2col and col2im loop over kernel taps.  One tap is a strided slice of the
  zero-padded input and a matrix product over channels, so a real layer takes a second or so;
- the ``loop_*`` passes loop over every single product of the sum, `terms`, for tiny shapes.

Pools loop over the pixels of every window, `pool_windows` and `adaptive_windows`, and pads over the
elements of every axis.

Everything is computed in float64, or complex128 if anything complex comes in, whatever the dtypes,
on an obvious zero-padded copy.  All ranks and any number of groups take the same lines.  The passes
are bilinear: nothing is conjugated.  Nothing compiled is imported.

Shapes are those of `convcore.engine`: an input without its batch axis gives a result without one.
Unlike the engine, the oracle trusts its caller: arguments that `make_geometry` does not check are
not checked here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from convcore.engine.geometry import (
    Geometry,
    Padding,
    Spatial,
    make_geometry,
    per_axis,
    transposed_geometry,
)

Array = NDArray[Any]  # float64 or complex128
Index = tuple[int, ...]
Window = tuple[Index, list[Index], int]  # an output pixel, the input pixels under it, the divisor


def conv_forward(
    input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, **steps: Any
) -> Array:
    """Convolve: output[n, o, p] = bias[o] + sum over c, k: input[n, c, p*s + k*d] weight[o, c, k].

    Parameters
    ----------
    input : (N, C_in, *sizes) or (C_in, *sizes)
    weight : (C_out, C_in/G, *kernel)
    bias : (C_out,) or None
    steps : stride, padding, dilation, groups
        As `make_geometry` takes them.

    Returns
    -------
    (N, C_out, *outs) or (C_out, *outs), float64 or complex128

    Raises
    ------
    TypeError, ValueError
        As `make_geometry`.

    Examples
    --------
    >>> conv_forward([[[1, 2, 3]]], [[[1, 1]]], [0.5])
    array([[[3.5, 5.5]]])
    """
    input, weight = _wide(input), _wide(weight)
    if input.ndim == weight.ndim - 1:
        return conv_forward(input[None], weight, bias, **steps)[0]
    geometry = make_geometry(input.shape, weight.shape, **steps)
    padded, weight = _padded(input, geometry), _grouped_weight(weight, geometry)
    output = np.zeros(geometry.output_shape, np.result_type(input, weight))
    for tap, window in _taps(geometry):
        # (N, G, C_out/G, P) = (G, C_out/G, C_in/G) @ (N, G, C_in/G, P)
        products = weight[tap] @ _grouped(padded[window], geometry)
        output += products.reshape(output.shape)
    return _with_bias(output, bias)


def conv_input_grad(
    grad_output: ArrayLike, weight: ArrayLike, input_size: Spatial, **steps: Any
) -> Array:
    """Return the gradient of `conv_forward` with respect to its input: the adjoint in ``input``.

    Parameters
    ----------
    grad_output : (N, C_out, *outs) or (C_out, *outs)
    weight : (C_out, C_in/G, *kernel)
    input_size : one int a spatial axis

    Returns
    -------
    (N, C_in, *input_size) or (C_in, *input_size), float64 or complex128
    """
    grad_output, weight = _wide(grad_output), _wide(weight)
    if grad_output.ndim == weight.ndim - 1:
        return conv_input_grad(grad_output[None], weight, input_size, **steps)[0]
    sizes = per_axis("input_size", input_size, weight.ndim - 2)
    shape = (len(grad_output), weight.shape[1] * steps.get("groups", 1), *sizes)
    geometry = make_geometry(shape, weight.shape, **steps)
    return _scatter(grad_output, weight, geometry)


def conv_weight_grad(
    input: ArrayLike, grad_output: ArrayLike, kernel_size: Spatial, **steps: Any
) -> Array:
    """Return the gradient of `conv_forward` with respect to its weight: the adjoint in ``weight``.

    Parameters
    ----------
    input : (N, C_in, *sizes) or (C_in, *sizes)
    grad_output : (N, C_out, *outs) or (C_out, *outs)
    kernel_size : one int a spatial axis, or an int if there is a batch axis

    Returns
    -------
    (C_out, C_in/G, *kernel_size), float64 or complex128
    """
    input, grad_output = _wide(input), _wide(grad_output)
    if not isinstance(kernel_size, int) and input.ndim == len(kernel_size) + 1:
        input, grad_output = input[None], grad_output[None]
    kernel = per_axis("kernel_size", kernel_size, input.ndim - 2)
    shape = (grad_output.shape[1], input.shape[1] // steps.get("groups", 1), *kernel)
    geometry = make_geometry(input.shape, shape, **steps)
    padded, grad_output = _padded(input, geometry), _grouped(grad_output, geometry)
    grad_weight = np.zeros(shape, np.result_type(input, grad_output))
    for tap, window in _taps(geometry):
        # (C_out, C_in/G) = sum over n of (N, G, C_out/G, P) @ (N, G, P, C_in/G)
        products = grad_output @ _grouped(padded[window], geometry).swapaxes(-1, -2)
        grad_weight[tap] = products.sum(axis=0).reshape(shape[:2])
    return grad_weight


def conv_bias_grad(grad_output: ArrayLike, *, unbatched: bool = False) -> Array:
    """Return the gradient of `conv_forward` with respect to its bias, shape (C_out,)."""
    grad_output = _wide(grad_output)
    channel = 0 if unbatched else 1
    return grad_output.sum(axis=tuple(a for a in range(grad_output.ndim) if a != channel))


def conv_transpose(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Spatial = 1,
    padding: Padding = 0,
    output_padding: Spatial = 0,
    groups: int = 1,
    dilation: Spatial = 1,
) -> Array:
    """Transposed convolution of any rank: the input gradient of a convolution, used forwards.

    Parameters
    ----------
    input : (N, C_in, *sizes) or (C_in, *sizes)
    weight : (C_in, C_out/G, *kernel)
    bias : (C_out,) or None

    Returns
    -------
    (N, C_out, *outs) or (C_out, *outs), float64 or complex128
    """
    input, weight = _wide(input), _wide(weight)
    if input.ndim == weight.ndim - 1:
        return conv_transpose(
            input[None], weight, bias, stride, padding, output_padding, groups, dilation
        )[0]
    geometry = transposed_geometry(
        input.shape, weight.shape, stride, padding, output_padding, dilation, groups
    )
    output = _scatter(input, weight, geometry)
    return _with_bias(output, bias)


def im2col(
    input: ArrayLike, kernel_size: Spatial, *, channels_last: bool = False, **steps: Any
) -> Array:
    """Write every patch that the kernel covers as a column, or as a row if ``channels_last``.

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes)
    kernel_size : one int a spatial axis, or an int if there is a batch axis

    Returns
    -------
    (N, C*taps, P), or (N, P, taps*C) if ``channels_last``; without N if the input has none
    """
    input = _wide(input)
    if not isinstance(kernel_size, int) and input.ndim == len(kernel_size) + 1:
        return im2col(input[None], kernel_size, channels_last=channels_last, **steps)[0]
    geometry = _patch_geometry(input.shape, kernel_size, **steps)
    padded = _padded(input, geometry)
    patches = np.stack([padded[window] for _, window in _taps(geometry)], axis=2)
    n, c, taps, p = len(input), geometry.c_in, geometry.taps, geometry.pixels
    patches = patches.reshape(n, c, taps, p)
    if channels_last:
        return patches.transpose(0, 3, 2, 1).reshape(n, p, taps * c)
    return patches.reshape(n, c * taps, p)


def col2im(
    columns: ArrayLike,
    input_size: Sequence[int],
    kernel_size: Spatial,
    *,
    channels_last: bool = False,
    **steps: Any,
) -> Array:
    """Add every column back to where `im2col` read it: the adjoint of im2col, not its inverse.

    Parameters
    ----------
    columns : (N, C*taps, P), or (N, P, taps*C) if ``channels_last``; or the same without N
    input_size : one int a spatial axis

    Returns
    -------
    (N, C, *input_size), or (C, *input_size) if ``columns`` has no N
    """
    columns = _wide(columns)
    if columns.ndim == 2:
        batch = columns[None]
        return col2im(batch, input_size, kernel_size, channels_last=channels_last, **steps)[0]
    kernel = per_axis("kernel_size", kernel_size, len(input_size))
    n, taps = len(columns), int(np.prod(kernel))
    c = columns.shape[2 if channels_last else 1] // taps
    geometry = _patch_geometry((n, c, *input_size), kernel, **steps)
    if channels_last:
        columns = columns.reshape(n, geometry.pixels, taps, c).transpose(0, 3, 2, 1)
    patches = columns.reshape(n, c, taps, *geometry.output_shape[2:])
    canvas = _padded(np.zeros((n, c, *input_size), columns.dtype), geometry)
    for i, (_, window) in enumerate(_taps(geometry)):
        canvas[window] += patches[:, :, i]
    return _cropped(canvas, geometry)


def terms(geometry: Geometry) -> Iterator[tuple[Index, Index, Index]]:
    """Yield (input, weight, output) indices of every product of a convolution, padding left out.

    This is the definition that all three passes share: each adds products of two of the three
    arrays at their indices to the third array at its index.
    """
    c_group, o_group = geometry.c_in // geometry.groups, geometry.c_out // geometry.groups
    for n, o, *position in np.ndindex(geometry.output_shape):
        for c, *tap in np.ndindex(geometry.weight_shape[1:]):
            at = [
                p * a.stride + t * a.dilation - a.before
                for p, t, a in zip(position, tap, geometry.axes, strict=True)
            ]
            if all(0 <= i < a.size for i, a in zip(at, geometry.axes, strict=True)):
                yield (n, o // o_group * c_group + c, *at), (o, c, *tap), (n, o, *position)


def loop_forward(input: ArrayLike, weight: ArrayLike, geometry: Geometry) -> Array:
    """Return output[o] = sum of input[i] weight[k] over `terms`."""
    input, weight = _wide(input), _wide(weight)
    output = np.zeros(geometry.output_shape, np.result_type(input, weight))
    for i, k, o in terms(geometry):
        output[o] += input[i] * weight[k]
    return output


def loop_input_grad(grad_output: ArrayLike, weight: ArrayLike, geometry: Geometry) -> Array:
    """Return grad_input[i] = sum of grad_output[o] weight[k] over `terms`."""
    grad_output, weight = _wide(grad_output), _wide(weight)
    grad_input = np.zeros(geometry.input_shape, np.result_type(grad_output, weight))
    for i, k, o in terms(geometry):
        grad_input[i] += grad_output[o] * weight[k]
    return grad_input


def loop_weight_grad(input: ArrayLike, grad_output: ArrayLike, geometry: Geometry) -> Array:
    """Return grad_weight[k] = sum of input[i] grad_output[o] over `terms`."""
    input, grad_output = _wide(input), _wide(grad_output)
    grad_weight = np.zeros(geometry.weight_shape, np.result_type(input, grad_output))
    for i, k, o in terms(geometry):
        grad_weight[k] += input[i] * grad_output[o]
    return grad_weight


def pool_windows(
    sizes: Sequence[int],
    kernel_size: Sequence[int],
    stride: Spatial | None = None,
    padding: Spatial = 0,
    dilation: Spatial = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> list[Window]:
    """Return every window of a pool: its output pixel, the pixels under it, how many count.

    Examples
    --------
    >>> pool_windows((3,), (2,), 2, 1)
    [((0,), [(0,)], 2), ((1,), [(1,), (2,)], 2)]
    """
    rank = len(sizes)
    strides = per_axis("stride", kernel_size if stride is None else stride, rank)
    pads = per_axis("padding", padding, rank)
    dilations = per_axis("dilation", dilation, rank)
    steps = zip(sizes, kernel_size, strides, pads, dilations, strict=True)
    return _crossed(
        list(_axis_windows(size, k, s, p, d, ceil_mode, count_include_pad))
        for size, k, s, p, d in steps
    )


def adaptive_windows(sizes: Sequence[int], outs: Sequence[int]) -> list[Window]:
    """Return the windows of an adaptive pool: pixel i is in window j if they share any of the axis.

    With the axis laid out from 0 to 1, pixel i is [i/size, (i+1)/size] and window j is
    [j/out, (j+1)/out].

    Examples
    --------
    >>> adaptive_windows((3,), (2,))
    [((0,), [(0,), (1,)], 2), ((1,), [(1,), (2,)], 2)]
    """
    axes = []
    for size, out in zip(sizes, outs, strict=True):
        shared = (
            [i for i in range(size) if i * out < (j + 1) * size and j * size < (i + 1) * out]
            for j in range(out)
        )
        axes.append([(pixels, len(pixels)) for pixels in shared])
    return _crossed(axes)


def max_over(input: ArrayLike, windows: Sequence[Window]) -> tuple[Array, NDArray[np.int64]]:
    """Return the largest element under each window and its index in its plane.

    Parameters
    ----------
    input : (N, C, *sizes)

    Returns
    -------
    values, indices : (N, C, *outs)
        Of equal elements the first, of several NaN the last; -inf and -1 for an empty window.
    """
    input = np.asarray(input)
    shape = (*input.shape[:2], *_outs(windows))
    values, indices = np.full(shape, -np.inf), np.full(shape, -1)
    for output, pixels, _ in windows:
        value, index = values[_at(output)], indices[_at(output)]
        for pixel in pixels:
            element = input[_at(pixel)]
            better = (element > value) | np.isnan(element) | (index < 0)
            value[better] = element[better]
            index[better] = np.ravel_multi_index(pixel, input.shape[2:])
    return values, indices


def mean_over(input: ArrayLike, windows: Sequence[Window], divisor: int | None = None) -> Array:
    """Return the sum under each window over its own divisor, or over one for all."""
    input = _wide(input)
    means = np.zeros((*input.shape[:2], *_outs(windows)), input.dtype)
    for output, pixels, count in windows:
        for pixel in pixels:
            means[_at(output)] += input[_at(pixel)] / (divisor or count)
    return means


def mean_over_grad(
    grad_output: ArrayLike,
    windows: Sequence[Window],
    sizes: Sequence[int],
    divisor: int | None = None,
) -> Array:
    """Return the gradient of `mean_over`: every mean's share to each pixel under its window."""
    grad_output = _wide(grad_output)
    grad_input = np.zeros((*grad_output.shape[:2], *sizes), grad_output.dtype)
    for output, pixels, count in windows:
        for pixel in pixels:
            grad_input[_at(pixel)] += grad_output[_at(output)] / (divisor or count)
    return grad_input


def pad(
    array: ArrayLike, padding: Sequence[Sequence[int]], mode: str = "constant", value: float = 0
) -> Array:
    """Put a border around the last axes of an array, one (before, after) pair each.

    Examples
    --------
    >>> pad([1, 2, 3], [(2, 2)], "reflect")
    array([3., 2., 1., 2., 3., 2., 1.])
    """
    array = _wide(array)
    for axis, (before, after) in enumerate(padding, array.ndim - len(padding)):
        lines = np.moveaxis(array, axis, 0)
        size = len(lines)
        padded = np.full((before + size + after, *lines.shape[1:]), value, array.dtype)
        for j, i in _pad_copies(size, before, after, mode):
            padded[j] = lines[i]
        array = np.moveaxis(padded, 0, axis)
    return array


def pad_grad(
    grad_output: ArrayLike, padding: Sequence[Sequence[int]], mode: str = "constant"
) -> Array:
    """Return the gradient of `pad`: every element back to the one that it was a copy of."""
    grad = _wide(grad_output)
    for axis, (before, after) in enumerate(padding, grad.ndim - len(padding)):
        size = grad.shape[axis] - before - after
        lines = np.moveaxis(grad, axis, 0)
        grad_lines = np.zeros((size, *lines.shape[1:]), grad.dtype)
        for j, i in _pad_copies(size, before, after, mode):
            grad_lines[i] += lines[j]
        grad = np.moveaxis(grad_lines, 0, axis)
    return grad


def rounded_to_bfloat16(array: ArrayLike) -> Array:
    """Return numbers, as float64, rounded to bfloat16's 8 bits: to nearest, ties to even.

    Numbers that are subnormal in float32 become zero, as they do in products in bfloat16.
    """
    wide = np.asarray(array, "f4").astype("f8")
    fraction, exponent = np.frexp(wide)
    near = np.ldexp(np.rint(np.ldexp(fraction, 8)), exponent - 8)
    return np.where(np.abs(wide) < np.finfo("f4").smallest_normal, 0.0, near)


def error_in_eps(result: ArrayLike, exact: ArrayLike, bound: ArrayLike, dtype: DTypeLike) -> float:
    """Return max|result - exact| / max(bound), in units of the dtype's eps.

    Parameters
    ----------
    result, exact : arrays of one shape
        What is measured, and the oracle's answer to the very same arguments.
    bound : array
        The oracle's pass of the arguments' absolute values: the sum of |products| behind each
        element, which is what rounding errors scale with.
    dtype : the dtype that ``result`` was computed in

    Returns
    -------
    float
        0 for empty arrays; inf where ``bound`` is 0 throughout and the two differ.  The measure
        does not change with the scale of the arguments and hardly with the size of the sums:
        direct summation stays near 1.1 from 1 to 100,000 terms.

    Raises
    ------
    ValueError
        If the shapes differ: broadcasting could hide it.
    """
    result, exact = np.asarray(result), np.asarray(exact)
    if result.shape != exact.shape:
        raise ValueError(f"result has shape {result.shape}, but exact has {exact.shape}")
    if result.size == 0:
        return 0.0
    difference, scale = float(np.abs(result - exact).max()), float(np.max(bound))
    if scale == 0.0:
        return 0.0 if difference == 0.0 else np.inf
    return difference / scale / float(np.finfo(np.dtype(dtype)).eps)


def _wide(array: ArrayLike) -> Array:
    """Return the array in float64, or complex128 if it is complex."""
    array = np.asarray(array)
    return array.astype(np.result_type(array, np.float64), copy=False)


def _taps(geometry: Geometry) -> Iterator[tuple[Any, Any]]:
    """Yield each tap as an index of the weight, with the index of what it meets in `_padded`."""
    for tap in itertools.product(*(range(a.kernel) for a in geometry.axes)):
        starts = [t * a.dilation for t, a in zip(tap, geometry.axes, strict=True)]
        window = tuple(
            slice(start, start + (a.out - 1) * a.stride + 1, a.stride)
            for start, a in zip(starts, geometry.axes, strict=True)
        )
        yield (..., *tap), (..., *window)


def _padded(array: Array, geometry: Geometry) -> Array:
    """Copy (N, C, *sizes) with its zeros; a transposed geometry may cut after, not pad."""
    return np.pad(array, [(0, 0), (0, 0), *((a.before, max(a.after, 0)) for a in geometry.axes)])


def _with_bias(output: Array, bias: ArrayLike | None) -> Array:
    """Add one number a channel."""
    if bias is None:
        return output
    return output + _wide(bias).reshape(-1, *[1] * (output.ndim - 2))


def _cropped(padded: Array, geometry: Geometry) -> Array:
    """Undo `_padded`."""
    inner = (slice(a.before, a.before + a.size) for a in geometry.axes)
    return padded[(..., *inner)]  # type: ignore[arg-type]


def _grouped(array: Array, geometry: Geometry) -> Array:
    """Reshape (N, C, *outs) to (N, G, C/G, P)."""
    n, c = array.shape[:2]
    return array.reshape(n, geometry.groups, c // geometry.groups, geometry.pixels)


def _grouped_weight(weight: Array, geometry: Geometry) -> Array:
    """Reshape (C_out, C_in/G, *kernel) to (G, C_out/G, C_in/G, *kernel)."""
    groups = geometry.groups
    return weight.reshape(groups, geometry.c_out // groups, *weight.shape[1:])


def _scatter(grad_output: Array, weight: Array, geometry: Geometry) -> Array:
    """Add grad_output times each tap to the elements that the tap had read."""
    grad_output, weight = _grouped(grad_output, geometry), _grouped_weight(weight, geometry)
    zeros = np.zeros(geometry.input_shape, np.result_type(grad_output, weight))
    canvas = _padded(zeros, geometry)
    for tap, window in _taps(geometry):
        # (N, G, C_in/G, P) = (G, C_in/G, C_out/G) @ (N, G, C_out/G, P)
        products = weight[tap].swapaxes(-1, -2) @ grad_output
        canvas[window] += products.reshape(canvas[window].shape)
    return _cropped(canvas, geometry)


def _patch_geometry(input_shape: Sequence[int], kernel_size: Spatial, **steps: Any) -> Geometry:
    """Return the geometry of patches: a convolution with one output channel."""
    kernel = per_axis("kernel_size", kernel_size, len(input_shape) - 2)
    weight_shape = (1, input_shape[1], *kernel)
    return make_geometry(input_shape, weight_shape, **steps)


def _axis_windows(
    size: int, kernel: int, stride: int, pad: int, dilation: int, ceil_mode: bool, with_pad: bool
) -> Iterator[tuple[list[int], int]]:
    """Yield (elements of the axis, how many count) for each window, from the first to the last.

    A window begins where it fits into the padded axis.  With ceil_mode one more may begin before
    the axis ends, if the one before it left something over.
    """
    start, reach = -pad, dilation * (kernel - 1) + 1
    while start + reach <= size + pad or (
        ceil_mode and start < size and start - stride + reach < size + pad
    ):
        taps = range(start, start + reach, dilation)
        inside = [i for i in taps if 0 <= i < size]
        yield inside, sum(i < size + pad for i in taps) if with_pad else len(inside)
        start += stride


def _crossed(axes: Iterable[list[tuple[list[int], int]]]) -> list[Window]:
    """Return the windows of an image from those of each axis."""
    windows = []
    for parts in itertools.product(*map(enumerate, axes)):
        output = tuple(j for j, _ in parts)
        pixels = list(itertools.product(*(elements for _, (elements, _) in parts)))
        windows.append((output, pixels, math.prod(count for _, (_, count) in parts)))
    return windows


def _at(pixel: Index) -> Any:
    """Return the index of one pixel of every image and channel."""
    return (..., *pixel)


def _outs(windows: Sequence[Window]) -> Index:
    """Return the sizes of a pool's output."""
    return tuple(j + 1 for j in windows[-1][0])


def _pad_copies(size: int, before: int, after: int, mode: str) -> Iterator[tuple[int, int]]:
    """Yield (element of a padded axis, the one that it copies); constants copy none."""
    low, high = max(-before, 0), size - max(-after, 0)  # what cropping leaves
    for j, i in enumerate(range(-before, size + after)):
        if mode == "circular":
            yield j, low + (i - low) % (high - low)
        elif 0 <= i < size:
            yield j, i
        elif mode == "replicate":
            yield j, 0 if i < 0 else size - 1
        elif mode == "reflect":
            yield j, -i if i < 0 else 2 * (size - 1) - i
