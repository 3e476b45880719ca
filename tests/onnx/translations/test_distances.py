"""Norms, distances and losses in exported models."""

from __future__ import annotations

import pytest

import convcore
from convcore.nn import functional as F

CASES = {
    "norm": lambda x: x.norm(dim=1),
    "norm_1": lambda x: x.norm(1, 2),
    "norm_of_all": lambda x: x[:, :1].norm(),
    "norm_3": lambda x: x.norm(3, (2, 3)),
    "extreme_norms": lambda x: x.norm(float("inf"), 1) + x.norm(float("-inf"), 1) + x.norm(0, 1),
    "linalg_norm": lambda x: convcore.linalg.norm(x, dim=1),
    "vector_norm": lambda x: convcore.linalg.vector_norm(x, dim=1, keepdim=True),
    "matrix_norm": lambda x: convcore.linalg.matrix_norm(x),
    "normalize": lambda x: F.normalize(x),
    "normalize_1": lambda x: F.normalize(x, p=1, dim=2),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.roll(1, 1)),
    "pairwise_distance": lambda x: F.pairwise_distance(x, x * 2),
    "cdist": lambda x: convcore.cdist(x, x[:, :, :2]),
    "dist": lambda x: convcore.dist(x, x * 2),
    "losses": lambda x: (
        F.mse_loss(x, x * 2)
        + F.l1_loss(x, x * 2)
        + F.binary_cross_entropy_with_logits(x, x.sigmoid())
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
