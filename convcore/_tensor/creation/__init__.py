"""Tensor creation: from data, from a size, from a range, and like another tensor.

data.py has tensor(), from_numpy and the like; sizes.py zeros, ones, full, empty and eye; likes.py
their ``_like`` forms; ranges.py arange, linspace and logspace; legacy.py FloatTensor and the like;
arguments.py the checks of arguments, memory.py new arrays in a memory format, out.py ``out=``.
Every function makes an ndarray, and `wrap` makes that a leaf of the graph.  The one ``layout`` is
torch.strided, and ``pin_memory`` changes nothing: there is no device to copy to.
"""

from convcore._errors.calls import hint_keywords
from convcore._tensor.creation.data import (
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    frombuffer,
    tensor,
)
from convcore._tensor.creation.legacy import (
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
from convcore._tensor.creation.likes import empty_like, full_like, ones_like, zeros_like
from convcore._tensor.creation.ranges import arange, linspace, logspace
from convcore._tensor.creation.sizes import empty, eye, full, ones, scalar_tensor, zeros

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
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
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

hint_keywords(__name__)
