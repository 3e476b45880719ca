"""Differentiable functions on tensors, a family a file.

Each computes on arrays and records itself; its backward stands beside it and is written in these
same functions, so that it can be differentiated again.  _bind.py hangs them on Tensor.
"""

from typing import TYPE_CHECKING

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor
from convcore.functions import _bind
from convcore.functions._support.out import NAMES, with_out
from convcore.functions.activation import *
from convcore.functions.angles import *
from convcore.functions.arithmetic import *
from convcore.functions.binning import *
from convcore.functions.broadcast import *
from convcore.functions.compare import *
from convcore.functions.complex_parts import *
from convcore.functions.conv import *
from convcore.functions.convert import *
from convcore.functions.cross_entropy import *
from convcore.functions.distance import *
from convcore.functions.dropout import *
from convcore.functions.einsum import *
from convcore.functions.elementwise import *
from convcore.functions.floats import *
from convcore.functions.gamma import *
from convcore.functions.index_along import *
from convcore.functions.indexing import *
from convcore.functions.integration import *
from convcore.functions.joining import *
from convcore.functions.layer_norm import layer_norm
from convcore.functions.logic import *
from convcore.functions.loss import *
from convcore.functions.masked import *
from convcore.functions.matmul import *
from convcore.functions.matrices import *
from convcore.functions.memory import *
from convcore.functions.normalization import group_norm
from convcore.functions.numerics import *
from convcore.functions.order import *
from convcore.functions.patches import channel_shuffle, pixel_shuffle, pixel_unshuffle
from convcore.functions.piecewise import *
from convcore.functions.pooling import (
    adaptive_avg_pool1d,
    avg_pool1d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from convcore.functions.products import *
from convcore.functions.ranks import *
from convcore.functions.rearrange import *
from convcore.functions.reduce import *
from convcore.functions.rounding import *
from convcore.functions.sampling import *
from convcore.functions.scatter import *
from convcore.functions.scatter_reduce import *
from convcore.functions.shape import *
from convcore.functions.slicing import *
from convcore.functions.softmax import *
from convcore.functions.special import *
from convcore.functions.splitting import *
from convcore.functions.strided import *
from convcore.functions.ternary import *
from convcore.functions.variance import *

# Methods that are functions too.
_IN_PLACE = """
    abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_
    atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ erf_
    exp2_ exp_ expm1_ fix_ floor_ frac_ index_put_ log10_ log1p_ log2_ log_
    nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ round_ rsqrt_ sigmoid_ sin_ sinc_
    sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_
"""

if not TYPE_CHECKING:  # type checkers understand the imports above, and no computed list
    _METHODS = [*_IN_PLACE.split(), "detach"]
    globals().update((name, with_out(name, globals()[name])) for name in NAMES)
    globals().update((name, getattr(Tensor, name)) for name in _METHODS)
    detach = names_arguments(Tensor.detach)
    __all__ = [name for family in _bind.FAMILIES for name in family.__all__]
    __all__ += _METHODS
    # Functions of nn.functional that PyTorch has here too, with the same arguments.
    __all__ += ["adaptive_avg_pool1d", "avg_pool1d", "max_pool1d", "max_pool2d", "max_pool3d"]
    __all__ += ["channel_shuffle", "group_norm", "layer_norm", "pixel_shuffle", "pixel_unshuffle"]
