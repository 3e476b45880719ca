"""Resize in all modes and coordinate transformations, grid_sample, affine_grid.

An axis is resized by a matrix of weights of its pixels, or by an index where one pixel is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import convcore
from convcore._reads import mark_static
from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, array_of, axis_of, integers, is_differentiable


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
    if factors is not None:
        given = [float(f) for f in array_of(factors)]
    else:
        given = scales or [1.0, 1.0, height_scale, width_scale]
    sizes = [math.floor(n * f) for n, f in zip(x.shape, given, strict=True)]
    mode = {"bilinear": "linear"}.get(mode, mode)
    axes = [_Axis(x.shape[a], sizes[a], given[a]) for a in range(x.ndim)]
    return _resized(x, range(x.ndim), axes, mode, "asymmetric", "floor", {})


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
    which = [axis_of(a, x.ndim) for a in axes] if axes else list(range(x.ndim))
    given = [] if scales is None else [float(s) for s in array_of(scales)]
    if given:
        wanted = [math.floor(x.shape[a] * s) for a, s in zip(which, given, strict=True)]
    elif sizes is not None:
        wanted, given = _of_policy(
            integers(sizes), [x.shape[a] for a in which], keep_aspect_ratio_policy
        )
    else:
        raise OnnxError("Resize: neither scales nor sizes are given")
    region = [] if roi is None else [float(r) for r in array_of(roi)]
    plans = []
    for k, axis in enumerate(which):
        ends = (region[k], region[k + len(which)]) if region else (0.0, 1.0)
        plans.append(_Axis(x.shape[axis], wanted[k], given[k], *ends))
    options = {
        "antialias": antialias,
        "cubic": cubic_coeff_a,
        "exclude_outside": exclude_outside,
        "outside": extrapolation_value,
    }
    return _resized(x, which, plans, mode, coordinate_transformation_mode, nearest_mode, options)


def _of_policy(wanted: list[int], sizes: list[int], policy: str) -> tuple[list[int], list[float]]:
    """Return sizes and factors; the ratio of sides is kept unless the policy is to stretch."""
    factors = [w / n for w, n in zip(wanted, sizes, strict=True)]
    if policy == "stretch":
        return wanted, factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [math.floor(n * factor + 0.5) for n in sizes], [factor] * len(sizes)


class _Axis:
    """One axis: its size, the wanted one, the factor, and the part that is resized (0 to 1)."""

    def __init__(
        self, size: int, wanted: int, factor: float, start: float = 0.0, end: float = 1.0
    ) -> None:
        self.size, self.wanted, self.factor = size, wanted, factor
        self.start, self.end = start, end

    def is_unchanged(self, transformation: str) -> bool:
        """Return whether every pixel stays where it is."""
        same = self.size == self.wanted and self.factor == 1
        return same and transformation != "tf_crop_and_resize"

    def coordinates(self, transformation: str) -> np.ndarray:
        """Return where each wanted pixel lies among the pixels that there are."""
        i, n, m, factor = np.arange(self.wanted, dtype=float), self.size, self.wanted, self.factor
        if transformation == "asymmetric":
            return i / factor
        if transformation == "align_corners":
            last = n * factor - 1  # of the size before it is rounded
            return i * (n - 1) / last if last > 0 else np.zeros(m)
        if transformation == "tf_crop_and_resize":
            if m == 1:
                return np.full(1, 0.5 * (self.start + self.end) * (n - 1))
            return self.start * (n - 1) + i * (self.end - self.start) * (n - 1) / (m - 1)
        if transformation == "tf_half_pixel_for_nn":
            return (i + 0.5) / factor
        if transformation == "pytorch_half_pixel" and m == 1:
            return np.full(1, -0.5)
        half = (i + 0.5) / factor - 0.5
        if transformation == "half_pixel_symmetric":
            return half + n / 2 * (1 - m / (n * factor))
        if transformation in ("half_pixel", "pytorch_half_pixel"):
            return half
        raise OnnxError(f"Resize: unknown coordinate_transformation_mode {transformation!r}")

    def nearest(self, places: np.ndarray, rounding: str) -> np.ndarray:
        """Return the index of the pixel nearest to each place."""
        return np.clip(_ROUNDINGS[rounding](places), 0, self.size - 1).astype(np.int64)


def _by_interpolate(
    x: Value, which: Any, axes: list[_Axis], transformation: str, nearest_mode: str
) -> Value | None:
    """Return an image's nearest pixels by `interpolate`, if it takes the same; else None."""
    if not is_differentiable(x) or x.ndim not in (3, 4, 5) or not x.numel():
        return None
    if transformation == "tf_crop_and_resize":
        return None
    sizes = list(x.shape)
    for axis, plan in zip(which, axes, strict=True):
        index = plan.nearest(plan.coordinates(transformation), nearest_mode)
        if axis < 2 and plan.size != plan.wanted:
            return None
        if not np.array_equal(index, np.arange(plan.wanted) * plan.size // max(plan.wanted, 1)):
            return None
        sizes[axis] = plan.wanted
    return F.interpolate(x, sizes[2:], mode="nearest") if sizes != list(x.shape) else x


_ROUNDINGS: dict[str, Callable[..., np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def _resized(
    x: Value,
    which: Any,
    axes: list[_Axis],
    mode: str,
    transformation: str,
    nearest_mode: str,
    options: dict[str, Any],
) -> Value:
    outside: list[tuple[int, np.ndarray]] = []
    if mode == "nearest":
        picked = _by_interpolate(x, which, axes, transformation, nearest_mode)
        if picked is not None:
            return picked
    for axis, plan in zip(which, axes, strict=True):
        if plan.is_unchanged(transformation):
            continue
        places = plan.coordinates(transformation)
        if transformation == "tf_crop_and_resize":
            outside.append((axis, (places < 0) | (places > plan.size - 1)))
        if mode == "nearest":
            index = convcore.from_numpy(plan.nearest(places, nearest_mode))
            mark_static(index)
            x = x.index_select(axis, index)
        else:
            x = _along(x, axis, _weights(plan, places, mode, options))
    for axis, missing in outside:
        shape = [1] * x.ndim
        shape[axis] = -1
        fill = x.new_full((), options["outside"])
        x = convcore.where(convcore.from_numpy(missing).reshape(shape), fill, x)
    return x


def _along(x: Value, axis: int, weights: np.ndarray) -> Value:
    """Return the product of an axis with a matrix (wanted, size)."""
    source = x if is_differentiable(x) else x.to(convcore.float32)
    matrix = convcore.from_numpy(weights).to(source.dtype)
    y = convcore.matmul(source.movedim(axis, -1), matrix.t()).movedim(-1, axis)
    return y if source is x else y.round().to(x.dtype)


def _weights(axis: _Axis, places: np.ndarray, mode: str, options: dict[str, Any]) -> np.ndarray:
    """Return how much of each pixel is in each wanted one: a matrix (wanted, size)."""
    shrink = min(axis.factor, 1.0) if options.get("antialias") else 1.0
    reach = (1 if mode == "linear" else 2) / shrink
    first = np.floor(places - reach).astype(int) + 1
    taps = first[:, None] + np.arange(int(np.ceil(2 * reach)) + 1)
    distance = np.abs(taps - places[:, None]) * shrink
    weights = _triangle(distance) if mode == "linear" else _cubic(distance, options["cubic"])
    inside = (taps >= 0) & (taps < axis.size)
    if options.get("exclude_outside"):
        weights = weights * inside
    if options.get("exclude_outside") or options.get("antialias"):
        weights = weights / weights.sum(1, keepdims=True)
    matrix = np.zeros((axis.wanted, axis.size))
    rows = np.broadcast_to(np.arange(axis.wanted)[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, axis.size - 1)), weights)
    return matrix


def _triangle(distance: np.ndarray) -> np.ndarray:
    return np.maximum(0, 1 - distance)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Return Keys' cubic convolution kernel (IEEE Trans. ASSP 29, 1981) at distances."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


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
