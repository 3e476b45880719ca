"""Singular values and eigenvalues: by their equations, and gradients of what has no sign."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore import linalg
from convcore.autograd import gradcheck, gradgradcheck


def drawn(rng, *shape, is_complex=False):
    array = rng.normal(size=shape)
    return array + 1j * rng.normal(size=shape) if is_complex else array


def through_svd(m, a, full=False):
    """Return what does not depend on the signs, or phases, of singular vectors."""
    u, s, vh = m.linalg.svd(a, full)
    k = s.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    return (u * s.exp()[..., None, :]) @ vh, (u * s[..., None, :]) @ u.mH


def through_eigh(m, a):
    values, vectors = m.linalg.eigh(a + a.mH)
    return (vectors * values.sin()[..., None, :]) @ vectors.mH


def through_eig(m, a):
    values, vectors = m.linalg.eig(a)
    return values.exp().sum(-1), (vectors.abs() ** 2 * (values.real[..., None, :])).sum(-1)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5)])
def test_svd_has_its_equation_and_gradients(rng, shape, is_complex):
    a = convcore.from_numpy(drawn(rng, *shape, is_complex=is_complex)).requires_grad_()
    u, s, vh = linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(((u * s[..., None, :]) @ vh).detach(), a.detach(), atol=1e-12)
    assert s.dtype == convcore.float64
    for full in (False, True):
        assert gradcheck(lambda a, full=full: through_svd(convcore, a, full), (a,))
    assert gradgradcheck(lambda a: through_svd(convcore, a), (a,), atol=1e-4)
    assert gradcheck(linalg.svdvals, (a,))


@pytest.mark.parametrize("is_complex", [False, True])
def test_eigenvalues_have_their_equations_and_gradients(rng, is_complex):
    a = convcore.from_numpy(drawn(rng, 2, 3, 3, is_complex=is_complex)).requires_grad_()
    values, vectors = linalg.eigh(a + a.mH)
    np.testing.assert_allclose(
        ((a + a.mH) @ vectors).detach(), (vectors * values[..., None, :]).detach(), atol=1e-12
    )
    assert gradcheck(lambda a: through_eigh(convcore, a), (a,))
    assert gradgradcheck(lambda a: through_eigh(convcore, a), (a,), atol=1e-4)
    assert gradcheck(lambda a: linalg.eigvalsh(a + a.mH, "U"), (a,))
    values, vectors = linalg.eig(a)
    np.testing.assert_allclose(
        (a.to(values.dtype) @ vectors).detach(),
        (vectors * values[..., None, :]).detach(),
        atol=1e-12,
    )
    assert gradcheck(lambda a: through_eig(convcore, a), (a,))
    assert gradgradcheck(lambda a: through_eig(convcore, a), (a,), atol=1e-4)


@pytest.mark.parametrize("is_complex", [False, True])
def test_agree_with_pytorch(torch, rng, is_complex):
    a = drawn(rng, 2, 4, 3, is_complex=is_complex)
    agree(torch, lambda m, a: through_svd(m, a), a, rtol=1e-7)
    agree(torch, lambda m, a: m.linalg.svdvals(a), a, rtol=1e-7)
    agree(torch, lambda m, a: through_eigh(m, a), a[:, :3].copy(), rtol=1e-7)
    agree(torch, lambda m, a: m.linalg.eigvalsh(a), a[:, :3].copy(), rtol=1e-7)
    agree(torch, lambda m, a: through_eig(m, a), a[:, :3].copy(), rtol=1e-7)
    agree(torch, lambda m, a: m.linalg.eigvals(a).abs().sum(), a[0, :3].copy(), rtol=1e-7)


def test_results_print_as_pytorchs_do(torch):
    ours, theirs = (m.linalg.eigh(m.eye(2) * m.tensor([1.0, 2.0])) for m in (convcore, torch))
    assert repr(ours) == repr(theirs)


def test_errors_are_pytorchs(torch):
    nan = np.full((2, 2), np.nan)
    same_error(torch, lambda m, a: m.linalg.eig(a), nan)
    same_error(torch, lambda m, a: m.linalg.eigh(a, "Q"), np.ones((2, 2)))
    same_error(torch, lambda m, a: m.linalg.eigh(a), np.ones((2, 3)))
    same_error(torch, lambda m, a: m.linalg.eigh(a), np.ones((2, 2), int))
    same_error(torch, lambda m, a: m.linalg.svd(a), np.ones((2, 2), "float16"))
    same_error(torch, lambda m, a: m.linalg.svd(a, driver="gesvd"), np.ones((2, 2)))
    with pytest.raises(linalg.LinAlgError, match="failed to converge"):
        linalg.svd(convcore.tensor(nan))
