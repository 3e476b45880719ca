"""Differentiable functions on tensors, a family a file.

Each computes on arrays and records itself; its backward stands beside it and is written in these
same functions, so that it can be differentiated again.  _bind.py hangs them on Tensor.
"""

from typing import TYPE_CHECKING

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor
from convcore.functions import _bind
from convcore.functions._support.out import NAMES, with_out
from convcore.functions.drawing.dropout import *
from convcore.functions.drawing.sampling import *
from convcore.functions.elementwise.activation import *
from convcore.functions.elementwise.angles import *
from convcore.functions.elementwise.arithmetic import *
from convcore.functions.elementwise.compare import *
from convcore.functions.elementwise.complex_parts import *
from convcore.functions.elementwise.elementwise import *
from convcore.functions.elementwise.floats import *
from convcore.functions.elementwise.gamma import *
from convcore.functions.elementwise.logic import *
from convcore.functions.elementwise.piecewise import *
from convcore.functions.elementwise.rounding import *
from convcore.functions.elementwise.special import *
from convcore.functions.elementwise.ternary import *
from convcore.functions.indexing.binning import *
from convcore.functions.indexing.index_along import *
from convcore.functions.indexing.indexing import *
from convcore.functions.indexing.masked import *
from convcore.functions.indexing.order import *
from convcore.functions.indexing.ranks import *
from convcore.functions.indexing.scatter import *
from convcore.functions.indexing.scatter_reduce import *
from convcore.functions.losses.cross_entropy import *
from convcore.functions.losses.loss import *
from convcore.functions.normalization.layer_norm import layer_norm
from convcore.functions.normalization.normalization import group_norm
from convcore.functions.normalization.softmax import *
from convcore.functions.products.einsum import *
from convcore.functions.products.matmul import *
from convcore.functions.products.matrices import *
from convcore.functions.products.products import *
from convcore.functions.reductions.distance import *
from convcore.functions.reductions.integration import *
from convcore.functions.reductions.numerics import *
from convcore.functions.reductions.reduce import *
from convcore.functions.reductions.variance import *
from convcore.functions.shapes.broadcast import *
from convcore.functions.shapes.convert import *
from convcore.functions.shapes.joining import *
from convcore.functions.shapes.memory import *
from convcore.functions.shapes.rearrange import *
from convcore.functions.shapes.shape import *
from convcore.functions.shapes.slicing import *
from convcore.functions.shapes.splitting import *
from convcore.functions.shapes.strided import *
from convcore.functions.windows.conv import *
from convcore.functions.windows.patches import channel_shuffle, pixel_shuffle, pixel_unshuffle
from convcore.functions.windows.pooling import (
    adaptive_avg_pool1d,
    avg_pool1d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)

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
