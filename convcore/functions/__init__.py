"""Differentiable functions on tensors, a family a file.

Each computes on arrays and records itself; its backward stands beside it and is written in these
same functions, so that it can be differentiated again.  _bind.py hangs them on Tensor.
"""

from typing import TYPE_CHECKING

from convcore.functions import _bind
from convcore.functions.activation import *
from convcore.functions.arithmetic import *
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
from convcore.functions.gamma import *
from convcore.functions.index_along import *
from convcore.functions.indexing import *
from convcore.functions.joining import *
from convcore.functions.logic import *
from convcore.functions.loss import *
from convcore.functions.masked import *
from convcore.functions.matmul import *
from convcore.functions.matrices import *
from convcore.functions.numerics import *
from convcore.functions.order import *
from convcore.functions.piecewise import *
from convcore.functions.rearrange import *
from convcore.functions.reduce import *
from convcore.functions.rounding import *
from convcore.functions.sampling import *
from convcore.functions.scatter import *
from convcore.functions.shape import *
from convcore.functions.slicing import *
from convcore.functions.softmax import *
from convcore.functions.special import *
from convcore.functions.splitting import *
from convcore.functions.strided import *
from convcore.functions.variance import *

if not TYPE_CHECKING:  # type checkers understand the imports above, and no computed list
    __all__ = [name for family in _bind.FAMILIES for name in family.__all__]
