"""ExponentialFamily: the base of distributions exp(<t(x), theta> - F(theta)) k(x)."""

from convcore.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of distributions of an exponential family, each of which says its own entropy."""
