"""Special functions under PyTorch's names: torch.special.

>>> import convcore
>>> convcore.special.expit(convcore.tensor(0.0))
tensor(0.5000)
"""

from convcore._errors import names as _names
from convcore.functions.angles import sinc
from convcore.functions.elementwise import erf, exp2, expm1, log1p
from convcore.functions.elementwise import sigmoid as expit
from convcore.functions.gamma import digamma
from convcore.functions.gamma import digamma as psi
from convcore.functions.gamma import lgamma as gammaln
from convcore.functions.reduce import logsumexp
from convcore.functions.rounding import round
from convcore.functions.softmax import log_softmax, softmax
from convcore.functions.special import erfc, erfinv, logit, xlogy

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
