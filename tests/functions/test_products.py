"""Products and arrangements of vectors and matrices beside PyTorch's and NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck


def test_products_agree_with_pytorch(torch, rng):
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(4, 2, 5))
    agree(torch, lambda m, a, b: m.kron(a, b), a, b)
    agree(torch, lambda m, a, b: a.kron(b), b, a)
    agree(torch, lambda m, a, b: m.cross(a, b, dim=1), a, rng.normal(size=(1, 3)))
    agree(torch, lambda m, a, b: m.cross(a, b, dim=1), a, rng.normal(size=(2, 3)))
    agree(torch, lambda m, x: m.vander(x.detach()), rng.normal(size=3), rtol=1e-9)
    agree(torch, lambda m, x: m.vander(x, 2, increasing=True), np.arange(4))
    with pytest.raises(RuntimeError, match="Storage size"):
        convcore.vander(convcore.ones(2), N=2**63 - 1)
    x, batch, more = rng.normal(size=(2, 5)), rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 4, 5))
    agree(torch, lambda m, *t: m.addbmm(*t, beta=0.5, alpha=2), x, batch, more)
    agree(torch, lambda m, *t: m.addr(*t, alpha=3), x, rng.normal(size=2), rng.normal(size=5))
    agree(torch, lambda m, x, u, v: x.clone().addr_(u, v), x, x[:, 0].copy(), x[0].copy())


def test_arrangements_agree_with_pytorch(torch, rng):
    a, v = rng.normal(size=(2, 3)), rng.normal(size=4)
    agree(torch, lambda m, a, v: m.block_diag(a, v, m.tensor(2.0).double()), a, v)
    agree(torch, lambda m, v: m.cartesian_prod(v, v[:2]), v)
    agree(torch, lambda m, v: m.cartesian_prod(v), v)
    agree(torch, lambda m, v: m.combinations(v), v)
    agree(torch, lambda m, v: m.combinations(v, 3, with_replacement=True), v)
    agree(torch, lambda m, v: m.combinations(v, 5), v)
    agree(torch, lambda m, a: m.diagflat(a, -1), a)
    same_error(torch, lambda m, a: m.combinations(a), a)
    same_error(torch, lambda m, a: m.block_diag(a[None]), a)
    same_error(torch, lambda m, a: m.cross(a, a), np.ones((2, 2)))
    same_error(torch, lambda m, a: m.cross(a, a[0], dim=-1), np.ones((2, 3)))
    same_error(torch, lambda m, a: m.cross(a, a[:, :1], dim=-1), np.ones((2, 3)))


def test_covariances_agree_with_pytorch(torch, rng):
    x, counts, weights = rng.normal(size=(3, 6)), np.arange(1, 7), rng.uniform(size=6)
    agree(torch, lambda m, x: m.cov(x), x, rtol=1e-9)
    agree(torch, lambda m, x: x.cov(correction=0), x[0].copy(), rtol=1e-9)
    agree(torch, lambda m, x, n: m.cov(x, fweights=n), x, counts, rtol=1e-9)
    agree(
        torch,
        lambda m, x, n, w: m.cov(x, fweights=n, aweights=w.detach()),
        *(x, counts, weights),
        rtol=1e-9,
    )
    agree(torch, lambda m, x: m.corrcoef(x), x, rtol=1e-9)
    agree(torch, lambda m, x: m.corrcoef(x), x + 1j * rng.normal(size=(3, 6)), rtol=1e-9)


@pytest.mark.parametrize("name", ["uint8", "int8", "int16"])
def test_covariances_of_small_integers_are_pytorchs(torch, name):
    for function in ("cov", "corrcoef"):
        found = [
            getattr(m, function)((m.arange(900).reshape(3, 300) % 7).to(getattr(m, name)))
            for m in (convcore, torch)
        ]
        np.testing.assert_allclose(*(one.numpy() for one in found), rtol=1e-5)
    one = convcore.tensor([[7, 4]]).to(getattr(convcore, name))
    assert convcore.cov(one, correction=-(2**20)) == pytest.approx(4.5 / (2 + 2**20))


def test_values_are_numpys(rng):
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    ours = [convcore.from_numpy(x) for x in (a, b)]
    np.testing.assert_allclose(convcore.kron(*ours).numpy(), np.kron(a, b))
    np.testing.assert_allclose(convcore.cross(*ours, dim=1).numpy(), np.cross(a, b))
    np.testing.assert_allclose(convcore.cov(ours[0]).numpy(), np.cov(a))
    np.testing.assert_allclose(convcore.corrcoef(ours[0]).numpy(), np.corrcoef(a))
    pairs = convcore.combinations(convcore.arange(3)).tolist()
    assert pairs == [[0, 1], [0, 2], [1, 2]]
    assert convcore.block_diag(convcore.ones(1, 1), convcore.ones(1, 2)).tolist() == [
        [1, 0, 0],
        [0, 1, 1],
    ]
    with pytest.raises(RuntimeError, match="must have length 3"):
        convcore.cross(ours[0], ours[1], dim=0)


def test_gradients_are_those_of_finite_differences(rng):
    a, b = (convcore.from_numpy(rng.normal(size=(2, 3))).requires_grad_() for _ in range(2))
    assert gradcheck(convcore.kron, (a, b))
    assert gradcheck(lambda a, b: convcore.cross(a, b, dim=1), (a, b))
    assert gradcheck(convcore.cov, (a,))
    assert gradcheck(convcore.block_diag, (a, b))


def test_too_few_observations_have_no_covariance(torch):
    for lib in (convcore, torch):
        with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
            assert lib.cov(lib.ones(2, 1)).isnan().all()
