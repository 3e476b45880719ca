"""Resize in all modes and coordinate transformations, grid_sample, affine_grid.

Sizes, scales and coordinates are float32, as in ONNX Runtime and PyTorch: 10 * 0.7 is 7 pixels,
which it is in neither exact arithmetic nor float64.  Where ONNX Runtime and the reference evaluator
differ, this module follows:

- ONNX Runtime and PyTorch in ``align_corners``: the last pixel of the rounded size is the last
  pixel of the image.  The reference divides by the size before it is rounded.
- ONNX Runtime and the text of the standard in ``pytorch_half_pixel`` of size 1: pixel 0, where the
  reference has -0.5.
- ONNX Runtime and, of images, PyTorch where all sizes stay, and with ``antialias`` along an axis
  whose size stays: 4 pixels by 1.2 are the same 4 pixels.
- the reference in ``tf_crop_and_resize`` by a scale of 1: the region counts.  ONNX Runtime copies.
- the reference in resizing integers: rounded once, and clipped to the dtype.  ONNX Runtime
  truncates in linear mode and wraps round in cubic mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import convcore
from convcore import engine
from convcore._tensor.reads import mark_static
from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, array_of, axis_of, integers, is_differentiable

_REAL = np.float32


@operator("Upsample")
def upsample(
    x: Value,
    factors: Value = None,
    *,
    mode: str = "nearest",
    scales: list[float] | None = None,
    height_scale: float = 1.0,
    width_scale: float = 1.0,
) -> Value:
    """Return the tensor enlarged by factors, nearest or linear."""
    if factors is None:
        factors = np.array(scales or [1.0, 1.0, height_scale, width_scale], _REAL)
    mode = {"bilinear": "linear"}.get(mode, mode)
    return resize(x, factors, version=10, mode=mode)


@operator("Resize")
def resize(
    x: Value,
    roi: Value = None,
    scales: Value = None,
    sizes: Value = None,
    *,
    version: int,
    antialias: int = 0,
    axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Value:
    """Return the tensor resized by factors, or to sizes."""
    if version < 11:  # x, scales
        scales, roi = roi, None
        coordinate_transformation_mode, nearest_mode = "asymmetric", "floor"
    if mode not in ("nearest", "linear", "cubic"):
        raise OnnxError(f"Resize: mode is {mode!r}: nearest, linear or cubic")
    which = [axis_of(a, x.ndim) for a in axes] if axes else list(range(x.ndim))
    lengths = [x.shape[a] for a in which]
    given = [] if scales is None else [_REAL(s) for s in array_of(scales)]
    if given:
        _check_count("scales", given, which)
        wanted = [int(_REAL(n) * s) for n, s in zip(lengths, given, strict=True)]
    elif sizes is not None:
        _check_count("sizes", integers(sizes), which)
        wanted, given = _of_policy(integers(sizes), lengths, keep_aspect_ratio_policy)
    else:
        raise OnnxError("Resize: neither scales nor sizes are given")
    region = [(_REAL(0), _REAL(1))] * len(which)
    if coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None:
        both = [_REAL(r) for r in array_of(roi)]
        _check_count("roi", both, which * 2)
        region = list(zip(both[: len(which)], both[len(which) :], strict=True))
    plans = {
        axis: _Axis(n, m, factor, ends, coordinate_transformation_mode)
        for axis, n, m, factor, ends in zip(which, lengths, wanted, given, region, strict=True)
    }
    plans = {axis: plan for axis, plan in plans.items() if not plan.is_unchanged}
    if coordinate_transformation_mode != "tf_crop_and_resize" and (antialias or wanted == lengths):
        plans = {axis: plan for axis, plan in plans.items() if plan.size != plan.wanted}
    if mode == "nearest":
        y = _nearest(x, plans, nearest_mode)
    else:
        options = _Filter(mode, bool(antialias), cubic_coeff_a, bool(exclude_outside))
        y = _weighted(x, plans, options)
    return _extrapolated(y, plans, extrapolation_value)


def _check_count(name: str, values: list, axes: list[int]) -> None:
    if len(values) != len(axes):
        raise OnnxError(f"Resize: {len(values)} {name} are given, {len(axes)} are needed")


def _of_policy(
    wanted: list[int], sizes: list[int], policy: str
) -> tuple[list[int], list[np.float32]]:
    """Return sizes and factors; the ratio of sides is kept unless the policy is to stretch."""
    factors = [_REAL(w) / _REAL(n) if n else _REAL(1) for w, n in zip(wanted, sizes, strict=True)]
    if policy == "stretch":
        return wanted, factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [math.floor(float(_REAL(n) * factor) + 0.5) for n in sizes], [factor] * len(sizes)


@dataclass(frozen=True)
class _Axis:
    """One axis: its size, the wanted one, the factor, and the part that is resized (0 to 1)."""

    size: int
    wanted: int
    factor: np.float32
    region: tuple[np.float32, np.float32]
    transformation: str

    @property
    def is_unchanged(self) -> bool:
        """Whether every pixel stays where it is."""
        same = self.size == self.wanted and self.factor == 1
        return same and (self.transformation != "tf_crop_and_resize" or self.region == (0, 1))

    def coordinates(self) -> np.ndarray:
        """Return the coordinate of each wanted pixel among those of the image."""
        i, m, factor = np.arange(self.wanted, dtype=_REAL), self.wanted, self.factor
        n, last = _REAL(self.size), _REAL(self.size - 1)
        match self.transformation:
            case "half_pixel":
                return (i + _REAL(0.5)) / factor - _REAL(0.5)
            case "pytorch_half_pixel":
                return (i + _REAL(0.5)) / factor - _REAL(0.5) if m > 1 else i
            case "asymmetric":
                return i / factor
            case "align_corners":
                return i * last / _REAL(m - 1) if m > 1 else i
            case "tf_half_pixel_for_nn":
                return (i + _REAL(0.5)) / factor
            case "half_pixel_symmetric":
                offset = n / _REAL(2) * (_REAL(1) - _REAL(m) / (factor * n))
                exact = float(offset) + (i.astype(float) + 0.5) / float(factor) - 0.5
                return exact.astype(_REAL)
            case "tf_crop_and_resize":
                start, end = self.region
                if m == 1:
                    return i + _REAL(0.5 * float(start + end) * float(last))
                return start * last + i * (end - start) * last / _REAL(m - 1)
        raise OnnxError(f"Resize: unknown coordinate_transformation_mode {self.transformation!r}")

    def nearest(self, rounding: str) -> np.ndarray:
        """Return the index of the pixel nearest to each coordinate."""
        places = self.coordinates().astype(float)  # where adding 0.5 is exact
        return np.clip(_ROUNDINGS[rounding](places), 0, self.size - 1).astype(np.int64)

    def is_interpolated(self, filter: _Filter, align: bool) -> bool:
        """Return whether `interpolate` has the same weights along the axis."""
        if filter.antialias or filter.exclude_outside or filter.cubic != -0.75:
            return False
        if align:
            return self.transformation == "align_corners" and self.wanted > 1
        halves = ("half_pixel", "pytorch_half_pixel")[: 1 + (self.wanted > 1)]
        ratio = _REAL(self.wanted) / _REAL(self.size)
        return self.transformation in halves and self.factor == ratio


@dataclass(frozen=True)
class _Filter:
    """How the pixels about a coordinate are weighted."""

    mode: str
    antialias: bool
    cubic: float
    exclude_outside: bool

    def taps(self, axis: _Axis) -> tuple[np.ndarray, np.ndarray]:
        """Return the pixels of which each wanted one is a sum, and their weights: (wanted, K)."""
        places = axis.coordinates().astype(float)
        shrink = min(float(axis.factor), 1.0) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / shrink
        first = np.floor(places - reach).astype(np.int64) + 1
        taps = first[:, None] + np.arange(math.ceil(2 * reach))
        distance = np.abs(taps - places[:, None]) * shrink
        linear = self.mode == "linear"
        weights = np.maximum(0, 1 - distance) if linear else _cubic(distance, self.cubic)
        if self.exclude_outside:
            weights = weights * ((taps >= 0) & (taps < axis.size))
        if self.exclude_outside or self.antialias:
            weights = weights / weights.sum(1, keepdims=True)
        return np.clip(taps, 0, axis.size - 1), weights


# A coordinate this near to the middle of two pixels is taken for it, as in ONNX Runtime: 20 pixels
# to 6 have one at 14.5, of which float32 makes 14.499999.
_TIE = 1e-6
_ROUNDINGS: dict[str, Callable[..., np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5 - _TIE),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5 + _TIE),
}
# What `interpolate` calls a mode, by the number of axes of the tensor.
_IMAGES = {
    ("linear", 3): "linear",
    ("linear", 4): "bilinear",
    ("linear", 5): "trilinear",
    ("cubic", 4): "bicubic",
}


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Return Keys' cubic convolution kernel (IEEE Trans. ASSP 29, 1981) at distances."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _is_image(x: Value, plans: dict[int, _Axis]) -> bool:
    """Return whether the axes of plans are those that `interpolate` resizes, and x is floating."""
    return is_differentiable(x) and x.ndim in (3, 4, 5) and x.numel() > 0 and min(plans) > 1


def _sizes(x: Value, plans: dict[int, _Axis]) -> list[int]:
    return [plans[a].wanted if a in plans else n for a, n in enumerate(x.shape)]


def _nearest(x: Value, plans: dict[int, _Axis], rounding: str) -> Value:
    if rounding not in _ROUNDINGS:
        raise OnnxError(f"Resize: nearest_mode is {rounding!r}: {', '.join(_ROUNDINGS)}")
    picked = {axis: plan.nearest(rounding) for axis, plan in plans.items()}
    if picked and _is_image(x, plans) and min(_sizes(x, plans)) > 0:
        lines = {a: np.arange(x.shape[a], dtype=_REAL)[None, None] for a in picked}
        theirs = {a: engine.interpolate(line, [len(picked[a])]) for a, line in lines.items()}
        if all(np.array_equal(theirs[a].ravel(), picked[a]) for a in picked):
            return F.interpolate(x, _sizes(x, plans)[2:], mode="nearest")
    for axis, index in picked.items():
        x = x.index_select(axis, _constant(index))
    return x


def _weighted(x: Value, plans: dict[int, _Axis], filter: _Filter) -> Value:
    """Return the weighted sums along each axis; of integers rounded and clipped in the end."""
    if not plans:
        return x
    name = _IMAGES.get((filter.mode, x.ndim))
    if name and _is_image(x, plans) and min(_sizes(x, plans)) > 0:
        for align in (False, True):
            if all(plan.is_interpolated(filter, align) for plan in plans.values()):
                return F.interpolate(x, _sizes(x, plans)[2:], mode=name, align_corners=align)
    if x.is_floating_point():
        y = x if x.dtype is convcore.float64 else x.to(convcore.float32)
    else:
        y = x.to(convcore.float64)
    for axis, plan in plans.items():
        y = _along(y, axis, *filter.taps(plan))
    if not x.is_floating_point():
        limits = convcore.iinfo(x.dtype)
        y = y.round().clamp(limits.min, limits.max)
    return y.to(x.dtype)


def _along(x: Value, axis: int, taps: np.ndarray, weights: np.ndarray) -> Value:
    """Return sums of pixels of an axis: (wanted, K) taps and weights."""
    shape = [1] * x.ndim
    shape[axis] = -1
    y = None
    for k in range(taps.shape[1]):
        weight = _constant(weights[:, k].reshape(shape)).to(x.dtype)
        part = x.index_select(axis, _constant(taps[:, k])) * weight
        y = part if y is None else y + part
    return y


def _constant(array: np.ndarray) -> Value:
    """Return an array that depends on shapes alone as a tensor."""
    tensor = convcore.from_numpy(np.ascontiguousarray(array))
    mark_static(tensor)
    return tensor


def _extrapolated(x: Value, plans: dict[int, _Axis], value: float) -> Value:
    """Return x with a value where a coordinate of tf_crop_and_resize is outside the image."""
    for axis, plan in plans.items():
        if plan.transformation == "tf_crop_and_resize":
            places, shape = plan.coordinates(), [1] * x.ndim
            shape[axis] = -1
            outside = _constant((places < 0) | (places > plan.size - 1)).reshape(shape)
            x = convcore.where(outside, x.new_full((), value), x)
    return x


@operator("GridSample")
def grid_sample(
    x: Value,
    grid: Value,
    *,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: int = 0,
) -> Value:
    """Return the image at the places of a grid, from -1 to 1."""
    names = {"linear": "bilinear", "cubic": "bicubic"}
    if mode in ("cubic", "bicubic") and x.ndim != 4:
        raise OnnxError("GridSample: cubic is for images of two axes")
    return F.grid_sample(
        x, grid.to(x.dtype), names.get(mode, mode), padding_mode, bool(align_corners)
    )


@operator("AffineGrid")
def affine_grid(theta: Value, size: Value, *, align_corners: int = 0) -> Value:
    """Return the grid that an affine transformation makes of an image's pixels."""
    return F.affine_grid(theta, integers(size), bool(align_corners))
