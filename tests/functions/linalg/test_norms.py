"""Norms of vectors and matrices beside PyTorch's and NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore import linalg
from convcore.autograd import gradcheck, gradgradcheck

INF = math.inf
ORDERS = ["fro", "nuc", INF, -INF, 1, -1, 2, -2]


@pytest.mark.parametrize("order", ORDERS)
def test_matrix_norms_are_numpys_and_differentiable(rng, order):
    a = rng.normal(size=(3, 4))
    found = linalg.matrix_norm(convcore.tensor(a), order)
    assert found.item() == pytest.approx(np.linalg.norm(a, order))
    leaf = convcore.from_numpy(a).requires_grad_()
    assert gradcheck(lambda a: linalg.norm(a, order), (leaf,))
    assert gradgradcheck(lambda a: linalg.norm(a, order), (leaf,))


@pytest.mark.parametrize("order", ORDERS)
def test_matrix_norms_over_axes_agree_with_pytorch(torch, rng, order):
    a = rng.normal(size=(3, 2, 4))
    for dim in ((-2, -1), (0, 1), (2, 0)):
        for keepdim in (False, True):
            agree(
                torch,
                lambda m, a, dim=dim, keep=keepdim: m.linalg.matrix_norm(a, order, dim, keep),
                a,
                rtol=1e-9,
            )


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3.5, -1, INF, -INF])
def test_vector_norms_agree_with_pytorch(torch, rng, order):
    a = rng.normal(size=(3, 4))
    agree(torch, lambda m, a: m.linalg.norm(a, order, dim=1), a, rtol=1e-9)
    if order is not None:
        agree(torch, lambda m, a: m.linalg.vector_norm(a, order, (0, 1), True), a, rtol=1e-9)


def test_errors_are_pytorchs(torch):
    a, b = np.ones((2, 2)), np.ones((2, 2, 2))
    same_error(torch, lambda m, a: m.linalg.norm(a, 2), b)
    same_error(torch, lambda m, a: m.linalg.norm(a, "nuc", dim=0), a)
    same_error(torch, lambda m, a: m.linalg.matrix_norm(a, "xx"), a)
    same_error(torch, lambda m, a: m.linalg.matrix_norm(a, 3), a)
    same_error(torch, lambda m, a: m.linalg.matrix_norm(a, dim=(0, 0)), a)
    same_error(torch, lambda m, a: m.linalg.matrix_norm(a[0]), a)
    same_error(torch, lambda m, a: m.linalg.vector_norm(a, "a"), a)
    same_error(torch, lambda m, a: m.linalg.vector_norm(m.zeros(0), INF), a)
    same_error(torch, lambda m, a: m.linalg.norm(a), np.ones(2, int))
