"""im2col, its adjoint col2im, and a zero-copy view of all patches, on ndarrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from convcore.engine.conv.im2col._im2col import move_patches
from convcore.engine.conv.struct_fields import forward_lines, window
from convcore.engine.geometry import Geometry, Padding, Spatial, is_sequence, make_axes, per_axis
from convcore.engine.runtime.checks import Array, check_memory, checked_array, whole_elements
from convcore.engine.runtime.layout import layout


def im2col(
    input: Array,
    kernel_size: Spatial,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    channels_last: bool = False,
) -> Array:
    """Copy the patch of the input under the kernel at every output pixel into columns.

    columns[n, (c, t), j] = input[n, c, j*stride - before + t*dilation], 0 in the padding.

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes)
        float32, float64, complex64, complex128, bool or integers.  One to three spatial axes; any
        strides.
    kernel_size : int, or one int per spatial axis
        An int with an array of three axes means a batch with one spatial axis.
    stride, padding, dilation
        As for `conv_forward`.
    channels_last : bool
        Return the transpose, with the channels of one tap contiguous.

    Returns
    -------
    (N, C*taps, P), or (N, P, taps*C) if channels_last; without N if input is unbatched
        P is the number of output pixels, taps the number of the kernel's taps.  Contiguous; of the
        input's dtype.

    Raises
    ------
    TypeError, ValueError
        As `conv_forward`.
    MemoryError
        The result is taps times as large as the input.  Convolutions never create it.

    Notes
    -----
    Parallel over images and channels, except for bool and integers.  The input is not copied for
    padding, except for bool and integers.

    References
    ----------
    K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document
    processing (2006), section 2.

    Examples
    --------
    >>> import numpy as np
    >>> im2col(np.arange(9.0).reshape(1, 1, 3, 3), 2)[0]
    array([[0., 1., 3., 4.],
           [1., 2., 4., 5.],
           [3., 4., 6., 7.],
           [4., 5., 7., 8.]])
    """
    is_integer = isinstance(input, np.ndarray) and input.dtype.kind in "iub"
    input = input if is_integer else whole_elements(checked_array("input", input))
    kernel, unbatched = _kernel(input.shape, kernel_size)
    batch = input[np.newaxis] if unbatched else input
    g = _geometry(batch.shape, kernel, stride, padding, dilation)
    shape = (g.n, g.pixels, g.columns) if channels_last else (g.n, g.columns, g.pixels)
    check_memory(shape, input.itemsize)
    columns = np.empty(shape, input.dtype)
    if is_integer:
        _copy_patches(batch, columns, g, channels_last)
        return columns[0] if unbatched else columns
    array = layout(batch.shape, batch.strides, batch.itemsize)
    fields = window(forward_lines(g), array)
    move_patches(input.dtype.char, False, batch, columns, g.n, g.c_in, channels_last, fields)
    return columns[0] if unbatched else columns


def _copy_patches(x: Array, columns: Array, g: Geometry, channels_last: bool) -> None:
    """Copy the patches of (N, C, *sizes) of any dtype into columns with NumPy."""
    strides, dilations = (tuple(getattr(a, n) for a in g.axes) for n in ("stride", "dilation"))
    padded = np.pad(x, [(0, 0), (0, 0), *((a.before, a.after) for a in g.axes)])
    taps = tuple(a.kernel for a in g.axes)
    view = im2col_view(padded, taps, stride=strides, dilation=dilations)  # (N, C, *outs, *taps)
    rank = len(taps)
    outs, inner = range(2, 2 + rank), range(2 + rank, 2 + 2 * rank)
    order = (0, *outs, *inner, 1) if channels_last else (0, 1, *inner, *outs)
    view = view.transpose(order)
    columns.reshape(view.shape)[...] = view


def col2im(
    columns: Array,
    input_size: Spatial,
    kernel_size: Spatial,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    channels_last: bool = False,
) -> Array:
    """Add every patch back to its source in the image: the adjoint of `im2col`, not its inverse.

    output[n, c, i] = sum over t and the pixels j with j*stride - before + t*dilation = i of
    columns[n, (c, t), j].

    Parameters
    ----------
    columns : (N, C*taps, P), or (N, P, taps*C) if channels_last; without N if unbatched
    input_size : int, or one int per spatial axis
        The spatial sizes of im2col's input; an int applies to every axis of kernel_size.
    kernel_size : int, or one int per spatial axis
        An int applies to every axis of input_size; if both are ints, there is one axis.
    stride, padding, dilation, channels_last
        As for `im2col`.

    Returns
    -------
    (N, C, *input_size) or (C, *input_size)
        Contiguous, or channels_last in memory if channels_last.

    Raises
    ------
    TypeError, ValueError
        As `im2col`; also if the columns' shape does not match the sizes.

    Examples
    --------
    >>> import numpy as np
    >>> col2im(np.ones((1, 4, 4)), (3, 3), (2, 2))[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]])
    """
    columns = checked_array("columns", columns)
    rank = max(_length(input_size), _length(kernel_size), 1)
    if rank > 3:
        raise ValueError(
            f"input_size and kernel_size must be one to three ints, one a spatial axis, got {rank}"
        )
    sizes = per_axis("input_size", input_size, rank, least=0)
    kernel = per_axis("kernel_size", kernel_size, rank)
    if columns.ndim not in (2, 3):
        raise ValueError(
            f"columns must have 3 axes, or 2 if unbatched, got input of size: {list(columns.shape)}"
        )
    unbatched = columns.ndim == 2
    batch = np.require(columns[np.newaxis] if unbatched else columns, requirements=["C", "A"])
    taps = math.prod(kernel)
    n, k, p = (batch.shape[0], *batch.shape[:0:-1]) if channels_last else batch.shape
    if taps < 1 or k % taps or k == 0:
        raise ValueError(
            f"columns must have C * {taps} elements a patch for kernel_size {list(kernel)}, got {k}"
        )
    g = _geometry((n, k // taps, *sizes), kernel, stride, padding, dilation)
    if p != g.pixels:
        dimension = 1 if channels_last else 2
        outs = " * ".join(str(a.out) for a in g.axes)
        raise ValueError(
            f"Given output_size={tuple(sizes)}, kernel_size={tuple(kernel)}, "
            f"dilation={dilation}, padding={padding}, stride={stride}, expected size of input's "
            f"dimension {dimension} to match the calculated number of sliding "
            f"blocks {outs} = {g.pixels}, but got input.size({dimension})={p}."
        )
    shape = (n, k // taps, *sizes)
    check_memory(shape, columns.itemsize)
    image = _zeros(shape, columns.dtype, channels_last)
    fields = window(forward_lines(g), layout(image.shape, image.strides, image.itemsize))
    move_patches(columns.dtype.char, True, image, batch, g.n, g.c_in, channels_last, fields)
    return image[0] if unbatched else image


def im2col_view(
    input: np.ndarray, kernel_size: Spatial, *, stride: Spatial = 1, dilation: Spatial = 1
) -> np.ndarray:
    """Return the patches of the input as a view, without copying.

    view[n, c, *j, *t] = input[n, c, j*stride + t*dilation].

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes), of any dtype
        For padding, call `zero_pad` first.
    kernel_size : int, or one int per spatial axis
        An int with an array of three axes means a batch with one spatial axis.
    stride, dilation : int, or one int per spatial axis

    Returns
    -------
    (N, C, *outs, *kernel) or (C, *outs, *kernel)
        Read-only, because its elements overlap in memory.

    Raises
    ------
    TypeError, ValueError
        As `im2col`.

    Examples
    --------
    >>> import numpy as np
    >>> im2col_view(np.arange(9).reshape(1, 1, 3, 3), 2, stride=2, dilation=2).tolist()
    [[[[[[0, 2], [6, 8]]]]]]
    """
    if not isinstance(input, np.ndarray):
        raise TypeError(f"input must be a numpy.ndarray, got {type(input).__name__}")
    kernel, _ = _kernel(input.shape, kernel_size)
    rank = len(kernel)
    axes = make_axes(input.shape[-rank:], kernel, stride, 0, dilation)
    lead, steps = input.shape[:-rank], input.strides[-rank:]
    return np.lib.stride_tricks.as_strided(
        input,
        shape=(*lead, *(a.out for a in axes), *kernel),
        strides=(
            *input.strides[:-rank],
            *(s * a.stride for s, a in zip(steps, axes, strict=True)),
            *(s * a.dilation for s, a in zip(steps, axes, strict=True)),
        ),
        writeable=False,
    )


def unfold(
    input: Array,
    kernel_size: Spatial,
    dilation: Spatial = 1,
    padding: Padding = 0,
    stride: Spatial = 1,
) -> Array:
    """Compute `im2col` with PyTorch's name and argument order.

    An int kernel_size means two axes, as in PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> unfold(np.arange(9.0).reshape(1, 1, 3, 3), 2).shape
    (1, 4, 4)
    """
    if isinstance(input, np.ndarray) and _length(kernel_size) == 0 and input.ndim in (3, 4):
        kernel_size = (kernel_size, kernel_size)  # type: ignore[assignment]
    return im2col(input, kernel_size, stride=stride, padding=padding, dilation=dilation)


def fold(
    input: Array,
    output_size: Spatial,
    kernel_size: Spatial,
    dilation: Spatial = 1,
    padding: Padding = 0,
    stride: Spatial = 1,
) -> Array:
    """Compute `col2im` with PyTorch's name and argument order.

    If output_size and kernel_size are both ints, there are two axes, as in PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> fold(np.ones((1, 4, 4)), 3, 2)[0, 0, 1]
    array([2., 4., 2.])
    """
    if _length(output_size) == 0 and _length(kernel_size) == 0:
        output_size = (output_size, output_size)  # type: ignore[assignment]
    return col2im(
        input, output_size, kernel_size, stride=stride, padding=padding, dilation=dilation
    )


def _geometry(
    shape: Sequence[int],
    kernel: tuple[int, ...],
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
) -> Geometry:
    """Return the geometry of a convolution with one output channel over the array."""
    axes = make_axes(shape[2:], kernel, stride, padding, dilation)
    if shape[1] < 1:
        raise ValueError(f"input must have at least one channel, got shape {list(shape)}")
    return Geometry(shape[0], shape[1], 1, 1, axes)


def _kernel(shape: tuple[int, ...], kernel_size: Spatial) -> tuple[tuple[int, ...], bool]:
    """Return (one kernel size per spatial axis, whether an input of this shape is unbatched)."""
    ndim = len(shape)
    rank = _length(kernel_size) or ndim - 2
    if not 1 <= rank <= 3 or ndim not in (rank + 1, rank + 2):
        raise ValueError(
            "input must have one to three spatial axes after (N, C) or (C,), as many as "
            f"kernel_size {kernel_size!r} has, got input of size: {list(shape)}"
        )
    return per_axis("kernel_size", kernel_size, rank), ndim == rank + 1


def _length(value: object) -> int:
    """Return the length of a sequence, or 0 for a number."""
    return len(value) if is_sequence(value) else 0


def _zeros(shape: tuple[int, ...], dtype: np.dtype, channels_last: bool) -> Array:
    """Return a zero array of logical shape (N, C, *sizes) in contiguous or channels_last memory."""
    if not channels_last:
        return np.zeros(shape, dtype)
    memory = np.zeros((shape[0], *shape[2:], shape[1]), dtype)
    return np.moveaxis(memory, -1, 1)
