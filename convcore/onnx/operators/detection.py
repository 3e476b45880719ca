"""Boxes: non-maximum suppression, pooling of regions."""

from __future__ import annotations

import numpy as np

import convcore
from convcore.functions.windows import regions
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, array_of, value_of


@operator("NonMaxSuppression")
def non_max_suppression(
    boxes: Value,
    scores: Value,
    most: Value = None,
    overlap: Value = None,
    least: Value = None,
    *,
    center_point_box: int = 0,
) -> Value:
    """Return (image, class, box) of the best boxes, without those that overlap a better one."""
    limit = 0 if most is None else int(array_of(most).reshape(-1)[0])
    iou = 0.0 if overlap is None else float(array_of(overlap).reshape(-1)[0])
    floor = -np.inf if least is None else float(array_of(least).reshape(-1)[0])
    corners, points = _corners(array_of(boxes), center_point_box), array_of(scores)
    found = [
        (image, label, box)
        for image in range(points.shape[0])
        for label in range(points.shape[1])
        for box in _best(corners[image], points[image, label], limit, iou, floor)
    ]
    return value_of(np.array(found, np.int64).reshape(-1, 3))


def _corners(boxes: np.ndarray, center: int) -> np.ndarray:
    """Return boxes as (least y, least x, largest y, largest x)."""
    if center:
        x, y, w, h = np.moveaxis(boxes, -1, 0)
        return np.stack((y - h / 2, x - w / 2, y + h / 2, x + w / 2), -1)
    a, b = boxes[..., :2], boxes[..., 2:]
    return np.concatenate((np.minimum(a, b), np.maximum(a, b)), -1)


def _best(boxes: np.ndarray, scores: np.ndarray, limit: int, iou: float, floor: float) -> list[int]:
    above = np.nonzero(scores > floor)[0]
    return above[regions.best_boxes(boxes[above], scores[above], iou, limit)].tolist()


@operator("RoiAlign")
def roi_align(
    x: Value,
    rois: Value,
    images: Value,
    *,
    version: int,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Value:
    """Return for each region the mean or maximum of bilinear samples in a grid of bins.

    The method is that of Mask R-CNN (arXiv 1703.06870, section 3).
    """
    half = 0.5 if version >= 16 and coordinate_transformation_mode == "half_pixel" else 0.0
    boxes, least = array_of(rois).astype(np.float64) * spatial_scale - half, 0.0 if half else 1.0
    size, of = (output_height, output_width), array_of(images)
    if mode == "avg":
        return regions.roi_align(x, boxes, of, size, sampling_ratio, least=least)
    found = [
        _largest_samples(x[int(image)], box, size, sampling_ratio, least)
        for box, image in zip(boxes, of, strict=True)
    ]
    return convcore.stack(found) if found else x.new_zeros(0, x.shape[1], *size)


def _largest_samples(
    image: Value, box: np.ndarray, size: tuple[int, int], samples: int, least: float
) -> Value:
    """Return the largest of the weighted pixels, four to a sample, in each bin of a box."""
    (left, top), (width, height) = box[:2], np.maximum(box[2:] - box[:2], least)
    bins = []
    for start, length, count in ((top, height, size[0]), (left, width, size[1])):
        taken = samples or max(1, int(np.ceil(length / count)))
        bins.append(start + (np.arange(count * taken) + 0.5) * length / (count * taken))
    down, across = (_ends(p, n) for p, n in zip(bins, image.shape[1:], strict=True))
    weights = value_of((down[1][:, None] * across[1]).astype(array_of(image).dtype))
    weighted = image[:, value_of(down[0])][:, :, value_of(across[0])] * weights
    parts = (2, size[0], len(bins[0]) // size[0], 2, size[1], len(bins[1]) // size[1])
    return weighted.reshape(image.shape[0], *parts).amax((1, 3, 4, 6))


def _ends(places: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels before all places and then those behind, and the weights of each."""
    inside = (places >= -1) & (places <= size)
    at = np.clip(places, 0, size - 1)
    low = at.astype(np.int64)
    pixels = np.concatenate((low, np.minimum(low + 1, size - 1)))
    return pixels, np.concatenate(((1 - at + low) * inside, (at - low) * inside))


@operator("MaxRoiPool")
def max_roi_pool(
    x: Value, rois: Value, *, pooled_shape: list[int], spatial_scale: float = 1.0
) -> Value:
    """Return for each region (image, x1, y1, x2, y2) the maximum of each of its bins."""
    pooled = []
    for image, *corners in array_of(rois):
        left, top, right, bottom = (int(np.floor(c * spatial_scale + 0.5)) for c in corners)
        parts = [
            _bins(first, max(last - first + 1, 1), count, size)
            for first, last, count, size in (
                (top, bottom, pooled_shape[0], x.shape[2]),
                (left, right, pooled_shape[1], x.shape[3]),
            )
        ]
        rows = [
            convcore.stack([_largest(x[int(image)], row, column) for column in parts[1]], -1)
            for row in parts[0]
        ]
        pooled.append(convcore.stack(rows, -2))
    return convcore.stack(pooled) if pooled else x.new_zeros(0, x.shape[1], *pooled_shape)


def _bins(first: int, length: int, count: int, size: int) -> list[slice]:
    step = length / count
    edges = [(int(np.floor(k * step)), int(np.ceil((k + 1) * step))) for k in range(count)]
    return [slice(min(max(a + first, 0), size), min(max(b + first, 0), size)) for a, b in edges]


def _largest(image: Value, rows: slice, columns: slice) -> Value:
    part = image[:, rows, columns]
    return part.amax((1, 2)) if part.numel() else image.new_zeros(image.shape[0])
