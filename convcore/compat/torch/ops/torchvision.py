"""The operators of torchvision that nets for detection call: nms and roi_align."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore import Tensor, from_numpy
from convcore.compat.torch import _check
from convcore.functions.windows import regions


def _operator(function: Callable) -> Any:
    """Return a function with the name of its only overload, by which registrations refer to it."""
    function.default = function  # type: ignore[attr-defined]
    return function


@_operator
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the indices of the best boxes, without those that overlap a better one."""
    _check(dets.dim() == 2, lambda: f"boxes should be a 2d tensor, got {dets.dim()}D")
    _check(
        dets.size(1) == 4,
        lambda: f"boxes should have 4 elements in dimension 1, got {dets.size(1)}",
    )
    _check(scores.dim() == 1, lambda: f"scores should be a 1d tensor, got {scores.dim()}D")
    _check(
        len(dets) == len(scores),
        lambda: (
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{len(dets)} and {len(scores)}"
        ),
    )
    boxes, values = (tensor.detach().numpy() for tensor in (dets, scores))
    return from_numpy(np.array(regions.best_boxes(boxes, values, iou_threshold), np.int64))


@_operator
def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Return for each region (image, x1, y1, x2, y2) the means of samples in a grid of bins."""
    _check(rois.dim() == 2 and rois.size(1) == 5, lambda: "rois must have shape as Tensor[K, 5]")
    _check(
        input.dtype == rois.dtype,
        lambda: (
            "Expected tensor for input to have the same type as tensor for rois; but type "
            f"{input.dtype} does not equal {rois.dtype}"
        ),
    )
    array = rois.detach().float().numpy() if rois.dtype.itemsize < 4 else rois.detach().numpy()
    boxes = array[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
    return regions.roi_align(
        input,
        boxes,
        array[:, 0].astype(np.int64),
        (pooled_height, pooled_width),
        sampling_ratio,
        least=0.0 if aligned else 1.0,
    )


def _cuda_version() -> int:
    """Return -1: there is none."""
    return -1
