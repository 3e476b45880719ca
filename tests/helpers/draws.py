"""Draws of convolutions: every parameter, dtype and memory layout, small enough to be fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from convcore.engine.geometry import Axis, Geometry

DTYPES = ("float32", "float64", "complex64", "complex128")

# How an array may lie in memory.  "contiguous" and "channels_last" are drawn more often: they have
# kernels of their own.  All must give the same numbers.
LAYOUTS = (
    "contiguous",
    "channels_last",
    "permuted",  # the axes in any order in memory
    "strided",  # every axis sliced from a larger one, by 1, 2, -1 or -2
    "broadcast",  # an axis of stride 0, as the gradient of a sum has
    "field",  # a field of a packed record: addresses and strides that no itemsize divides
    "offset",  # contiguous, but at an odd place in its buffer
)


@dataclass(frozen=True)
class Case:
    """One convolution with everything that may differ about its arguments."""

    n: int
    groups: int
    c_in: int
    c_out: int
    axes: tuple[Axis, ...]
    dtype: str
    layouts: tuple[str, str, str]
    unbatched: bool
    bias: bool
    integers: bool
    draw: int

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def geometry(self) -> Geometry:
        return Geometry(self.n, self.c_in, self.c_out, self.groups, self.axes)

    @property
    def kernel(self) -> tuple[int, ...]:
        return tuple(a.kernel for a in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(a.size for a in self.axes)

    @property
    def pads(self) -> list[tuple[int, int]]:
        return [(a.before, a.after) for a in self.axes]

    @property
    def steps(self) -> dict[str, Any]:
        """The keywords of the three passes, each in the shortest form that says it."""
        pads = self.pads
        if all(before == after for before, after in pads):
            pads = shortest([before for before, _ in pads])
        return {
            "stride": shortest([a.stride for a in self.axes]),
            "padding": pads,
            "dilation": shortest([a.dilation for a in self.axes]),
            "groups": self.groups,
        }


def shortest(values: list[int]) -> int | list[int]:
    """Return one int for all axes where they agree."""
    return values[0] if len(set(values)) == 1 else values


@st.composite
def axes(draw: st.DrawFn, most: int = 9) -> Axis:
    """Draw an axis whose kernel fits: 1 to 5 taps, pads up to 4, at times beyond the kernel."""
    size = draw(st.sampled_from(range(1, most + 1)))
    before = draw(st.sampled_from((0, 0, 1, 2, 4)))
    after = draw(st.sampled_from((before, before, 0, 1, 3)))
    dilation = draw(st.sampled_from((1, 1, 2, 3)))
    kernel = draw(
        st.sampled_from(range(1, min(5, (size + before + after - 1) // dilation + 1) + 1))
    )
    stride = draw(st.sampled_from((1, 1, 2, 3, 4)))
    return Axis(size, kernel, stride, dilation, before, after)


def pointwise(axis: Axis) -> Axis:
    """Return the axis under a kernel of one tap with nothing around it."""
    return Axis(axis.size, 1)


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES) -> Case:
    """Draw a convolution of rank 1 to 3."""
    rank = draw(st.integers(1, 3))
    # Some kernels begin at 16 channels; 17 and 19 leave a rest behind any vector.
    group_sizes = st.sampled_from((1, 2, 3, 4, 5, 8, 17, 19) if rank < 3 else (1, 2, 3, 5, 17))
    groups = draw(st.sampled_from((1, 1, 1, 2, 3, 7)))
    c_group = draw(group_sizes)
    o_group = draw(group_sizes)
    unbatched = draw(st.booleans()) and draw(st.booleans())
    layout = st.sampled_from((*LAYOUTS, *["contiguous", "channels_last"] * 3))
    layouts = (draw(layout), draw(layout), draw(layout))
    # Two arrays repeated along one axis give equal products, whose rounding errors add up instead
    # of cancelling; integers have none.
    integers = draw(st.booleans()) or layouts.count("broadcast") > 1
    all_axes = tuple(draw(axes()) for _ in range(rank))
    if draw(st.sampled_from((False,) * 9 + (True,))):
        all_axes = tuple(map(pointwise, all_axes))
    return Case(
        n=1 if unbatched else draw(st.sampled_from((1, 2, 3, 1, 2, 3, 1, 2, 3, 0))),
        groups=groups,
        c_in=groups * c_group,
        c_out=groups * o_group,
        axes=all_axes,
        dtype=draw(st.sampled_from(dtypes)),
        layouts=layouts,
        unbatched=unbatched,
        bias=draw(st.booleans()),
        integers=integers,
        draw=draw(st.integers(0, 2**32 - 1)),
    )


def numbers(rng: np.random.Generator, shape, dtype, *, integers: bool = False) -> np.ndarray:
    """Return normal draws, or integers from -3 to 3, whose sums of products are exact."""

    def real() -> np.ndarray:
        return rng.integers(-3, 4, shape) if integers else rng.standard_normal(shape)

    return (real() + 1j * real() if np.dtype(dtype).kind == "c" else real()).astype(dtype)


def lay_out(array: np.ndarray, name: str, rng: np.random.Generator) -> np.ndarray:
    """Return the array's values in another memory layout, read-only half of the time.

    What lies between the elements is NaN, so that a kernel which reads there shows it.  A
    "broadcast" repeats the first values along an axis instead of keeping all of them.
    """
    result = _lay_out(array, name, rng)
    if rng.random() < 0.5:
        result.flags.writeable = False
    return result


def _lay_out(array: np.ndarray, name: str, rng: np.random.Generator) -> np.ndarray:
    ndim = array.ndim
    if name == "contiguous":
        return np.ascontiguousarray(array)
    if name in ("channels_last", "permuted"):
        order = (0, *range(2, ndim), 1) if name == "channels_last" else tuple(rng.permutation(ndim))
        return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
    if name == "broadcast":
        axis = int(rng.integers(ndim))
        if array.shape[axis] == 0:
            return array
        first = array.take([0], axis=axis)
        return np.lib.stride_tricks.as_strided(
            first, array.shape, [0 if a == axis else s for a, s in enumerate(first.strides)]
        )
    if name == "field":
        record = np.dtype([("tag", "u1"), ("value", array.dtype), ("rest", "u2")])
        result = np.full(array.shape, 255, record)["value"]
    elif name == "offset":
        buffer = np.full(array.size + 3, np.nan, array.dtype)
        result = buffer[3:].reshape(array.shape)
    else:
        steps = rng.choice((1, 2, -1, -2), ndim)
        larger = [n * abs(s) + 1 for n, s in zip(array.shape, steps, strict=True)]
        buffer = np.full(larger, np.nan, array.dtype)
        result = buffer[tuple(slice(None, None, s) for s in steps)]
        result = result[tuple(slice(0, n) for n in array.shape)]
    result[...] = array
    return result


def is_channels_last(array: np.ndarray) -> bool:
    """Return whether PyTorch would suggest channels_last for an array of this shape and strides.

    Walking C, then the spatial axes from the last, then N, strides must not fall; where both
    formats fit, the answer is contiguous.
    """
    if array.ndim not in (4, 5) or 0 in array.shape or array.strides[1] == 0:
        return False
    least = 0
    for axis in (1, *range(array.ndim - 1, 1, -1)):
        if array.strides[axis] < least:
            return False
        least = array.strides[axis] * array.shape[axis]
    return array.strides[0] >= least and least != array.strides[1]


def is_dense(array: np.ndarray, channels_last: bool) -> bool:
    """Return whether the array lies without gaps in the named format."""
    return (np.moveaxis(array, 1, -1) if channels_last else array).flags.c_contiguous


def transposed_size(axis: Axis, extra: int) -> int:
    """Return the output size of a transposed convolution over ``axis.size`` elements."""
    return (axis.size - 1) * axis.stride - axis.before - axis.after + axis.extent + extra
