"""One-hot vectors, and the modules of distances and angles, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

from convcore import nn


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 0)])
@pytest.mark.parametrize("classes", [-1, 4, 7])
def test_one_hot_agrees_with_pytorch(torch, rng, shape, classes):
    given = rng.integers(0, 4, shape)
    if given.size == 0 and classes == -1:
        same_error(torch, lambda lib, x: lib.nn.functional.one_hot(x), given)
    else:
        agree(torch, lambda lib, x: lib.nn.functional.one_hot(x, num_classes=classes), given)


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        (np.array([0, 2]), 2),
        (np.array([0, -1]), 2),
        (np.array([0, -1]), -1),
        (np.array([0]), 0),
        (np.array([0]), -2),
        (np.array([0], np.int32), 1),
        (np.array([0.0]), 1),
        (np.array([], np.int64), 0),
        ([1, 2], 3),
    ],
)
def test_one_hot_refuses_with_the_words_of_pytorch(torch, given, classes):
    same_error(torch, lambda lib, x: lib.nn.functional.one_hot(x, classes), given)


@pytest.mark.parametrize("arguments", [{}, {"dim": -1}, {"dim": 2, "eps": 1e-3}])
def test_cosine_similarity_agrees_with_pytorch(torch, rng, seed, arguments):
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(1, 3, 4))
    agree(torch, lambda lib, a, b: lib.nn.CosineSimilarity(**arguments)(a, b), a, b, seed=seed)


@pytest.mark.parametrize("arguments", [{}, {"p": 3}, {"p": 1.0, "keepdim": True}, {"eps": 0.5}])
def test_pairwise_distance_agrees_with_pytorch(torch, rng, seed, arguments):
    a, b = rng.normal(size=(5, 4)), rng.normal(size=(1, 4))
    agree(torch, lambda lib, a, b: lib.nn.PairwiseDistance(**arguments)(a, b), a, b, seed=seed)


def test_modules_are_shown_as_in_pytorch(torch):
    for name in ("CosineSimilarity", "PairwiseDistance"):
        assert repr(getattr(nn, name)()) == repr(getattr(torch.nn, name)())
