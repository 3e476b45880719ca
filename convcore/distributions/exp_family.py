"""ExponentialFamily: the base of distributions exp(<t(x), theta> - F(theta)) k(x)."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.autograd import differentiate
from convcore.autograd.grad_mode import enable_grad
from convcore.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of distributions of an exponential family; here they say their entropy themselves.

    A subclass without `entropy` says ``_natural_params`` and ``_log_normalizer``, of which it is
    computed.

    References
    ----------
    F. Nielsen and R. Nock, "Entropies and cross-entropies of exponential families", ICIP 2010.
    """

    _mean_carrier_measure: Any = 0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy: F(theta) - <theta, grad F(theta)> - E[log k(x)]."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with enable_grad():
            normalizer = self._log_normalizer(*params)
            gradients = differentiate.grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for param, gradient in zip(params, gradients, strict=True):
            product = param * gradient
            rest = len(self._batch_shape)
            result = result - product.reshape((*self._batch_shape, -1)[: rest + 1]).sum(-1)
        return result
