"""Kullback-Leibler divergences of two distributions of the same class.

References
----------
S. Kullback and R. A. Leibler, "On information and sufficiency", Ann. Math. Statist. 22(1), 1951.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor
from convcore.distributions.bernoulli import Bernoulli
from convcore.distributions.beta import Beta
from convcore.distributions.categorical import Categorical
from convcore.distributions.cauchy import Cauchy
from convcore.distributions.dirichlet import Dirichlet
from convcore.distributions.distribution import Distribution
from convcore.distributions.gamma import Gamma
from convcore.distributions.half_normal import HalfNormal
from convcore.distributions.independent import Independent
from convcore.distributions.multivariate_normal import MultivariateNormal, half_log_det
from convcore.distributions.normal import Normal
from convcore.distributions.poisson import Poisson
from convcore.distributions.transformed_distribution import TransformedDistribution
from convcore.distributions.uniform import Uniform
from convcore.distributions.utils import sum_rightmost
from convcore.functions.elementwise.activation import softplus
from convcore.functions.elementwise.gamma import digamma, lgamma
from convcore.functions.elementwise.piecewise import where
from convcore.functions.linalg import solve_triangular

__all__ = ["kl_divergence", "register_kl"]

_KL: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorate the function of p and q that computes the divergence of a pair of kinds.

    Raises
    ------
    TypeError
        An argument is no subclass of Distribution.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(function: Callable) -> Callable:
        _KL[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the expectation under p of log p - log q, of shape batch_shape.

    Raises
    ------
    NotImplementedError
        There is no formula for the pair.
    """
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            found = _KL.get((kind_p, kind_q))
            if found is not None:
                return found(p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    one = where(q.probs == 0, math.inf, one)
    zero = where(q.probs == 1, math.inf, zero)
    return where(p.probs == 0, 0.0, one) + where(p.probs == 1, 0.0, zero)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = where((q.probs == 0).expand_as(terms), math.inf, terms)
    return where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    squares = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return (squares / (4 * p.scale * q.scale)).log()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    apart = lgamma(total) - lgamma(b.sum(-1)) + (lgamma(b) - lgamma(a)).sum(-1)
    return apart + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    front = b * (p.rate / q.rate).log() + lgamma(b) - lgamma(a)
    return front + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be "
            "computed"
        )
    ours, theirs = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    ratio = solve_triangular(theirs, ours, upper=False).pow(2).sum((-2, -1))
    distance = solve_triangular(theirs, (q.loc - p.loc).unsqueeze(-1), upper=False)
    square = distance.squeeze(-1).pow(2).sum(-1)
    return half_log_det(theirs) - half_log_det(ours) + 0.5 * (ratio + square - p.event_shape[0])


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    found = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(found, p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)
