"""Special functions under PyTorch's names: torch.special.

>>> import convcore
>>> convcore.special.expit(convcore.tensor(0.0))
tensor(0.5000)
"""

from convcore._errors import names as _names
from convcore.functions.angles import sinc
from convcore.functions.elementwise import erf, exp2, expm1, log1p
from convcore.functions.elementwise import sigmoid as expit
from convcore.functions.gamma import digamma, polygamma
from convcore.functions.gamma import digamma as psi
from convcore.functions.gamma import igamma as gammainc
from convcore.functions.gamma import igammac as gammaincc
from convcore.functions.gamma import lgamma as gammaln
from convcore.functions.gamma import mvlgamma as multigammaln
from convcore.functions.reduce import logsumexp
from convcore.functions.rounding import round
from convcore.functions.softmax import log_softmax, softmax
from convcore.functions.special import erfc, erfinv, logit, xlogy
from convcore.functions.special_room import (
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    entr,
    erfcx,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    ndtr,
    ndtri,
    xlog1py,
    zeta,
)

__all__ = [
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]

_names.explain_names(__name__)
