"""Elements in another order or shape, or repeated, in exported models."""

from __future__ import annotations

import pytest

import convcore
from convcore.nn import functional as F

CASES = {
    "flip": lambda x: x.flip(3),
    "flip_two": lambda x: x.flip((1, 2)),
    "flips": lambda x: x.fliplr() + x.flatten(1).flipud().view_as(x),
    "rot90": lambda x: x.rot90(1, (2, 3)),
    "rot270": lambda x: x.rot90(3, (2, 3)),
    "rot180": lambda x: x.rot90(2, (2, 3)),
    "repeat": lambda x: x.repeat(1, 4, 1, 1),
    "repeat_new_axis": lambda x: x.repeat(2, 1, 1, 1, 1),
    "tile": lambda x: x.tile(2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "repeat_interleave_batch": lambda x: x.repeat_interleave(2, 0),
    "repeat_by_numbers": lambda x: x.repeat_interleave(convcore.tensor([1, 0, 2, 1]), 1),
    "expand": lambda x: x[:, :1].expand(-1, 4, -1, -1),
    "expand_as": lambda x: x[:1, :1].expand_as(x),
    "roll": lambda x: x.roll(1, 1) + x.roll((1, -2), (2, 3)),
    "roll_batch": lambda x: x.roll(-1, 0),
    "movedim": lambda x: x.movedim(1, -1),
    "swapaxes": lambda x: x.swapaxes(1, 2),
    "mT": lambda x: x.mT * 2,
    "T": lambda x: x.flatten(1).T,
    "unbind": lambda x: x.unbind(1),
    "iteration": lambda x: [each * 2 for each in x.transpose(0, 1)],
    "select": lambda x: x.select(1, -1),
    "narrow": lambda x: x.narrow(2, 1, 3),
    "split": lambda x: x.split_with_sizes([1, 3], 1),
    "tril": lambda x: x.tril() + x.triu(1),
    "diagonal": lambda x: x.diagonal(1, 2, 3),
    "unfold": lambda x: F.unfold(x, (2, 3), padding=1, stride=(1, 2)),
    "unfold_dilated": lambda x: F.unfold(x, 2, dilation=2),
    "windows": lambda x: x.unfold(3, 3, 2),
    "stacks": lambda x: (
        convcore.hstack([x, x]).sum(1) + convcore.dstack([x, x]).sum((1, 2))[:, None, None]
    ),
    "vstack": lambda x: convcore.vstack([x, x]),
    "flatten_end": lambda x: x.flatten(0, 1),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[..., :4, :], 2),
    "meshgrid": lambda x: convcore.meshgrid(x[0, 0, 0], x[0, 0, :, 0], indexing="ij"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
