"""The modules of distances and angles, beside PyTorch's."""

from __future__ import annotations

import pytest
from against_torch import agree

from convcore import nn


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
