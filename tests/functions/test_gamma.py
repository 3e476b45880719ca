"""lgamma, its derivatives and the incomplete gamma functions, beside PyTorch's and SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import agree, same_error
from scipy import special

import convcore
from convcore.autograd import gradcheck, gradgradcheck

X = np.array([0.3, 1.0, 2.5, 7.0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_agree_with_pytorch(torch, dtype):
    x = X.astype(dtype)
    same = {"rtol": {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}[dtype], "nodes": 1}
    agree(torch, lambda m, x: m.lgamma(x), x, **same)
    agree(torch, lambda m, x: x.digamma(), x, **same)
    for n in (0, 1, 2):
        agree(torch, lambda m, x, n=n: m.polygamma(n, x).sum(), x, rtol=same["rtol"])
    agree(torch, lambda m, x: (x + 2).mvlgamma(3), x, rtol=same["rtol"])
    if dtype != "float16":
        agree(torch, lambda m, x: m.igamma(x.detach(), x + 0.5), x, **same)
        agree(torch, lambda m, x: m.igammac(x.detach(), x + 0.5), x, **same)


def test_values_are_the_textbooks():
    assert convcore.lgamma(convcore.tensor(5.0)).item() == pytest.approx(math.log(24))
    assert convcore.digamma(convcore.tensor(1.0)).item() == pytest.approx(-0.5772156649)
    assert convcore.polygamma(1, convcore.tensor(1.0)).item() == pytest.approx(math.pi**2 / 6)
    found = convcore.mvlgamma(convcore.tensor(X + 1), 3).numpy()
    np.testing.assert_allclose(found, [special.multigammaln(one, 3) for one in X + 1])


def test_edges_agree_with_pytorch(torch):
    x = np.array([-1.5, -0.5, 0.0, np.inf, np.nan])
    agree(torch, lambda m, x: m.lgamma(x.detach()), x)
    agree(torch, lambda m, x: m.digamma(x.detach()), x[:3])
    agree(torch, lambda m, x: m.polygamma(1, x.detach()), x[:3], rtol=1e-9)
    agree(torch, lambda m, x: m.lgamma(x), np.arange(3))
    same_error(torch, lambda m, x: m.polygamma(-1, x), X)
    same_error(torch, lambda m, x: m.mvlgamma(x, 0), X)
    same_error(torch, lambda m, x: x.lgamma_(), np.arange(3))


def test_gradients_are_those_of_finite_differences():
    x = convcore.from_numpy(X.copy()).requires_grad_()
    a = convcore.full((4,), 1.5, dtype=convcore.float64)
    for function in (
        convcore.lgamma,
        convcore.digamma,
        lambda x: convcore.polygamma(2, x),
        lambda x: convcore.mvlgamma(x + 1, 2),
        lambda x: convcore.igamma(a, x),
        lambda x: convcore.igammac(a, x),
    ):
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))


def test_there_is_no_gradient_for_the_first_argument_of_igamma():
    a = convcore.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="igamma: input' is not implemented"):
        convcore.igamma(a, convcore.ones(1)).backward()


def test_lgamma_is_infinite_at_every_pole_and_both_ends(torch):
    x = [-math.inf, -3.0, -1.0, 0.0, math.inf]
    expected = torch.lgamma(torch.tensor(x)).tolist()
    assert convcore.lgamma(convcore.tensor(x)).tolist() == expected == [math.inf] * 5
