"""The best of boxes and RoIAlign beside their definitions, written as loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

import convcore
from convcore.autograd import gradcheck, gradgradcheck
from convcore.functions.windows.regions import best_boxes, roi_align


def overlap(a, b) -> float:
    """Return the area of two boxes' intersection over that of their union."""
    width, height = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    common = max(width, 0) * max(height, 0)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return common / (sum(areas) - common)


@pytest.mark.parametrize("limit", [0.1, 0.4, 0.7, 1.0])
def test_a_box_is_kept_that_overlaps_no_better_one_by_more(rng, limit):
    corner = rng.uniform(0, 20, (60, 2))
    boxes = np.concatenate((corner, corner + rng.uniform(1, 20, (60, 2))), 1)
    scores = rng.uniform(size=60).round(1)  # of equal ones the first is better
    kept: list[int] = []
    for box in sorted(range(60), key=lambda k: (-scores[k], k)):
        if all(overlap(boxes[box], boxes[other]) <= limit for other in kept):
            kept.append(box)
    assert best_boxes(boxes, scores, limit) == kept
    assert best_boxes(boxes, scores, limit, 3) == kept[:3]
    assert best_boxes(boxes[:0], scores[:0], limit) == []


def test_an_overlap_is_compared_in_double_precision():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 7]], np.float32)
    ratio = float(np.float32(0.7))  # a little less than 0.7
    assert best_boxes(boxes, np.array([1, 0.5], np.float32), 0.7) == [0, 1]
    assert best_boxes(boxes, np.array([1, 0.5], np.float32), ratio - 1e-10) == [0]


def bilinear(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """Return the values of channels at a place: zero more than a pixel beyond the first."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    down, across = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = image[:, top, left] * (1 - x + left) + image[:, top, across] * (x - left)
    lower = image[:, down, left] * (1 - x + left) + image[:, down, across] * (x - left)
    return upper * (1 - y + top) + lower * (y - top)


def means(image, box, size, samples, least):
    """Return the means of a box's bins, sample by sample."""
    left, top = box[:2]
    steps = [max(box[k + 2] - box[k], least) / n for k, n in ((1, size[0]), (0, size[1]))]
    taken = [samples or max(math.ceil(step), 0) for step in steps]
    out = np.zeros((len(image), *size))
    for i, j in np.ndindex(*size):
        for a, b in np.ndindex(*taken):
            y = top + (i + (a + 0.5) / taken[0]) * steps[0]
            x = left + (j + (b + 0.5) / taken[1]) * steps[1]
            out[:, i, j] += bilinear(image, y, x) / (taken[0] * taken[1])
    return out


BOXES = np.array(
    [
        *([0.7, 1.2, 5.1, 6.8], [2.0, 2.0, 2.0, 2.0], [-3.3, -0.9, 9.4, 3.0], [4.0, 1.0, 2.5, 3.0]),
        *([20.0, 20.0, 25.0, 30.0], [-1.0, -1.0, 8.0, 7.0]),
    ]
)
IMAGES = np.array([1, 0, 1, 0, 1, 0])


@pytest.mark.parametrize("samples", [0, 1, 3])
@pytest.mark.parametrize("least", [0.0, 1.0])
def test_bins_are_means_of_samples(rng, samples, least):
    x = rng.normal(size=(2, 3, 7, 8))
    found = roi_align(convcore.from_numpy(x), BOXES, IMAGES, (3, 2), samples, least=least)
    for bins, box, image in zip(found.numpy(), BOXES, IMAGES, strict=True):
        expected = means(x[image], box, (3, 2), samples, least)
        np.testing.assert_allclose(bins, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("samples", [0, 2])
def test_gradients_of_bins_agree_with_differences(rng, samples):
    x = convcore.from_numpy(rng.normal(size=(2, 2, 5, 6))).requires_grad_()

    def pooled(image):
        return roi_align(image, BOXES, IMAGES, (2, 3), samples)

    assert gradcheck(pooled, x)
    assert gradgradcheck(pooled, x)


def test_bins_of_no_box_and_of_no_image(rng):
    x = convcore.from_numpy(rng.normal(size=(2, 3, 7, 8)))
    assert roi_align(x, BOXES[:0], IMAGES[:0], (3, 2), 1).shape == (0, 3, 3, 2)
    for image in (2, -1):
        with pytest.raises(IndexError, match=rf"images must be from 0 to 1, got \[{image}\]"):
            roi_align(x, BOXES[:1], np.array([image]), (3, 2), 1)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_bins_of_half_precision_are_rounded_once(rng, name):
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    dtype = getattr(convcore, name)
    x = convcore.from_numpy(rng.normal(size=(1, 2, 5, 6)).astype(np.float32)).to(dtype)
    found = []
    for image in (x.requires_grad_(), x.detach().float().requires_grad_()):
        bins = roi_align(image, BOXES[:1], IMAGES[1:2], (2, 2), 2)
        bins.sum().backward()
        found.append((bins.to(dtype), image.grad.to(dtype)))
    for narrow, wide in zip(*found, strict=True):
        assert narrow.equal(wide)
