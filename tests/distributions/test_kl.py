"""Kullback-Leibler divergences beside PyTorch's, and as means over samples."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore import distributions
from convcore.distributions import kl_divergence, register_kl

A, B = [0.5, 1.0, 2.5], [0.7, 2.0, 1.5]
P, Q = [0.2, 0.7, 0.45], [0.3, 0.3, 0.9]
COVARIANCE = [[2.0, 0.3], [0.3, 1.0]]
PAIRS = {
    "Bernoulli": ([P], [Q]),
    "Beta": ([A, B], [B, P]),
    "Categorical": ([P], [Q]),
    "Cauchy": ([A, B], [B, A]),
    "Dirichlet": ([A], [B]),
    "Gamma": ([A, B], [B, P]),
    "HalfCauchy": ([A], [B]),
    "HalfNormal": ([A], [B]),
    "LogNormal": ([A, B], [B, A]),
    "MultivariateNormal": ([[1.0, 2.0], COVARIANCE], [[0.0, 1.0], [[1.0, 0.0], [0.0, 3.0]]]),
    "Normal": ([A, B], [B, A]),
    "Poisson": ([A], [B]),
    "Uniform": ([[0.0], [1.0]], [[-1.0], [2.0]]),
}


def pair(m, case):
    made = []
    for given in PAIRS[case]:
        args = [x if isinstance(x, int) else m.tensor(x, dtype=m.float64) for x in given]
        made.append(getattr(m.distributions, case)(*args))
    return made


@pytest.mark.parametrize("case", PAIRS)
def test_divergences_are_pytorchs(torch, case):
    ours, theirs = (m.distributions.kl_divergence(*pair(m, case)) for m in (convcore, torch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9)


@pytest.mark.parametrize("case", PAIRS)
def test_divergences_are_means_over_samples(case):
    convcore.manual_seed(4)
    p, q = pair(convcore, case)
    x = p.sample((4000,))
    terms = (p.log_prob(x) - q.log_prob(x)).numpy()
    error = np.abs(terms.mean(0) - kl_divergence(p, q).numpy())
    assert (error <= 5 * terms.std(0) / np.sqrt(4000) + 1e-9).all()


def test_each_class_of_pytorch_that_is_here_has_its_divergence(torch):
    from torch.distributions.kl import _KL_REGISTRY

    ours = {tuple(kind.__name__ for kind in key) for key in distributions.kl._KL}
    theirs = {tuple(kind.__name__ for kind in key) for key in _KL_REGISTRY}
    same = {key for key in theirs if key[0] == key[1] and hasattr(distributions, key[0])}
    assert same - ours == {("ExponentialFamily", "ExponentialFamily")}


def test_divergence_is_infinite_outside_the_support():
    inner, outer = distributions.Uniform(0.0, 1.0), distributions.Uniform(0.0, 0.5)
    assert kl_divergence(inner, outer) == float("inf")
    never = distributions.Categorical(convcore.tensor([1.0, 0.0]))
    other = distributions.Categorical(convcore.tensor([0.0, 1.0]))
    assert kl_divergence(never, other) == float("inf")
    assert kl_divergence(never, never) == 0


def test_independent_sums_over_the_event():
    p = distributions.Normal(convcore.zeros(3), 1.0)
    q = distributions.Normal(convcore.ones(3), 1.0)
    several = [distributions.Independent(one, 1) for one in (p, q)]
    assert kl_divergence(*several) == kl_divergence(p, q).sum() == 1.5


def test_pairs_are_registered_and_the_nearest_is_taken():
    class Own(distributions.Normal):
        pass

    p, q = Own(0.0, 1.0), distributions.Normal(1.0, 1.0)
    assert kl_divergence(p, q) == 0.5

    @register_kl(Own, distributions.Normal)
    def _(p, q):
        return 7

    assert kl_divergence(p, q) == 7
    assert kl_divergence(q, q) == 0
    with pytest.raises(NotImplementedError, match="p type Normal and q type Poisson"):
        kl_divergence(q, distributions.Poisson(1.0))
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        register_kl(int, Own)
