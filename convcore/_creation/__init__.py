"""Making tensors: from Python numbers, from arrays, and from a size and a rule.

Everything here ends in an ndarray that `wrap` makes a leaf of the graph.
"""

from convcore._creation.data import (
    as_tensor,
    asarray,
    complex,
    from_dlpack,
    from_numpy,
    tensor,
)
from convcore._creation.legacy import (
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from convcore._creation.likes import empty_like, full_like, ones_like, zeros_like
from convcore._creation.ranges import arange, linspace, logspace
from convcore._creation.sizes import empty, eye, full, ones, scalar_tensor, zeros

__all__ = [
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "arange",
    "as_tensor",
    "asarray",
    "complex",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tensor",
    "zeros",
    "zeros_like",
]
