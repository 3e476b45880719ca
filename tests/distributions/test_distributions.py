"""Every distribution beside PyTorch's: samples from one seed, densities, moments, gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import same_error

import convcore
from convcore import distributions
from convcore.autograd import gradcheck

P = [0.2, 0.7, 0.45]
LOC, SCALE = [-1.0, 0.5, 2.0], [0.5, 1.0, 2.5]
WEIGHTS = [[0.2, 0.5, 0.3], [1.0, 2.0, 0.5]]
COVARIANCE = [[2.0, 0.3], [0.3, 1.0]]

# name -> parameters; lists become tensors.
CASES = {
    "Bernoulli": {"probs": P},
    "Bernoulli of logits": {"logits": LOC},
    "Beta": {"concentration1": SCALE, "concentration0": P},
    "Categorical": {"probs": WEIGHTS},
    "Categorical of logits": {"logits": WEIGHTS},
    "Cauchy": {"loc": LOC, "scale": SCALE},
    "Dirichlet": {"concentration": WEIGHTS},
    "Gamma": {"concentration": SCALE, "rate": P},
    "HalfCauchy": {"scale": SCALE},
    "HalfNormal": {"scale": SCALE},
    "LogNormal": {"loc": LOC, "scale": P},
    "MultivariateNormal": {"loc": [[1.0, 2.0], [0.0, -1.0]], "covariance_matrix": COVARIANCE},
    "MultivariateNormal of precision": {"loc": [1.0, 2.0], "precision_matrix": COVARIANCE},
    "MultivariateNormal of scale": {"loc": [1.0, 2.0], "scale_tril": [[2.0, 0.0], [0.3, 1.0]]},
    "Normal": {"loc": LOC, "scale": SCALE},
    "Normal of numbers": {"loc": 0, "scale": 2.0},
    "Poisson": {"rate": [0.5, 3.0, 30.0]},
    "Uniform": {"low": LOC, "high": [0.0, 1.0, 5.0]},
}
MOMENTS = ("mean", "mode", "variance", "stddev")


def made(lib, case, dtype="float64", validate_args=None, requires_grad=False):
    """Return the distribution of a case, and its parameters that are tensors."""
    given = {
        name: lib.tensor(value, dtype=getattr(lib, dtype)).requires_grad_(requires_grad)
        if isinstance(value, list)
        else value
        for name, value in CASES[case].items()
    }
    cls = getattr(lib.distributions, case.split()[0])
    tensors = [value for value in given.values() if not isinstance(value, int | float)]
    return cls(**given, validate_args=validate_args), tensors


def both(torch, case, call, rtol=1e-6, **kwargs):
    """Check that a call gives the same on both sides, or is missing on both."""
    found = []
    for lib in (convcore, torch):
        lib.manual_seed(11)
        try:
            found.append(np.asarray(call(made(lib, case, **kwargs)[0], lib).detach().numpy()))
        except NotImplementedError:
            found.append(None)
    ours, theirs = found
    assert (ours is None) == (theirs is None), (ours, theirs)
    if theirs is not None:
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_samples_are_pytorchs_from_the_same_seed(torch, case, dtype):
    rtol = 1e-4 if dtype == "float32" else 1e-9
    for shape in ((), (4,), (2, 3)):
        both(torch, case, lambda d, lib, s=shape: d.sample(s), rtol, dtype=dtype)
    both(torch, case, lambda d, lib: d.sample((7,)) + lib.rand(()), rtol, dtype=dtype)


@pytest.mark.parametrize("case", CASES)
def test_densities_and_moments_are_pytorchs(torch, case):
    for moment in MOMENTS:
        both(torch, case, lambda d, lib, m=moment: getattr(d, m))
    both(torch, case, lambda d, lib: d.entropy())
    both(torch, case, lambda d, lib: d.log_prob(d.sample((5,))))
    if case != "Gamma":  # which has none here
        both(torch, case, lambda d, lib: d.cdf(d.sample((5,))))
    both(torch, case, lambda d, lib: d.icdf(lib.tensor(0.3).double()), 1e-5)
    both(torch, case, lambda d, lib: d.enumerate_support())
    both(torch, case, lambda d, lib: d.enumerate_support(expand=False))


@pytest.mark.parametrize("case", CASES)
def test_attributes_and_expansion_are_pytorchs(torch, case):
    ours, theirs = (made(lib, case)[0] for lib in (convcore, torch))
    assert repr(ours) == repr(theirs)
    assert (ours.batch_shape, ours.event_shape) == (theirs.batch_shape, theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert repr(ours.support) == repr(theirs.support)
    shape = (2, *ours.batch_shape)
    larger = ours.expand(shape)
    assert type(larger) is type(ours)
    assert larger.batch_shape == shape
    both(torch, case, lambda d, lib: d.expand((2, *d.batch_shape)).sample((3,)))
    both(torch, case, lambda d, lib: d.expand((2, *d.batch_shape)).log_prob(d.sample()))


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_pytorchs(torch, case):
    found = []
    for lib in (convcore, torch):
        lib.manual_seed(5)
        d, leaves = made(lib, case, requires_grad=True)
        total = d.log_prob(d.sample((3,))).sum()
        if d.has_rsample:
            total = total + (d.rsample((6,)) ** 2).sum().clamp(max=1e4)
        if leaves:
            total.backward()
        found.append([0 if x.grad is None else x.grad.numpy() for x in leaves])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_samples_have_the_mean_of_their_distribution(case):
    convcore.manual_seed(3)
    d, _ = made(convcore, case)
    if case.startswith(("Categorical", "Cauchy", "HalfCauchy")):
        return
    mean = d.mean.numpy()
    drawn = d.sample((3000,)).numpy()
    error = np.abs(drawn.mean(0) - mean) / (d.stddev.numpy() + 1e-9)
    assert error.max() < 0.12


def test_implicit_gradients_are_slopes_of_the_quantile():
    from scipy import special

    convcore.manual_seed(1)
    alpha = convcore.tensor([0.1, 0.9, 3.0, 50.0], dtype=convcore.float64, requires_grad=True)
    x = distributions.Gamma(alpha, 1.0).rsample()
    x.sum().backward()
    a, step = alpha.detach().numpy(), 1e-6
    level = special.gammainc(a, x.detach().numpy())
    expected = special.gammaincinv(a + step, level) - special.gammaincinv(a - step, level)
    np.testing.assert_allclose(alpha.grad.numpy(), expected / (2 * step), rtol=1e-4)
    with pytest.raises(RuntimeError, match="is not implemented"):
        (y,) = convcore.autograd.grad(
            distributions.Gamma(alpha, 1.0).rsample().sum(), alpha, create_graph=True
        )
        y.sum().backward()


def test_density_of_a_normal_is_the_formula():
    d = distributions.Normal(1.0, 2.0)
    expected = -math.log(2 * math.sqrt(2 * math.pi)) - 0.5
    assert d.log_prob(convcore.tensor(3.0)).item() == pytest.approx(expected)
    assert d.cdf(convcore.tensor(1.0)) == 0.5
    assert d.icdf(d.cdf(convcore.tensor(2.5))).item() == pytest.approx(2.5, rel=1e-5)
    assert distributions.Categorical(convcore.ones(4)).entropy().item() == pytest.approx(
        math.log(4)
    )


def test_density_is_differentiable_in_value_and_parameters():
    loc = convcore.tensor(LOC, dtype=convcore.float64, requires_grad=True)
    scale = convcore.tensor(SCALE, dtype=convcore.float64, requires_grad=True)
    value = convcore.tensor([0.3, -0.2, 1.0], dtype=convcore.float64, requires_grad=True)
    leaves = (loc, scale, value)
    for cls in (distributions.Normal, distributions.Cauchy):
        assert gradcheck(lambda a, b, x, cls=cls: cls(a, b).log_prob(x), leaves)


BAD = [
    lambda m: m.distributions.Normal(m.zeros(2), -1),
    lambda m: m.distributions.Normal(0.0, 1.0).log_prob(1.0),
    lambda m: m.distributions.Normal(m.zeros(2), 1.0).log_prob(m.ones(3)),
    lambda m: m.distributions.Normal("a", 1.0),
    lambda m: m.distributions.Bernoulli(0.25).log_prob(m.tensor(2.0)),
    lambda m: m.distributions.Bernoulli(m.tensor([0.25, 2.0])),
    lambda m: m.distributions.Bernoulli(),
    lambda m: m.distributions.Bernoulli(0.3, 0.2),
    lambda m: m.distributions.Categorical(),
    lambda m: m.distributions.Categorical(m.tensor(1.0)),
    lambda m: m.distributions.Categorical(m.ones(3)).log_prob(m.tensor(3)),
    lambda m: m.distributions.Uniform(1.0, 0.0),
    lambda m: m.distributions.Uniform(0.0, 1.0).log_prob(m.tensor(2.0)),
    lambda m: m.distributions.Dirichlet(m.tensor(1.0)),
    lambda m: m.distributions.MultivariateNormal(m.zeros(2)),
    lambda m: m.distributions.MultivariateNormal(m.zeros(2), -m.eye(2)),
    lambda m: m.distributions.MultivariateNormal(m.zeros(2), m.eye(2)).log_prob(m.zeros(3)),
    lambda m: m.distributions.Independent(m.distributions.Normal(0.0, 1.0), 1),
    lambda m: m.distributions.Normal(0.0, 1.0).enumerate_support(),
]


@pytest.mark.parametrize("call", BAD)
def test_bad_values_are_refused_with_pytorchs_words(torch, call):
    same_error(torch, call)


def test_checks_can_be_switched_off():
    d = distributions.Bernoulli(0.25, validate_args=False)
    assert d.log_prob(convcore.tensor(0.5)).isfinite()
    distributions.Distribution.set_default_validate_args(False)
    try:
        assert distributions.Normal(0.0, -1.0).scale == -1
    finally:
        distributions.Distribution.set_default_validate_args(True)


def test_independent_agrees_with_pytorch(torch):
    found = []
    for m in (convcore, torch):
        m.manual_seed(2)
        d = m.distributions
        normal = d.Normal(m.tensor([[0.0, 1.0], [2.0, 3.0]]), m.tensor([1.0, 2.0]))
        several = d.Independent(normal, 1)
        x = several.sample((3,))
        results = [several.log_prob(x), several.entropy(), several.mean]
        found.append([repr(several), *(np.asarray(one.numpy()) for one in results)])
    assert found[0][0] == found[1][0]
    for ours, theirs in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_subclass_must_say_how_it_expands():
    class Standard(distributions.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    assert Standard().expand((2,)).batch_shape == (2,)

    class Squared(distributions.LogNormal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match=r"must also define a custom .expand\(\)"):
        Squared().expand((2,))


@pytest.mark.parametrize("name", ["Beta", "Dirichlet"])
def test_a_batch_of_none_is_a_distribution(name):
    parameters = (convcore.ones(0), convcore.ones(0)) if name == "Beta" else (convcore.ones(0, 3),)
    made = getattr(distributions, name)(*parameters)
    assert made.batch_shape == (0,)
    sample = made.sample((2,))
    assert made.log_prob(sample).shape == (2, 0)
