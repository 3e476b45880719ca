"""Elements by a mask, filled, selected and replaced: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore

MASKS: dict[str, Callable] = {
    "masked-fill": lambda lib, x, v: x.masked_fill(x > 0, -1),
    "masked-fill-broadcast": lambda lib, x, v: x.masked_fill(lib.tensor([[True]] * 3), 2.5),
    "masked-fill-row": lambda lib, x, v: x[:1].masked_fill(v > 0, 2.5),
    "masked-fill-tensor": lambda lib, x, v: lib.masked_fill(x, v > 0, v[0, 0]),
    "masked-fill-in-place": lambda lib, x, v: (x * 1).masked_fill_(v > 0, 0),
    "masked-select": lambda lib, x, v: x.masked_select(v > 0),
    "masked-select-broadcast": lambda lib, x, v: lib.masked_select(x[:1], v > 0),
    "masked-scatter": lambda lib, x, v: x.masked_scatter(x > 0, v),
    "masked-scatter-in-place": lambda lib, x, v: (x * 1).masked_scatter_(v > 0, v),
}


# PyTorch reads the rows of a batch by other nodes here.
OTHER_NODES = {"masked-fill-row", "masked-select-broadcast"}


ERRORS: dict[str, Callable] = {
    "masked-fill-dtype": lambda lib, x: x.masked_fill(lib.zeros(4), 1),
    "masked-fill-vector": lambda lib, x: x.masked_fill(x > 0, lib.zeros(1)),
    "masked-fill-shape": lambda lib, x: x.masked_fill(lib.tensor([True, False]), 1),
    "masked-fill-complex": lambda lib, x: x.masked_fill(x > 0, 1j),
    "masked-select-dtype": lambda lib, x: x.masked_select(x),
    "masked-select-shape": lambda lib, x: x.masked_select(lib.tensor([True, False])),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_like_torch(torch, rng, seed, name):
    x, v = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    agree(torch, MASKS[name], x, v, seed=seed, nodes=0 if name in OTHER_NODES else 2)


@pytest.mark.parametrize("name", ERRORS)
def test_mask_errors_like_torch(torch, name):
    same_error(torch, ERRORS[name], np.linspace(-1, 1, 12).reshape(3, 4))


def test_masked_scatter_broadcasts_to_its_mask(lib):
    x, mask = lib.zeros(2), lib.tensor([[True, False], [True, True]])
    assert x.masked_scatter(mask, lib.tensor([1.0, 2.0, 3.0])).tolist() == [[1.0, 0.0], [2.0, 3.0]]


def test_masked_scatter_in_place_does_not_grow(torch):
    for lib in (convcore, torch):
        with pytest.raises(RuntimeError, match="expand"):
            lib.ones(1).masked_scatter_(lib.ones(2, 2) > 0, lib.ones(4))
