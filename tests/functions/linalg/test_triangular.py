"""Cholesky factors and triangular systems: beside PyTorch's, and by finite differences."""

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


def positive(a):
    return a @ a.mH + convcore.eye(a.shape[-1]).to(a.dtype)


@pytest.mark.parametrize("is_complex", [False, True])
def test_cholesky_has_its_equation_and_gradients(rng, is_complex):
    a = convcore.from_numpy(drawn(rng, 2, 3, 3, is_complex=is_complex)).requires_grad_()
    whole = positive(a)
    lower, upper = linalg.cholesky(whole), linalg.cholesky(whole, upper=True)
    np.testing.assert_allclose((lower @ lower.mH).detach(), whole.detach(), atol=1e-12)
    np.testing.assert_allclose((upper.mH @ upper).detach(), whole.detach(), atol=1e-12)
    for side in (False, True):
        function = lambda a, side=side: linalg.cholesky(positive(a), upper=side)  # noqa: E731
        assert gradcheck(function, (a,))
        assert gradgradcheck(function, (a,))


@pytest.mark.parametrize("is_complex", [False, True])
def test_triangular_systems_have_their_equation_and_gradients(rng, is_complex):
    a = drawn(rng, 2, 3, 3, is_complex=is_complex) + 3 * np.eye(3)
    b = drawn(rng, 3, 2, is_complex=is_complex)
    x = linalg.solve_triangular(convcore.tensor(a), convcore.tensor(b), upper=True).numpy()
    np.testing.assert_allclose(np.triu(a) @ x, np.broadcast_to(b, x.shape), atol=1e-12)
    leaves = [convcore.from_numpy(one).requires_grad_() for one in (a, b)]
    for upper in (False, True):
        for left in (True, False):
            for unit in (False, True):

                def function(a, b, upper=upper, left=left, unit=unit):
                    b = b if left else b.mT
                    return linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)

                assert gradcheck(function, leaves)
    assert gradgradcheck(lambda a, b: linalg.solve_triangular(a, b, upper=False), leaves)


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_agree_with_pytorch(torch, rng):
    a, b = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3, 2))
    unit = np.eye(3)
    agree(torch, lambda m, a, e: m.linalg.cholesky(a @ a.mT + e.detach()), a, unit, rtol=1e-8)
    agree(torch, lambda m, a, e: m.cholesky(a @ a.mT + e, True), a, unit, rtol=1e-8)
    lower = np.tril(a) + 2 * unit
    agree(torch, lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False), lower, b, rtol=1e-8)
    agree(torch, lambda m, a, b: m.cholesky_solve(b, a.tril()), lower, b, rtol=1e-8)
    agree(torch, lambda m, a, b: m.cholesky_solve(b, a.tril().mT, upper=True), lower, b, rtol=1e-8)


def test_what_is_not_positive_is_named(torch):
    bad = convcore.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(linalg.LinAlgError, match=r"element 1\).*leading minor of order 2 is not"):
        linalg.cholesky(bad)
    factor, info = linalg.cholesky_ex(bad)
    assert info.tolist() == [0, 2]
    assert factor[0].tolist() == [[1, 0], [0, 1]]
    assert factor[1].isnan().all()
    same_error(torch, lambda m, a: m.linalg.cholesky(a), np.ones((2, 3)))
    same_error(torch, lambda m, a: m.linalg.solve_triangular(a, a[0], upper=True), np.ones((2, 2)))
    same_error(torch, lambda m, a: m.linalg.solve_triangular(a, a, upper=True), np.ones((2, 3)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (1, 1), (2, 0), (2, 1), (2, 2)])
def test_what_is_not_finite_is_not_positive_where_it_is_not_in_pytorch(torch, value, place):
    matrix = np.stack([np.eye(3), 3 * np.eye(3) + 1])
    matrix[(1, *place)] = matrix[(1, *place[::-1])] = value
    ours, theirs = (m.linalg.cholesky_ex(m.tensor(matrix)) for m in (convcore, torch))
    np.testing.assert_array_equal(ours.info.numpy() != 0, theirs.info.numpy() != 0)
    if ours.info.any():
        with pytest.raises(convcore.linalg.LinAlgError, match=r"Batch element 1.*not positive"):
            convcore.linalg.cholesky(convcore.tensor(matrix))
    np.testing.assert_array_equal(ours.L[0].numpy(), np.eye(3))
