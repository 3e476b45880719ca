"""Probability distributions under PyTorch's names: torch.distributions.

Samples are those that PyTorch draws after the same `manual_seed`; `rsample` has gradients for the
parameters, of gamma, beta and Dirichlet numbers implicit ones (Figurnov et al., 2018).

>>> import convcore
>>> convcore.distributions.Bernoulli(0.25).entropy()
tensor(0.5623)
"""

from convcore import _misnamed
from convcore.distributions import constraints, kl_of_two_kinds, transforms  # noqa: F401
from convcore.distributions.bernoulli import Bernoulli
from convcore.distributions.beta import Beta
from convcore.distributions.binomial import Binomial
from convcore.distributions.categorical import Categorical
from convcore.distributions.cauchy import Cauchy
from convcore.distributions.chi2 import Chi2
from convcore.distributions.dirichlet import Dirichlet
from convcore.distributions.distribution import Distribution
from convcore.distributions.exp_family import ExponentialFamily
from convcore.distributions.exponential import Exponential
from convcore.distributions.gamma import Gamma
from convcore.distributions.geometric import Geometric
from convcore.distributions.gumbel import Gumbel
from convcore.distributions.half_cauchy import HalfCauchy
from convcore.distributions.half_normal import HalfNormal
from convcore.distributions.independent import Independent
from convcore.distributions.kl import kl_divergence, register_kl
from convcore.distributions.laplace import Laplace
from convcore.distributions.lkj_cholesky import LKJCholesky
from convcore.distributions.log_normal import LogNormal
from convcore.distributions.logistic_normal import LogisticNormal
from convcore.distributions.mixture_same_family import MixtureSameFamily
from convcore.distributions.multinomial import Multinomial
from convcore.distributions.multivariate_normal import MultivariateNormal
from convcore.distributions.negative_binomial import NegativeBinomial
from convcore.distributions.normal import Normal
from convcore.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from convcore.distributions.poisson import Poisson
from convcore.distributions.relaxed_bernoulli import RelaxedBernoulli
from convcore.distributions.relaxed_categorical import RelaxedOneHotCategorical
from convcore.distributions.studentT import StudentT
from convcore.distributions.transformed_distribution import TransformedDistribution
from convcore.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StickBreakingTransform,
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
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Poisson",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StickBreakingTransform",
    "StudentT",
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

_misnamed.explain_names(__name__)
