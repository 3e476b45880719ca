"""Sizes of a convolution: plain ints, independent of arrays, dtypes and memory.

One axis of a convolution is an input of ``size`` elements with ``before`` and ``after`` zeros
around it, under a kernel of ``kernel`` taps ``dilation`` apart that moves ``stride`` at a time.
Its output size is the number of positions where the whole kernel fits, that is, the one integer
``out`` with

    (out - 1) * stride + dilation * (kernel - 1) + 1
        <= before + size + after
        <  out * stride + dilation * (kernel - 1) + 1

Solved for the size, with no remainder, this reads ``size = (out - 1) * stride + dilation * (kernel
- 1) + 1 - before - after``; solved for the kernel, ``kernel = (before + size + after - (out - 1) *
stride - 1) / dilation + 1``.  A stride that does not divide the remainder leaves up to ``stride -
1`` input elements that no output reads; their gradient is 0.

Separate pads per side and axis cover 'same', ONNX's asymmetric pads and output_padding.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeGuard

from convcore.engine.integers import as_int, as_ints

Spatial = int | Sequence[int]
Padding = int | str | Sequence[int] | Sequence[Sequence[int]]

# Larger strides, dilations, pads and kernels are rejected: no index in the kernels overflows.
MOST = 2**31 - 1


class Steps(NamedTuple):
    """Stride, padding, dilation and groups: the parameters of a convolution besides its arrays."""

    stride: Spatial = 1
    padding: Padding = 0
    dilation: Spatial = 1
    groups: int = 1


class Axis(NamedTuple):
    """One spatial axis: sizes, stride and dilation in elements, zero padding before and after."""

    size: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @property
    def extent(self) -> int:
        """Return the elements from the kernel's first tap to its last, both included."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def padded(self) -> int:
        """Return the elements of the input including its padding."""
        return self.before + self.size + self.after

    @property
    def out(self) -> int:
        """Return the number of outputs; below 1 if the kernel does not fit."""
        return (self.padded - self.extent) // self.stride + 1


