"""Functions of convcore.special alone, beside PyTorch's; their gradients by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree
from edges import agree_at_first_order

import convcore
from convcore import special
from convcore.autograd import gradcheck, gradgradcheck

X = np.array([-2.5, -0.4, 0.3, 1.7])
DIFFERENTIABLE = ["ndtr", "erfcx", "log_ndtr", "i0", "i1", "i0e", "i1e", "erfc", "expit"]
OF_POSITIVE = ["ndtri", "entr", "gammaln", "psi", "logit"]
PLAIN = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"]
PLAIN += [f"modified_bessel_{name}" for name in ("i0", "i1", "k0", "k1")]


@pytest.mark.parametrize("name", DIFFERENTIABLE + OF_POSITIVE + PLAIN)
def test_agree_with_pytorch(torch, name):
    x = np.abs(X) / 3 if name in OF_POSITIVE else X
    if name in PLAIN:
        agree(torch, lambda m, x: getattr(m.special, name)(x.detach()), x, rtol=1e-7)
    else:
        agree(torch, lambda m, x: getattr(m.special, name)(x), x, rtol=1e-7)
        edges = np.array([0.0, np.inf, np.nan])
        agree(torch, lambda m, x: getattr(m.special, name)(x.detach()), edges)


@pytest.mark.parametrize("name", DIFFERENTIABLE + OF_POSITIVE)
def test_gradients_are_those_of_finite_differences(name):
    x = convcore.from_numpy(np.abs(X) / 3 if name in OF_POSITIVE else X.copy()).requires_grad_()
    assert gradcheck(getattr(special, name), (x,))
    assert gradgradcheck(getattr(special, name), (x,))


def test_functions_of_two_tensors(torch):
    x, y = np.array([0.0, 0.5, 2.0]), np.array([0.3, 1.5, 4.0])
    agree(torch, lambda m, x, y: m.special.xlog1py(x, y), x, y)
    agree(torch, lambda m, x: m.special.xlog1py(2, x), x)
    agree(torch, lambda m, x, y: m.special.zeta(x.detach() + 2, y), x, y, rtol=1e-9)
    found = special.zeta(convcore.tensor([2.0]), 1.0)
    assert found.item() == pytest.approx(np.pi**2 / 6)
    assert special.xlog1py(convcore.tensor(0.0), -1.0) == 0


def test_what_has_no_gradient_says_so():
    x = convcore.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="bessel_j0: self' is not implemented"):
        special.bessel_j0(x).backward()
    with pytest.raises(RuntimeError, match="zeta: self' is not implemented"):
        special.zeta(x + 1, 2.0).backward()


def test_gradients_at_zero_are_the_limits():
    x = convcore.zeros(1, requires_grad=True)
    special.i1(x).backward()
    assert x.grad.item() == 0.5


@pytest.mark.parametrize("name", ["xlog1py", "zeta"])
def test_integers_take_the_dtype_of_a_number_beside_them(torch, name):
    for lib in (torch, convcore):
        function = getattr(lib.special, name)
        assert function(lib.tensor(2.0, dtype=lib.float64), lib.tensor([[1]])).dtype == lib.float64
        assert function(lib.tensor([2]), 3).dtype == lib.float32


def test_entr_has_the_slope_of_its_ends(torch):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 0.3])
    agree_at_first_order(torch, lambda m, x: m.special.entr(x), x)
    assert not special.entr(convcore.tensor([0.0])).signbit().any()
