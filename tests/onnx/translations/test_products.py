"""Products of vectors, matrices and batches in exported models."""

from __future__ import annotations

import pytest

import convcore
from convcore.nn import functional as F

CASES = {
    "einsum": lambda x: convcore.einsum("nchw,ncvw->nchv", x, x),
    "einsum_of_a_list": lambda x: convcore.einsum("nchw->nhc", [x]),
    "baddbmm": lambda x: convcore.baddbmm(x[:, 0, :, :5], x[:, 1], x[:, 2].mT, beta=2, alpha=0.5),
    "addmm": lambda x: convcore.addmm(convcore.ones(3), x.flatten(1), convcore.ones(120, 3)),
    "mv": lambda x: x.flatten(1).mv(convcore.arange(120.0)),
    "outer": lambda x: convcore.outer(x[:, 0, 0, 0], convcore.arange(3.0)),
    "inner": lambda x: convcore.inner(x, convcore.ones(2, 6)),
    "cross": lambda x: convcore.cross(x[:, :3], x[:, 1:], 1),
    "bilinear": lambda x: F.bilinear(x[..., :2], x, convcore.ones(3, 2, 6), convcore.arange(3.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
