"""lgamma and its derivatives, beside PyTorch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck, gradgradcheck

X = np.array([0.3, 1.0, 2.5, 7.0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_agree_with_pytorch(torch, dtype):
    x = X.astype(dtype)
    same = {"rtol": {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}[dtype], "nodes": 1}
    agree(torch, lambda m, x: m.lgamma(x), x, **same)
    agree(torch, lambda m, x: x.digamma(), x, **same)


def test_values_are_the_textbooks():
    assert convcore.lgamma(convcore.tensor(5.0)).item() == pytest.approx(math.log(24))
    assert convcore.digamma(convcore.tensor(1.0)).item() == pytest.approx(-0.5772156649)


def test_edges_agree_with_pytorch(torch):
    x = np.array([-1.5, -0.5, 0.0, np.inf, np.nan])
    agree(torch, lambda m, x: m.lgamma(x.detach()), x)
    agree(torch, lambda m, x: m.digamma(x.detach()), x[:3])
    agree(torch, lambda m, x: m.lgamma(x), np.arange(3))
    same_error(torch, lambda m, x: x.lgamma_(), np.arange(3))


def test_gradients_are_those_of_finite_differences():
    x = convcore.from_numpy(X.copy()).requires_grad_()
    for function in (convcore.lgamma, convcore.digamma):
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))


def test_lgamma_is_infinite_at_every_pole_and_both_ends(torch):
    x = [-math.inf, -3.0, -1.0, 0.0, math.inf]
    expected = torch.lgamma(torch.tensor(x)).tolist()
    assert convcore.lgamma(convcore.tensor(x)).tolist() == expected == [math.inf] * 5
