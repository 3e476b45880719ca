"""Special functions under PyTorch's names: torch.special.

>>> import convcore
>>> convcore.special.expit(convcore.tensor(0.0))
tensor(0.5000)
"""

from convcore._errors import names as _names
from convcore.functions.elementwise.angles import sinc
from convcore.functions.elementwise.elementwise import erf, exp2, expm1, log1p
from convcore.functions.elementwise.elementwise import sigmoid as expit
from convcore.functions.elementwise.gamma import digamma
from convcore.functions.elementwise.gamma import digamma as psi
from convcore.functions.elementwise.gamma import lgamma as gammaln
from convcore.functions.elementwise.rounding import round
from convcore.functions.elementwise.special import erfc, erfinv, logit, xlogy
from convcore.functions.normalization.softmax import log_softmax, softmax
from convcore.functions.reductions.reduce import logsumexp

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]

_names.explain_names(__name__)
