"""Which gradients are reduced at once, and in which order."""

import numpy as np
import pytest

from convcore.distributed import buckets
from convcore.distributed.buckets import Layout, buckets_of

KIB = 1024


def layouts(sizes, dtype=np.float32):
    return [Layout(np.empty(size // np.dtype(dtype).itemsize, dtype)) for size in sizes]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([KIB] * 5, [[0, 1], [2, 3, 4]]),  # the first is full at 2 KiB, others at 3
        ([KIB, buckets.LARGE, KIB, KIB], [[1], [0, 2], [3]]),
        ([buckets.LARGE, KIB, 2 * buckets.LARGE], [[0], [2], [1]]),
    ],
)
def test_buckets_are_in_the_order_in_which_they_are_full(sizes, expected):
    found = buckets_of([*range(len(sizes))], layouts(sizes), 2 * KIB, 3 * KIB)
    assert [bucket.members for bucket in found] == expected


def test_a_bucket_has_one_dtype():
    mixed = [*layouts([KIB, KIB]), *layouts([KIB], np.float64), *layouts([KIB])]
    found = buckets_of([0, 1, 2, 3], mixed, 9 * KIB, 9 * KIB)
    assert [bucket.members for bucket in found] == [[0, 1], [2], [3]]
