"""Products and arrangements of vectors and matrices beside PyTorch's and NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck


def test_products_agree_with_pytorch(torch, rng):
    a = rng.normal(size=(2, 3))
    agree(torch, lambda m, a, b: m.cross(a, b, dim=1), a, rng.normal(size=(1, 3)))
    agree(torch, lambda m, a, b: m.cross(a, b, dim=1), a, rng.normal(size=(2, 3)))


def test_arrangements_agree_with_pytorch(torch, rng):
    a, v = rng.normal(size=(2, 3)), rng.normal(size=4)
    agree(torch, lambda m, a, v: m.block_diag(a, v, m.tensor(2.0).double()), a, v)
    same_error(torch, lambda m, a: m.block_diag(a[None]), a)
    same_error(torch, lambda m, a: m.cross(a, a), np.ones((2, 2)))
    same_error(torch, lambda m, a: m.cross(a, a[0], dim=-1), np.ones((2, 3)))
    same_error(torch, lambda m, a: m.cross(a, a[:, :1], dim=-1), np.ones((2, 3)))


def test_values_are_numpys(rng):
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    ours = [convcore.from_numpy(x) for x in (a, b)]
    np.testing.assert_allclose(convcore.cross(*ours, dim=1).numpy(), np.cross(a, b))
    assert convcore.block_diag(convcore.ones(1, 1), convcore.ones(1, 2)).tolist() == [
        [1, 0, 0],
        [0, 1, 1],
    ]
    with pytest.raises(RuntimeError, match="must have length 3"):
        convcore.cross(ours[0], ours[1], dim=0)


def test_gradients_are_those_of_finite_differences(rng):
    a, b = (convcore.from_numpy(rng.normal(size=(2, 3))).requires_grad_() for _ in range(2))
    assert gradcheck(lambda a, b: convcore.cross(a, b, dim=1), (a, b))
    assert gradcheck(convcore.block_diag, (a, b))
