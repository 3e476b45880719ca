"""NumPy sorts what `sortable` returns, NaNs to the end."""

from __future__ import annotations

import numpy as np
import pytest

from convcore.functions._support.sorting import sortable


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_nan_goes_to_the_end(name):
    source = np if hasattr(np, name) else pytest.importorskip("ml_dtypes")
    array = np.array([3, np.nan, 1, np.nan, 2, -np.inf], getattr(source, name))
    ordered = np.sort(sortable(array)).astype(np.float32)
    np.testing.assert_array_equal(ordered, [-np.inf, 1, 2, 3, np.nan, np.nan])


def test_no_other_array_is_copied():
    for dtype in (np.float32, np.int64, np.bool_):
        array = np.zeros(3, dtype)
        assert sortable(array) is array