class Geometry(NamedTuple):
    """All the sizes of one convolution: (N, C_in, *sizes) * (C_out, C_in/G, *kernel)."""

    n: int
    c_in: int
    c_out: int
    groups: int
    axes: tuple[Axis, ...]

    @property
    def rank(self) -> int:
        """Return the number of spatial axes."""
        return len(self.axes)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Return (N, C_in, *sizes)."""
        return (self.n, self.c_in, *(a.size for a in self.axes))

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Return (C_out, C_in/G, *kernel)."""
        return (self.c_out, self.c_in // self.groups, *(a.kernel for a in self.axes))

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Return (N, C_out, *outs)."""
        return (self.n, self.c_out, *(a.out for a in self.axes))

    @property
    def taps(self) -> int:
        """Return the kernel's taps per channel."""
        return math.prod(a.kernel for a in self.axes)

    @property
    def columns(self) -> int:
        """Return K = C_in/G * taps: the products summed for one output element."""
        return self.c_in // self.groups * self.taps

    @property
    def pixels(self) -> int:
        """Return P: the output elements of one image and channel."""
        return math.prod(a.out for a in self.axes)

    @property
    def multiply_adds(self) -> int:
        """Return the multiply-adds of one pass, taps on padding included: N * C_out * P * K."""
        return self.n * self.c_out * self.pixels * self.columns


def index(name: str, value: Any) -> int:
    """Return value as an int; raise TypeError naming the argument if it is not an integer."""
    try:
        return as_int(value)
    except TypeError:
        raise _no_ints(name, value) from None


def indices(name: str, values: Sequence[Any]) -> tuple[int, ...]:
    """Return several values as ints; see `index`."""
    try:
        return as_ints(values)
    except TypeError:
        raise _no_ints(name, values) from None


def _no_ints(name: str, value: Any) -> TypeError:
    return TypeError(f"{name} must be an int or a sequence of ints, got {shown(value)}")


def per_axis(name: str, value: Any, rank: int, least: int | None = None) -> tuple[int, ...]:
    """Return one int per axis, from ``rank`` ints or from a single int for all axes."""
    if is_sequence(value):
        one_for_all = len(value) == 1 and not is_sequence(value[0])
        if len(value) != rank and not one_for_all:
            got = list(value) if len(value) <= 8 else f"{len(value)} values"
            raise ValueError(f"{name} must be an int or {rank} ints, one a spatial axis, got {got}")
        values = indices(name, value) * (rank if one_for_all else 1)
    else:
        values = (index(name, value),) * rank
    if max(values, default=0) > MOST:
        raise ValueError(f"{name} must be at most {MOST} on every axis, got {list(values)}")
    if least is not None and min(values) < least:
        raise ValueError(f"{name} must be at least {least} on every axis, got {list(values)}")
    return values


def pad_pairs(
    padding: Any, extents: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Return (before, after) per axis from any form of ``padding``.

    'same' gives an output as large as the input (stride 1 only); if the total is odd the extra zero
    is added after, as in PyTorch.
    """
    rank = len(extents)
    if isinstance(padding, str):
        if padding == "valid":
            return [(0, 0)] * rank
        if padding != "same":
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
            )
        if any(s != 1 for s in strides):
            raise ValueError(
                "padding='same' is not supported for strided convolutions, "
                f"got stride {list(strides)}"
            )
        return [((e - 1) // 2, (e - 1) - (e - 1) // 2) for e in extents]
    if is_sequence(padding) and len(padding) == rank and any(map(is_sequence, padding)):
        pairs = [_pair(p) for p in padding]
    else:
        pairs = [(p, p) for p in per_axis("padding", padding, rank)]
    if min(map(min, pairs)) < 0:
        raise ValueError(f"negative padding is not supported: padding must be >= 0, got {pairs}")
    return pairs


def _shape(name: str, value: Any) -> tuple[int, ...]:
    if not is_sequence(value):
        raise TypeError(f"{name} must be a sequence of ints, got {shown(value)}")
    return indices(name, value)


def _pair(value: Any) -> tuple[int, int]:
    before, after = per_axis("padding", value, 2)
    return before, after


def make_axes(
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
) -> tuple[Axis, ...]:
    """Validate stride, padding, dilation and kernel sizes; return the axes.

    Raises
    ------
    TypeError, ValueError
        A parameter is not an int or one int per axis; a stride, dilation or kernel below 1; a
        negative pad; an unknown padding string; a kernel larger than the padded input.
    """
    rank = len(kernel)
    strides = per_axis("stride", stride, rank)
    dilations = per_axis("dilation", dilation, rank)
    if min(strides) < 1:
        raise ValueError(
            f"non-positive stride is not supported: stride must be >= 1, got {list(strides)}"
        )
    if min(dilations) < 1:
        raise ValueError(f"dilation should be greater than zero, got {list(dilations)}")
    if min(kernel) < 1:
        raise ValueError(f"kernel size should be greater than zero, got {list(kernel)}")
    extents = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    pads = pad_pairs(padding, extents, strides)
    axes = tuple(
        Axis(size, k, s, d, *pair)
        for size, k, s, d, pair in zip(sizes, kernel, strides, dilations, pads, strict=True)
    )
    if any(a.extent > a.padded for a in axes):
        raise ValueError(
            f"Calculated padded input size per channel: ({_by(a.padded for a in axes)}). "
            f"Kernel size: ({_by(a.extent for a in axes)}). "
            "Kernel size can't be greater than actual input size"
        )
    return axes


def make_geometry(
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
) -> Geometry:
    """Validate the shapes and parameters of a convolution; return its geometry.

    Parameters
    ----------
    input_shape : (N, C_in, *sizes)
    weight_shape : (C_out, C_in/G, *kernel)
        One to three spatial axes.
    stride, dilation : int or one int per axis
    padding : int, one int per axis, one (before, after) pair per axis, 'same' or 'valid'
    groups : int

    Raises
    ------
    TypeError, ValueError
        Names the argument, its value and what is allowed.  Messages begin like PyTorch's, because
        programs match them.

    Examples
    --------
    >>> make_geometry((1, 1, 5, 5), (1, 1, 2, 2), stride=2, padding=3).output_shape
    (1, 1, 5, 5)
    """
    input_shape = _shape("input_shape", input_shape)
    weight_shape = _shape("weight_shape", weight_shape)
    _checked_rank(input_shape, weight_shape, "(C_out, C_in/G, *kernel)", "conv")
    groups = index("groups", groups)
    n, c_in, *sizes = input_shape
    c_out, c_group, *kernel = weight_shape
    if groups < 1:
        raise ValueError(f"non-positive groups is not supported: groups must be >= 1, got {groups}")
    if c_out < groups:
        raise ValueError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {list(weight_shape)} instead"
        )
    if c_out % groups:
        raise ValueError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(weight_shape)} instead"
        )
    if c_group < 1:
        raise ValueError(
            "weight should have at least one channel at dimension 1, "
            f"got weight of size {list(weight_shape)}"
        )
    if c_in != c_group * groups:
        raise ValueError(
            f"Given groups={groups}, weight of size {list(weight_shape)}, "
            f"expected input{list(input_shape)} to have {c_group * groups} channels, "
            f"but got {c_in} channels instead"
        )
    if min(n, *sizes) < 0:
        raise ValueError(f"input_shape must have no negative size, got {list(input_shape)}")
    return Geometry(n, c_in, c_out, groups, make_axes(sizes, kernel, stride, padding, dilation))


def weight_rank(shape: Sequence[int], axes: str = "(C_out, C_in/G, *kernel)") -> int:
    """Return the number of spatial axes of a weight; axes: description of its axes for errors."""
    rank = len(shape) - 2
    if not 1 <= rank <= 3:
        raise ValueError(
            "weight should have at least three dimensions and at most five: "
            f"{axes}, got shape {list(shape)}"
        )
    return rank


def _checked_rank(
    input_shape: Sequence[int], weight_shape: Sequence[int], axes: str, function: str
) -> int:
    """Return the number of spatial axes of both arrays; axes: description of the weight's axes."""
    rank = weight_rank(weight_shape, axes)
    if len(input_shape) != rank + 2:
        raise ValueError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to "
            f"{function}{rank}d, but got input of size: {list(input_shape)}"
        )
    return rank


def transposed_geometry(
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    stride: Spatial = 1,
    padding: Padding = 0,
    output_padding: Spatial = 0,
    dilation: Spatial = 1,
    groups: int = 1,
) -> Geometry:
    """Return the geometry of the convolution whose input gradient is a transposed convolution.

    Its ``output_shape`` is the transposed convolution's input, its ``input_shape`` the output, of
    size (size - 1) * stride - before - after + extent + output_padding on each axis.

    Parameters
    ----------
    input_shape : (N, C_in, *sizes) of the transposed convolution
    weight_shape : (C_in, C_out/G, *kernel)
    output_padding : int or one int per axis, smaller than stride or dilation on that axis

    Raises
    ------
    TypeError, ValueError
        As `make_geometry`; an output_padding that is negative or too large; an empty output.
    """
    rank = _checked_rank(input_shape, weight_shape, "(C_in, C_out/G, *kernel)", "conv_transpose")
    groups = index("groups", groups)
    n, c_in, *sizes = input_shape
    if c_in != weight_shape[0]:
        raise ValueError(
            f"Given transposed=1, weight of size {list(weight_shape)}, "
            f"expected input{list(input_shape)} to have {weight_shape[0]} channels, "
            f"but got {c_in} channels instead"
        )
    kernel = weight_shape[2:]
    strides = per_axis("stride", stride, rank, least=1)
    dilations = per_axis("dilation", dilation, rank, least=1)
    extras = per_axis("output_padding", output_padding, rank, least=0)
    if any(e >= max(s, d) for e, s, d in zip(extras, strides, dilations, strict=True)):
        raise ValueError(
            "output padding must be smaller than either stride or dilation, got output_padding "
            f"{list(extras)}, stride {list(strides)}, dilation {list(dilations)}"
        )
    extents = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    pairs = pad_pairs(padding, extents, strides)
    outs = [
        (size - 1) * s - before - after + e + extra
        for size, s, (before, after), e, extra in zip(
            sizes, strides, pairs, extents, extras, strict=True
        )
    ]
    if min(outs) < 1 or min(sizes) < 1:
        raise ValueError(
            f"Given input size per channel: ({_by(sizes)}). "
            f"Calculated output size per channel: ({_by(outs)}). Output size is too small"
        )
    # An output padding beyond the stride is legal when the dilation is larger still.  The plain
    # convolution over it would have further outputs; pads cut by those keep it exactly ours.
    out_shape = (n, weight_shape[1] * groups, *outs)
    geometry = make_geometry(out_shape, weight_shape, strides, pairs, dilations, groups)
    return _with_outputs(geometry, sizes)


def _with_outputs(geometry: Geometry, outs: Sequence[int]) -> Geometry:
    """Return the geometry with after-pads lowered to get exactly ``outs`` outputs per axis."""
    axes = (
        a if a.out == out else a._replace(after=a.after - (a.out - out) * a.stride)
        for a, out in zip(geometry.axes, outs, strict=True)
    )
    return geometry._replace(axes=tuple(axes))


def _by(sizes: Iterable[int]) -> str:
    return " x ".join(map(str, sizes))


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Return whether value is a list, a tuple or an array with axes, rather than a single value."""
    if isinstance(value, str | bytes):
        return False
    return isinstance(value, Sequence) or getattr(value, "ndim", 0) > 0


def shown(value: Any) -> str:
    """Return value with its type, for error messages."""
    text = f"{type(value).__name__} {reprlib.repr(value)}"
    return text if len(text) <= 120 else text[:117] + "..."
