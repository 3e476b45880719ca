"""Pairs of tensors have PyTorch's names and order."""

from __future__ import annotations

import convcore
from convcore.functions._support.results import Extremes, Picked


def test_picked_elements_are_values_and_their_indices():
    x = convcore.tensor([3.0, 1.0, 2.0])
    for found, expected in (
        (x.sort(), ([1.0, 2.0, 3.0], [1, 2, 0])),
        (x.topk(2), ([3.0, 2.0], [0, 2])),
        (x.max(0), (3.0, 0)),
    ):
        assert isinstance(found, Picked)
        values, indices = found
        assert found.values is values and found.indices is indices
        assert (values.tolist(), indices.tolist()) == expected


def test_extremes_are_the_smallest_and_the_largest():
    found = convcore.tensor([3.0, 1.0, 2.0]).aminmax()
    assert isinstance(found, Extremes)
    assert (found.min.item(), found.max.item()) == tuple(t.item() for t in found) == (1.0, 3.0)
