"""searchsorted, bucketize, histograms and runs beside PyTorch's and NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore

BOUNDS = np.array([1.0, 3.0, 3.0, 7.0])
VALUES = np.array([[0.0, 1, 3], [4, 7, 9]])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("small", [False, True])
def test_places_between_boundaries_agree_with_pytorch(torch, rng, right, small):
    options = {"right": right, "out_int32": small}
    agree(torch, lambda m, b, v: m.searchsorted(b, v, **options), BOUNDS, VALUES)
    agree(torch, lambda m, b: m.searchsorted(b, 3, **options), BOUNDS)
    agree(torch, lambda m, b, v: m.bucketize(v, b, **options), BOUNDS, VALUES)
    agree(torch, lambda m, b: m.bucketize(3.0, b, **options), BOUNDS)
    rows = np.sort(rng.normal(size=(2, 5)), -1)
    agree(torch, lambda m, b, v: m.searchsorted(b, v, **options), rows, rng.normal(size=(2, 3)))
    mixed = BOUNDS[::-1].copy()
    sorter = np.argsort(mixed)
    agree(torch, lambda m, b, v, s: m.searchsorted(b, v, sorter=s), mixed, VALUES, sorter)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("values", [(), (5,), (3, 9), "rows"])
def test_bounds_in_any_order_and_nan_are_searched_as_by_pytorch(torch, rng, right, dtype, values):
    for size in (0, 1, 2, 7, 12):
        by_row = values == "rows"
        bounds = rng.integers(-3, 4, (3, size) if by_row else size).astype(dtype)
        sought = rng.integers(-4, 5, (3, 6) if by_row else values).astype(dtype)
        if dtype != "int64":
            bounds[rng.random(bounds.shape) < 0.3] = np.nan
            sought = np.where(rng.random(sought.shape) < 0.2, np.array(np.nan, dtype), sought)
        sorter = np.argsort(bounds, -1)  # NaN last
        agree(torch, lambda m, b, v: m.searchsorted(b, v, right=right), bounds, sought)
        agree(
            torch,
            lambda m, b, v, s: m.searchsorted(b, v, right=right, sorter=s),
            bounds,
            sought,
            sorter,
        )
        if not by_row:
            agree(torch, lambda m, b, v: m.bucketize(v, b, right=right), bounds, sought)


def test_long_rows_agree_with_pytorch(torch, rng):
    bounds = rng.normal(size=(2, 3, 50))
    bounds[0].sort(-1)
    bounds[1, 0, 20] = np.nan
    agree(torch, lambda m, b, v: m.searchsorted(b, v), bounds, rng.normal(size=(2, 3, 1100)))
    agree(torch, lambda m, b, v: m.searchsorted(b, v), bounds[:0], np.ones((0, 3, 1100)))


def test_values_are_compared_in_the_common_dtype(torch):
    bounds = np.array([0.1, 0.2], "float32")
    agree(torch, lambda m, b: m.searchsorted(b, 0.1, right=True), bounds)
    agree(torch, lambda m, b, v: m.bucketize(v, b, right=True), bounds, np.array(0.1))


def test_errors_are_pytorchs(torch):
    same_error(torch, lambda m, b, v: m.searchsorted(b, v), VALUES, np.ones((3, 2)))
    same_error(torch, lambda m, b, v: m.searchsorted(b, v, side="up"), BOUNDS, VALUES)
    for sorter in ([0, 5, 1, 2], [0, -1, 1, 2], [0], [0.0, 1, 2, 3]):
        same_error(torch, lambda m, b, s=sorter: m.searchsorted(b, b, sorter=m.tensor(s)), BOUNDS)
    same_error(torch, lambda m, b: m.searchsorted(b, 1.0), VALUES)
    same_error(torch, lambda m, b: m.searchsorted(b[0], b[0]), BOUNDS)
    same_error(torch, lambda m, b: m.searchsorted(b > 0, b > 0), BOUNDS)
    same_error(torch, lambda m, b: m.bucketize(1j, b), BOUNDS)
    same_error(torch, lambda m, b: m.bucketize(b, b), VALUES)
    same_error(torch, lambda m, x: m.histc(x, bins=0), VALUES)
    same_error(torch, lambda m, x: m.histc(x, 3, 2, 1), VALUES)
    same_error(torch, lambda m, x: m.histc(x), np.array([1.0, np.inf]))


def test_histograms_agree_with_pytorch(torch, rng):
    x = rng.normal(size=(4, 9))
    agree(torch, lambda m, x: m.histc(x.detach(), 5), x)
    agree(torch, lambda m, x: x.detach().histc(4, -1, 2), x.astype("float32"))
    agree(torch, lambda m, x: m.histc(x.detach(), 3), np.ones(4))


def test_runs_agree_with_pytorch(torch):
    x = np.array([[1, 1, 2], [1, 1, 2], [3, 3, 3]])
    for dim in (None, 0, 1):
        options = {"return_inverse": True, "return_counts": True, "dim": dim}
        agree(torch, lambda m, x, o=options: m.unique_consecutive(x, **o), x)
    agree(torch, lambda m, x: x.unique_consecutive(), np.array([2, 2, 1, 2]))
    agree(torch, lambda m, x: x.unique_consecutive(return_counts=True), np.ones(0, int))


def test_values_are_numpys(rng):
    x = rng.normal(size=50)
    assert convcore.histc(convcore.from_numpy(x), 6).tolist() == np.histogram(x, 6)[0].tolist()
    bounds = convcore.tensor([1.0, 2.0])
    assert convcore.bucketize(convcore.tensor([0.5, 1.0, 5.0]), bounds).tolist() == [0, 0, 2]
    assert convcore.tensor([1, 1, 2, 1]).unique_consecutive().tolist() == [1, 2, 1]
