"""Parts of a tensor by ranges, windows and diagonals: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error
from shapes import agree_of_other_layouts, agree_of_shapes

SAME: dict[str, Callable] = {
    "unfold": lambda lib, x: x.unfold(2, 3, 1),
    "unfold-twice": lambda lib, x: x.unfold(1, 2, 1).unfold(-2, 3, 1),
    "unfold-with-gaps": lambda lib, x: x.unfold(-1, 1, 3),
    "unfold-to-nothing": lambda lib, x: x.unfold(0, 0, 1),
    "narrow": lambda lib, x: x.narrow(2, 1, 2),
    "narrow-from-end": lambda lib, x: x.narrow(-1, -2, 2),
    "select": lambda lib, x: x.select(1, 2),
    "select-from-end": lambda lib, x: lib.select(x, 1, -1),
    "diagonal": lambda lib, x: x.diagonal(),
    "diagonal-offset": lambda lib, x: x.diagonal(1, 1, 2),
    "diagonal-below": lambda lib, x: lib.diagonal(x, -1, 2, 0),
    "diag-embed": lambda lib, x: x[0].diag_embed(),
    "diag-embed-offset": lambda lib, x: lib.diag_embed(x, -1, 0, 2),
    "diag-vector": lambda lib, x: x[0, 0].diag(1),
    "tril": lambda lib, x: x.tril(),
    "tril-offset": lambda lib, x: lib.tril(x, -1),
    "triu": lambda lib, x: x.triu(1),
}


ERRORS: dict[str, Callable] = {
    "unfold-size": lambda lib, x: x.unfold(1, 4, 1),
    "unfold-negative": lambda lib, x: x.unfold(1, -1, 1),
    "unfold-step": lambda lib, x: x.unfold(1, 2, 0),
    "unfold-dim": lambda lib, x: x.unfold(3, 2, 1),
    "narrow-length": lambda lib, x: x.narrow(0, 1, 5),
    "narrow-negative": lambda lib, x: x.narrow(0, 1, -1),
    "narrow-start": lambda lib, x: x.narrow(0, 3, 0),
    "narrow-float": lambda lib, x: x.narrow(0, lib.tensor(1.0), 1),
    "narrow-vector": lambda lib, x: x.narrow(0, lib.tensor([1]), 1),
    "select-range": lambda lib, x: x.select(0, 2),
    "select-0d": lambda lib, x: x[0, 0, 0].select(0, 0),
    "diagonal-dims": lambda lib, x: x.diagonal(0, 1, 1),
    "diag-3d": lambda lib, x: x.diag(),
    "tril-1d": lambda lib, x: x[0, 0].tril(),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_slice_like_torch(torch, rng, seed, name, dtype):
    strides, nodes = True, 0 if name == "diag-vector" else 3
    agree_of_shapes(torch, rng, seed, SAME[name], dtype, strides, nodes)


@pytest.mark.parametrize("name", SAME)
def test_slice_of_other_layouts_like_torch(torch, rng, seed, name):
    agree_of_other_layouts(torch, rng, seed, SAME[name])


@pytest.mark.parametrize("name", ERRORS)
def test_slice_errors_like_torch(torch, name):
    same_error(torch, ERRORS[name], np.zeros((2, 3, 4)))


def test_diag_of_a_matrix_like_torch(torch, rng, seed):
    for offset in (-3, -1, 0, 2):
        agree(torch, lambda lib, x, k=offset: x.diag(k), rng.normal(size=(3, 4)), seed=seed)


def test_tril_and_triu_in_place_like_torch(torch, rng, seed):
    x = rng.normal(size=(3, 4))
    agree(torch, lambda lib, x: (x * 2).tril_(1), x, seed=seed)
    agree(torch, lambda lib, x: (x * 2).triu_(), x, seed=seed)
