"""Kullback-Leibler divergences of distributions of two kinds.

KL(p || q) is E_p(-log q) minus the entropy of p.  So each kind of q needs a few expectations under
p: of x and its square, of log x, or of exp(-x / scale).  Where q is zero on a set that p reaches,
the divergence is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.distributions.bernoulli import Bernoulli
from convcore.distributions.beta import Beta
from convcore.distributions.binomial import Binomial
from convcore.distributions.exponential import Exponential
from convcore.distributions.gamma import Gamma
from convcore.distributions.gumbel import _EULER, Gumbel
from convcore.distributions.kl import register_kl
from convcore.distributions.laplace import Laplace
from convcore.distributions.normal import Normal
from convcore.distributions.poisson import Poisson
from convcore.distributions.uniform import Uniform
from convcore.functions.broadcast import broadcast_shape
from convcore.functions.elementwise import erf
from convcore.functions.gamma import digamma, lgamma
from convcore.functions.piecewise import where
from convcore.functions.special import xlogy

__all__: list[str] = []


def _register(kinds: tuple[type, ...], kind_q: type, function: Callable) -> None:
    for kind_p in kinds:
        register_kl(kind_p, kind_q)(function)


# q reaches less than p


def _infinite(p: Any, q: Any) -> Tensor:
    shape = broadcast_shape(p.batch_shape, q.batch_shape)
    return wrap(np.full(shape, np.inf, p.mean._array.dtype))


_UNBOUNDED: tuple[type, ...] = (Exponential, Gamma, Gumbel, Laplace, Normal)
_BELOW_ZERO: tuple[type, ...] = (Gumbel, Laplace, Normal)
_register(_UNBOUNDED, Beta, _infinite)
_register(_UNBOUNDED, Uniform, _infinite)
_register(_BELOW_ZERO, Exponential, _infinite)
_register(_BELOW_ZERO, Gamma, _infinite)
_register((Poisson,), Bernoulli, _infinite)
_register((Poisson,), Binomial, _infinite)


def _where_inside(found: Tensor, p: Any, low: Any, high: Any = math.inf) -> Tensor:
    """Return what was found where a uniform p lies within an interval, and infinity elsewhere."""
    return where((p.low < low) | (p.high > high), math.inf, found)


# Expectations under p


def _log_mean(p: Any) -> Tensor:
    """Return E log x."""
    if isinstance(p, Uniform):
        return _uniform_log_mean(p.low, p.high)
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    return -_EULER - p.rate.log()  # Exponential


def _uniform_log_mean(low: Tensor, high: Tensor) -> Tensor:
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


def _transformed_mean(p: Any, t: Tensor) -> Tensor:
    """Return E exp(-t x)."""
    if isinstance(p, Uniform):
        return ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low))
    if isinstance(p, Normal):
        return (t.pow(2) * p.variance / 2 - t * p.loc).exp()
    ratio = p.rate / (p.rate + t)
    return ratio.pow(p.concentration) if isinstance(p, Gamma) else ratio  # Gamma, Exponential


# E_p(-log q), by the kind of q


def _to_normal(p: Any, q: Any) -> Tensor:
    square = p.variance + (p.mean - q.loc).pow(2)
    return square / (2 * q.variance) + 0.5 * (2 * math.pi * q.variance).log() - p.entropy()


def _to_exponential(p: Any, q: Any) -> Tensor:
    found = q.rate * p.mean - q.rate.log() - p.entropy()
    return _where_inside(found, p, 0) if isinstance(p, Uniform) else found


def _to_gamma(p: Any, q: Any) -> Tensor:
    a = q.concentration
    found = lgamma(a) - a * q.rate.log() - (a - 1) * _log_mean(p) + q.rate * p.mean - p.entropy()
    return _where_inside(found, p, 0) if isinstance(p, Uniform) else found


def _to_gumbel(p: Any, q: Any) -> Tensor:
    power = (q.loc / q.scale).exp() * _transformed_mean(p, 1 / q.scale)
    return q.scale.log() + (p.mean - q.loc) / q.scale + power - p.entropy()


_register((Beta, Exponential, Gamma, Gumbel, Laplace, Uniform), Normal, _to_normal)
_register((Beta, Gamma, Uniform), Exponential, _to_exponential)
_register((Beta, Exponential, Uniform), Gamma, _to_gamma)
_register((Exponential, Gamma, Normal, Uniform), Gumbel, _to_gumbel)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    apart = p.loc - q.loc
    near = p.scale * math.sqrt(2 / math.pi) * (-0.5 * (apart / p.scale).pow(2)).exp()
    distance = near + apart * erf(apart / (p.scale * math.sqrt(2)))  # E |x - loc|
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    found = (q.high - q.low).log() - p.entropy()
    return where((q.low > 0) | (q.high < 1), math.inf, found)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    powers = (a - 1) * _log_mean(p) + (b - 1) * _uniform_log_mean(1 - p.high, 1 - p.low)
    return _where_inside(log_beta - powers - p.entropy(), p, 0, 1)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()
