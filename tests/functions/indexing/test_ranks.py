"""Quantiles, kthvalue, mode and running extremes beside PyTorch's and NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck

HOW = ("linear", "lower", "higher", "midpoint", "nearest")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_quantiles_agree_with_pytorch(torch, rng, how, dim, keepdim):
    x = rng.normal(size=(4, 7))
    options = {"dim": dim, "keepdim": keepdim, "interpolation": how}
    agree(torch, lambda m, x: m.quantile(x, 0.3, **options), x)
    agree(torch, lambda m, x, q: m.quantile(x, q.detach(), **options), x, np.array([0.0, 0.55, 1]))
    x[1, 2:4] = np.nan
    agree(torch, lambda m, x: m.quantile(x.detach(), 0.7, **options), x)


@pytest.mark.parametrize("how", HOW)
def test_quantiles_beside_infinities_agree_with_pytorch(torch, how):
    inf = np.inf
    for values in ([1, 2, inf], [-inf, 2, 3], [inf, inf, inf], [1, inf, inf]):
        for q in (0.0, 0.25, 0.5, 0.6, 0.75, 1.0):
            found, expected = (
                lib.quantile(lib.tensor(values, dtype=lib.float32), q, interpolation=how).item()
                for lib in (convcore, torch)
            )
            assert np.array_equal(found, expected, equal_nan=True), (values, q)


def test_an_element_beside_an_infinity_is_itself():
    x = convcore.tensor([1.0, np.inf], requires_grad=True)
    convcore.quantile(x, 0.4, interpolation="nearest").backward()
    assert x.grad.tolist() == [1, 0]
    assert convcore.quantile(x.detach(), 1, interpolation="nearest").item() == np.inf


def test_quantiles_are_numpys(rng):
    x = rng.normal(size=(5, 6))
    found = convcore.quantile(convcore.from_numpy(x), convcore.tensor([0.1, 0.9]).double(), dim=1)
    expected = np.quantile(x, np.array([0.1, 0.9], np.float32).astype(float), axis=1)
    np.testing.assert_allclose(found.numpy(), expected)


def test_errors_of_quantiles_are_pytorchs(torch):
    x = np.ones((2, 3))
    same_error(torch, lambda m, x: m.quantile(x, 1.5), x)
    same_error(torch, lambda m, x: m.quantile(x, 0.5, interpolation="cubic"), x)
    same_error(torch, lambda m, x: m.quantile(x, 0.5), np.arange(3))
    same_error(torch, lambda m, x: m.quantile(x, 0.5), np.ones(0))
    same_error(torch, lambda m, x: m.quantile(x, m.tensor([0.5])), x)
    same_error(torch, lambda m, x: m.quantile(x, m.ones(1, 1).double()), x)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_ranks_along_an_axis_agree_with_pytorch(torch, rng, dim, keepdim):
    x = rng.permutation(20).reshape(4, 5).astype(float)
    agree(torch, lambda m, x: m.kthvalue(x, 2, dim, keepdim), x, nodes=1)


@pytest.mark.parametrize("values", [[2, 2, 1, 3], [np.nan, 2, 2, 3, 3], [np.nan, np.nan]])
def test_equal_medians_share_the_gradient(torch, values):
    x = np.array(values, float)
    agree(torch, lambda m, x: m.median(x), x)


def test_values_by_hand():
    x = convcore.tensor([3, 1, 1, 5, 2])
    assert x.kthvalue(3).values.item() == 2
    assert convcore.quantile(x.double(), 0.5).item() == 2
    with pytest.raises(RuntimeError, match="selected number k out of range"):
        x.kthvalue(6)


def test_gradients_are_those_of_finite_differences(rng):
    x = convcore.from_numpy(rng.normal(size=(3, 5))).requires_grad_()
    assert gradcheck(lambda x: convcore.quantile(x, 0.4, dim=1), (x,))
    assert gradcheck(lambda x: x.kthvalue(2)[0], (x,))
