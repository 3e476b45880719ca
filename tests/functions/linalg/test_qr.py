"""QR factors: by their equations, beside PyTorch's, and by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore import linalg
from convcore.autograd import gradcheck, gradgradcheck


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5)])
def test_qr_has_its_equation_and_gradients(rng, shape, is_complex):
    drawn = rng.normal(size=shape) + (1j * rng.normal(size=shape) if is_complex else 0)
    a = convcore.from_numpy(drawn).requires_grad_()
    q, r = linalg.qr(a)
    np.testing.assert_allclose((q @ r).detach(), drawn, atol=1e-12)
    assert gradcheck(lambda a: tuple(linalg.qr(a)), (a,))
    assert gradgradcheck(lambda a: tuple(linalg.qr(a)), (a,), atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_agree_with_pytorch(torch, rng):
    a = rng.normal(size=(2, 4, 3))
    agree(torch, lambda m, a: m.linalg.qr(a), a, rtol=1e-7)
    agree(torch, lambda m, a: m.linalg.qr(a.detach(), "complete"), a, rtol=1e-7)
    agree(torch, lambda m, a: m.linalg.qr(a.detach(), "r"), a, rtol=1e-7)
    same_error(torch, lambda m, a: m.linalg.qr(a, "full"), a)
    same_error(torch, lambda m, a: m.linalg.qr(a, "complete")[1].sum().backward(), a)


def test_there_is_no_gradient_without_q():
    a = convcore.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="mode='r'"):
        linalg.qr(a, "r").R.sum().backward()
