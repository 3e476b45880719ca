"""NumPy's scalars in checkpoints, such as learning rates and losses: read as data, without code.

A pickle has them as ``scalar(dtype, bytes)``, where the dtype is made of a name, and its byte order
set as a state.  Both are data here: numbers of the kinds that tensors have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.serialization import safe
from convcore.serialization.errors import CheckpointError
from convcore.serialization.unpickler import Stateful

_NAMES = {np.dtype(code).str[1:] for code in "?bBhHiIlLqQefdFD"}


class FileDtype(Stateful):
    """A dtype as a file says it: a name, and a byte order that comes as a state."""

    def __init__(self, name: Any, align: Any = False, copy: Any = True) -> None:
        if type(name) is not str or name.lstrip("<>=|") not in _NAMES:
            safe.found("numpy._core.multiarray", "scalar")  # which says what is read
        self.dtype = np.dtype(name)

    def __setstate__(self, state: Any) -> None:
        if type(state) is not tuple or len(state) < 2 or state[1] not in ("<", ">", "|", "="):
            raise CheckpointError("the dtype of a NumPy scalar is damaged")
        self.dtype = self.dtype.newbyteorder(state[1])


def _scalar(dtype: Any, content: Any = b"") -> Any:
    if isinstance(dtype, np.dtype) and dtype.str[1:] in _NAMES:  # where the user allows NumPy's
        dtype = FileDtype(dtype.str)
    if not (isinstance(dtype, FileDtype) and type(content) is bytes):
        raise CheckpointError("a NumPy scalar is made of a dtype and bytes")
    if len(content) != dtype.dtype.itemsize:
        raise CheckpointError(
            f"a NumPy scalar of {dtype.dtype} has {dtype.dtype.itemsize} bytes, got {len(content)}"
        )
    return np.frombuffer(content, dtype.dtype).astype(dtype.dtype.newbyteorder("="))[0]


# By module, for NumPy 1 has another: the names, and what they lead to.
_SCALAR = {"scalar": _scalar}
NAMES: dict[str, dict[str, Any]] = {
    "numpy": {"dtype": FileDtype},
    "numpy.core.multiarray": _SCALAR,
    "numpy._core.multiarray": _SCALAR,
}
CONSTRUCTORS: dict[int, Any] = {id(FileDtype): FileDtype, id(_scalar): _scalar}
