"""Transforms and constraints beside PyTorch's, their inverses, and their Jacobians."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.distributions import transforms

X = [[0.3, -1.2, 2.0], [0.1, 0.5, -0.4]]
MADE = {
    "Exp": lambda t, m: t.ExpTransform(),
    "Sigmoid": lambda t, m: t.SigmoidTransform(),
    "Tanh": lambda t, m: t.TanhTransform(cache_size=1),
    "Affine": lambda t, m: t.AffineTransform(1.0, m.tensor([2.0, -1.0, 0.5]).double()),
    "Affine of vectors": lambda t, m: t.AffineTransform(1.0, -2.0, event_dim=1),
    "Compose": lambda t, m: t.ComposeTransform([t.AffineTransform(0.5, 0.3), t.ExpTransform()]),
    "Inverse": lambda t, m: t.SigmoidTransform().inv.inv,
}


@pytest.mark.parametrize("name", MADE)
def test_transforms_are_pytorchs(torch, name):
    found = []
    for m in (convcore, torch):
        t = MADE[name](m.distributions.transforms, m)
        x = m.tensor(X, dtype=m.float64)
        y = t(x)
        found.append((y, t.inv(y), t.log_abs_det_jacobian(x, y)))
        assert t.inverse_shape(t.forward_shape(x.shape)) == x.shape
        np.testing.assert_allclose(t.inv(y.clone()).numpy(), x.numpy(), rtol=1e-6)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", MADE)
def test_what_transforms_say_of_themselves_is_pytorchs(torch, name):
    ours, theirs = (MADE[name](m.distributions.transforms, m) for m in (convcore, torch))
    for side in ("domain", "codomain"):
        assert repr(getattr(ours, side)) == repr(getattr(theirs, side))
    assert ours.bijective is theirs.bijective and repr(ours) == repr(theirs)
    assert ours(convcore.tensor(X)).shape == theirs(torch.tensor(X)).shape


@pytest.mark.parametrize("name", MADE)
def test_the_same_transform_with_a_cache_keeps_the_last_result(name):
    t, x = MADE[name](transforms, convcore).with_cache(0), convcore.tensor(X)
    cached = t.with_cache(1)
    assert t.with_cache(0) is t and cached.with_cache(1) is cached and cached is not t
    assert type(cached) is type(t) and cached(x).tolist() == t(x).tolist()
    assert cached.inv(cached(x)) is x
    with pytest.raises(ValueError, match="cache_size"):
        t.with_cache(2)


@pytest.mark.parametrize("name", ["Exp", "Sigmoid", "Tanh", "Compose"])
def test_jacobians_are_derivatives(name):
    t = MADE[name](transforms, convcore)
    x = convcore.tensor(X, dtype=convcore.float64, requires_grad=True)
    y = t(x)
    (slope,) = convcore.autograd.grad(y.sum(), x)
    expected = slope.abs().log().numpy()
    np.testing.assert_allclose(t.log_abs_det_jacobian(x, y).detach().numpy(), expected, rtol=1e-6)


def test_a_cache_makes_the_inverse_exact():
    x = convcore.tensor([30.0])
    cached, plain = transforms.TanhTransform(cache_size=1), transforms.TanhTransform()
    assert cached.inv(cached(x)) is x
    assert plain.inv(plain(x)).isinf()
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        transforms.ExpTransform(cache_size=2)


CONSTRAINTS = [
    (lambda c, m: c.real, [1.0, float("nan")]),
    (lambda c, m: c.positive, [0.0, 1.0]),
    (lambda c, m: c.nonnegative_integer, [0.0, 1.5, -1.0]),
    (lambda c, m: c.interval(0, 1), [0.0, 1.5]),
    (lambda c, m: c.integer_interval(0, 3), [0.0, 3.0, 4.0, 0.5]),
    (lambda c, m: c.boolean, [0.0, 1.0, 0.5]),
    (lambda c, m: c.less_than(2.0), [0.0, 2.0]),
    (lambda c, m: c.half_open_interval(0, 1), [0.0, 1.0]),
    (lambda c, m: c.simplex, [[0.5, 0.5], [0.4, 0.5]]),
    (lambda c, m: c.one_hot, [[0.0, 1.0], [0.5, 0.5]]),
    (lambda c, m: c.real_vector, [[0.0, float("nan")], [1.0, 2.0]]),
    (lambda c, m: c.lower_triangular, [[1.0, 1.0], [1.0, 1.0]]),
    (lambda c, m: c.lower_cholesky, [[1.0, 0.0], [1.0, 1.0]]),
    (lambda c, m: c.positive_definite, [[1.0, 2.0], [2.0, 1.0]]),
    (lambda c, m: c.positive_semidefinite, [[1.0, 1.0], [1.0, 1.0]]),
    (lambda c, m: c.symmetric, [[1.0, 2.0], [3.0, 1.0]]),
]


@pytest.mark.parametrize(("make", "value"), CONSTRAINTS)
def test_constraints_are_pytorchs(torch, make, value):
    ours, theirs = (make(m.distributions.constraints, m) for m in (convcore, torch))
    found, expected = (
        one.check(m.tensor(value)).tolist() for one, m in ((ours, convcore), (theirs, torch))
    )
    assert found == expected
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)
    assert repr(ours) == repr(theirs)


def test_transformed_distribution_is_the_change_of_variables(torch):
    found = []
    for m in (convcore, torch):
        m.manual_seed(0)
        d = m.distributions
        base = d.Normal(m.zeros(3), 1.0)
        squashed = d.TransformedDistribution(
            d.Independent(base, 1), [d.transforms.TanhTransform(cache_size=1)]
        )
        logistic = d.TransformedDistribution(
            d.Uniform(m.zeros(2), m.ones(2)),
            [d.transforms.SigmoidTransform().inv, d.transforms.AffineTransform(1.0, -2.0)],
        )
        x, y = squashed.rsample((2,)), logistic.sample((4,))
        results = [x, squashed.log_prob(x), y, logistic.log_prob(y), logistic.cdf(y)]
        results += [logistic.icdf(m.tensor(0.3))]
        assert squashed.expand((5,)).batch_shape == (5,)
        found.append(results)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-6)
