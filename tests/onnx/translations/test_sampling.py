"""Pictures read at the points of a grid in exported models."""

from __future__ import annotations

import pytest

from convcore.nn import functional as F

CASES = {
    "grid_sample": lambda x: F.grid_sample(
        x, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False
    ),
    "nearest": lambda x: F.grid_sample(
        x, x[:, :2].permute(0, 2, 3, 1).tanh() * 0.9, "nearest", "border", True
    ),
    "affine_grid": lambda x: F.affine_grid(x[:, :2, :3, 0], (3, 1, 4, 5), align_corners=False),
    "corners": lambda x: F.affine_grid(x[:, :2, :3, 0], (3, 1, 4, 5), align_corners=True),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
