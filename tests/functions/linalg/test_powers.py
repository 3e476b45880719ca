"""Powers, exponentials, chains and products of vectors: beside PyTorch's and NumPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore import linalg
from convcore.autograd import gradcheck, gradgradcheck


def test_matrix_exp_of_a_rotation_and_its_gradients(rng):
    turn = convcore.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=convcore.float64) * 0.3
    expected = [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]
    np.testing.assert_allclose(linalg.matrix_exp(turn).numpy(), expected)
    a = convcore.from_numpy(rng.normal(size=(2, 3, 3))).requires_grad_()
    assert gradcheck(linalg.matrix_exp, (a,))
    assert gradgradcheck(linalg.matrix_exp, (a,))


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 7])
def test_matrix_power_is_numpys(torch, rng, n):
    a = rng.normal(size=(2, 3, 3))
    found = linalg.matrix_power(convcore.tensor(a), n).numpy()
    np.testing.assert_allclose(found, np.linalg.matrix_power(a, n), rtol=1e-9)
    agree(torch, lambda m, a: m.matrix_power(a if n else a.detach(), n), a, rtol=1e-7)


def test_chains_are_multiplied_in_the_cheapest_order(rng):
    sizes = (10, 100, 5, 50)  # ((a b) c): 7,500 multiplications, (a (b c)): 75,000
    a, b, c = (rng.normal(size=pair) for pair in itertools.pairwise(sizes))
    tensors = [convcore.tensor(one, requires_grad=True) for one in (a, b, c)]
    out = linalg.multi_dot(tensors)
    np.testing.assert_allclose(out.detach(), a @ b @ c)
    last = out.grad_fn.next_functions[0][0]  # what is returned is a view of it, as in PyTorch
    left = last.next_functions[0][0]
    assert [type(node).__name__ for node, _ in left.next_functions] == ["AccumulateGrad"] * 2


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_agree_with_pytorch(torch, rng):
    a, b = rng.normal(size=(2, 3, 3))
    agree(torch, lambda m, a: m.matrix_exp(a), a, rtol=1e-7)
    agree(torch, lambda m, a, b: m.linalg.multi_dot([a[0], b, a, b[:, 0]]), a, b)
    agree(torch, lambda m, a, b: m.chain_matmul(a, b, a), a, b)
    agree(torch, lambda m, a, b: m.linalg.cross(a, b), a, b)
    agree(torch, lambda m, a, b: m.linalg.cross(a, b[:1], dim=-1), a, b)
    agree(torch, lambda m, a, b: m.linalg.vecdot(a, b, dim=0), a, b)
    agree(torch, lambda m, a: m.linalg.vander(a, N=4), a)
    agree(torch, lambda m, a: m.linalg.vander(a), np.arange(3))
    agree(torch, lambda m, a: m.linalg.diagonal(a, offset=1), a)


def test_errors_are_pytorchs(torch):
    a = np.ones((2, 2))
    same_error(torch, lambda m, a: m.linalg.multi_dot([a]), a)
    same_error(torch, lambda m, a: m.linalg.multi_dot([a, a[0], a]), a)
    same_error(torch, lambda m, a: m.linalg.cross(a, a), a)
    same_error(torch, lambda m, a: m.linalg.cross(a, a[0]), a)
    same_error(torch, lambda m, a: m.linalg.vander(a, N=-1), a)
    same_error(torch, lambda m, a: m.linalg.matrix_power(a[:1], 2), a)
    same_error(torch, lambda m, a: m.linalg.matrix_exp(a[0]), a)
