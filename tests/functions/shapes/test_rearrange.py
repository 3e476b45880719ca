"""Flips, rolls, turns and repetitions: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error
from shapes import agree_of_other_layouts, agree_of_shapes

SAME: dict[str, Callable] = {
    "flip": lambda lib, x: x.flip(0, -1),
    "flip-list": lambda lib, x: lib.flip(x, dims=[1]),
    "fliplr": lambda lib, x: lib.fliplr(x),
    "flipud": lambda lib, x: lib.flipud(x),
    "roll": lambda lib, x: x.roll(1, 0),
    "roll-flat": lambda lib, x: x.roll(5),
    "roll-several": lambda lib, x: lib.roll(x, (1, -2), (0, 2)),
    "rot90": lambda lib, x: lib.rot90(x, 1, (1, 2)),
    "rot90-twice": lambda lib, x: x.rot90(2, (0, 2)),
    "repeat": lambda lib, x: x.repeat(2, 1, 3),
    "repeat-new-axes": lambda lib, x: x.repeat(2, 1, 2, 1),
    "repeat-none": lambda lib, x: x.repeat(1, 0, 1),
    "tile": lambda lib, x: x.tile(2),
    "tile-function": lambda lib, x: lib.tile(x, (2, 1, 1, 1)),
}


ERRORS: dict[str, Callable] = {
    "repeat-few": lambda lib, x: x.repeat(2, 2),
    "repeat-negative": lambda lib, x: x.repeat(1, -1, 1),
    "flip-twice": lambda lib, x: x.flip(0, 0),
    "roll-dims": lambda lib, x: x.roll((1, 2), 0),
    "rot90-dims": lambda lib, x: x.rot90(1, (0, 0)),
}


OTHER_STRIDES = {"rot90", "rot90-twice", "repeat-none"}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_rearranged_like_torch(torch, rng, seed, name, dtype):
    strides, nodes = name not in OTHER_STRIDES, 0 if name == "tile-function" else 3
    agree_of_shapes(torch, rng, seed, SAME[name], dtype, strides, nodes)


@pytest.mark.parametrize("name", SAME)
def test_rearranged_of_other_layouts_like_torch(torch, rng, seed, name):
    agree_of_other_layouts(torch, rng, seed, SAME[name])


@pytest.mark.parametrize("name", ERRORS)
def test_rearranged_errors_like_torch(torch, name):
    same_error(torch, ERRORS[name], np.zeros((2, 3, 4)))


def test_reversed_gives_a_tensor(torch):
    for shape in ((3, 2), (4,), ()):
        x = np.arange(np.prod(shape), dtype="f").reshape(shape)
        agree(torch, lambda lib, x: reversed(x), x)
