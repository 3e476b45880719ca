"""Probability distributions under PyTorch's names: torch.distributions.

Samples are those that PyTorch draws after the same `manual_seed`; `rsample` has gradients for the
parameters, of gamma, beta and Dirichlet numbers implicit ones (Figurnov et al., 2018).

>>> import convcore
>>> convcore.distributions.Bernoulli(0.25).entropy()
tensor(0.5623)
"""

from convcore._errors import names as _names
from convcore.distributions import constraints, transforms
from convcore.distributions.bernoulli import Bernoulli
from convcore.distributions.beta import Beta
from convcore.distributions.categorical import Categorical
from convcore.distributions.cauchy import Cauchy
from convcore.distributions.dirichlet import Dirichlet
from convcore.distributions.distribution import Distribution
from convcore.distributions.exp_family import ExponentialFamily
from convcore.distributions.gamma import Gamma
from convcore.distributions.half_cauchy import HalfCauchy
from convcore.distributions.half_normal import HalfNormal
from convcore.distributions.independent import Independent
from convcore.distributions.kl import kl_divergence, register_kl
from convcore.distributions.log_normal import LogNormal
from convcore.distributions.multivariate_normal import MultivariateNormal
from convcore.distributions.normal import Normal
from convcore.distributions.poisson import Poisson
from convcore.distributions.transformed_distribution import TransformedDistribution
from convcore.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from convcore.distributions.uniform import Uniform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Cauchy",
    "ComposeTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "ExponentialFamily",
    "Gamma",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "Poisson",
    "SigmoidTransform",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transforms",
]

_names.explain_names(__name__)
