"""Regions of images, as nets for detection use them: the best of boxes, and RoIAlign.

Boxes are rows of two corners, the least coordinates first.

Means of bilinear samples are separable: the samples of a region, and the mean over those of each
bin, are a product with one matrix along the rows of its pixels and with another along the columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.engine.matmul import matmul
from convcore.functions.elementwise.in_float32 import in_float32

__all__: list[str] = []


def best_boxes(
    boxes: np.ndarray, scores: np.ndarray, overlap: float, most: int | None = None
) -> list[int]:
    """Return the boxes, best first, without those that overlap a better one by more than that.

    The overlap is the intersection's area over the union's.  There are at most `most`.
    """
    kept: list[int] = []
    left = np.argsort(-scores, kind="stable")
    while left.size and (most is None or len(kept) < most):
        best, left = left[0], left[1:]
        kept.append(int(best))
        left = left[~(_overlaps(boxes[best], boxes[left]) > np.float64(overlap))]
    return kept


def _overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the intersection over the union of a box with each of others."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), -1)
    areas = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], -1)
    return common / np.maximum(areas - common, np.finfo(common.dtype).tiny)


@in_float32
def roi_align(
    input: Tensor,
    boxes: np.ndarray,
    images: np.ndarray,
    size: tuple[int, int],
    samples: int,
    *,
    least: float = 0.0,
) -> Tensor:
    """Return for each box the means of bilinear samples in a grid of bins.

    Parameters
    ----------
    input : (N, C, H, W), floating
    boxes : (K, 4)
        x1, y1, x2, y2 in pixels, whose centres are whole numbers.
    images : (K,), integers
        The image of each box.
    size : (int, int)
        Bins along the rows and columns of each box.
    samples : int
        In each bin along each axis; 0 for one a pixel.
    least : float
        Height and width of a box are at least this.

    Returns
    -------
    (K, C, *size)

    Raises
    ------
    IndexError
        There is no such image.

    References
    ----------
    K. He, G. Gkioxari, P. Dollar, R. Girshick, "Mask R-CNN", arXiv 1703.06870, section 3.
    """
    count, _, height, width = input.shape
    if not all(0 <= image < count for image in images.tolist()):
        raise IndexError(f"images must be from 0 to {count - 1}, got {images.tolist()}")
    regions = [
        _Region(
            image,
            _bins(top, bottom, size[0], samples, height, least),
            _bins(left, right, size[1], samples, width, least),
        )
        for image, (left, top, right, bottom) in zip(images.tolist(), boxes, strict=True)
    ]
    return _gather(input, _Regions(regions, input.shape, size))


class _Bins(NamedTuple):
    """What the bins along an axis read: pixels, and the weight of each in each, (bins, pixels)."""

    pixels: slice
    weights: np.ndarray


class _Region(NamedTuple):
    image: int
    rows: _Bins
    columns: _Bins


class _Regions(NamedTuple):
    regions: list[_Region]
    shape: tuple[int, ...]  # of the images
    size: tuple[int, int]


def _bins(
    start: np.floating, stop: np.floating, count: int, samples: int, size: int, least: float
) -> _Bins:
    """Return what bins between two coordinates read of an axis of that many pixels."""
    step = max(stop - start, start.dtype.type(least)) / count
    taken = samples if samples > 0 else max(int(np.ceil(step)), 0)
    offsets = (np.arange(taken, dtype=step.dtype) + 0.5) * step / max(taken, 1)
    places = start + np.arange(count, dtype=step.dtype)[:, np.newaxis] * step + offsets
    inside = (places >= -1) & (places <= size)
    at = np.clip(places, 0, size - 1)[inside]
    low = at.astype(np.int64)
    first = int(low.min(initial=size - 1))
    end = min(int(low.max(initial=first)) + 2, size)
    weights = np.zeros((count, end - first), step.dtype)
    rows, rest, share = np.nonzero(inside)[0], at - low, step.dtype.type(1 / max(taken, 1))
    np.add.at(weights, (rows, low - first), share * (1 - rest))
    np.add.at(weights, (rows, np.minimum(low + 1, size - 1) - first), share * rest)
    return _Bins(slice(first, first + weights.shape[1]), weights)


def _gather(input: Tensor, bins: _Regions) -> Tensor:
    """Return the bins of all regions."""
    x = input._array
    out = np.empty((len(bins.regions), x.shape[1], *bins.size), x.dtype)
    for region, (image, rows, columns) in zip(out, bins.regions, strict=True):
        pixels, down, across = _alike(x[image, :, rows.pixels, columns.pixels], rows, columns)
        region[:] = matmul(matmul(down, pixels), across.T)
    result = wrap(out)
    record("RoiAlignBackward0", (input,), result, lambda needs, grad: _scatter(grad, bins))
    return result


def _scatter(grad: Tensor, bins: _Regions) -> Tensor:
    """Return the gradient of `_gather` for the images."""
    g = grad._array
    out = np.zeros(bins.shape, np.promote_types(g.dtype, np.float32))
    for region, (image, rows, columns) in zip(g, bins.regions, strict=True):
        pooled, down, across = _alike(region, rows, columns)
        out[image, :, rows.pixels, columns.pixels] += matmul(matmul(down.T, pooled), across)
    result = wrap(out.astype(g.dtype, copy=False))
    record("RoiAlignBackward0Backward0", (grad,), result, lambda needs, g: _gather(g, bins))
    return result


def _alike(values: np.ndarray, rows: _Bins, columns: _Bins) -> tuple[np.ndarray, ...]:
    """Return values and both weights in one dtype: the values', but no less than float32."""
    dtype = np.promote_types(values.dtype, np.float32)
    return tuple(a.astype(dtype, copy=False) for a in (values, rows.weights, columns.weights))
