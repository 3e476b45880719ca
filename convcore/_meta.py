"""Tensors on the meta device: a shape and a dtype, without values and without memory for them.

Modules are built there to be filled later: by `Module.to_empty`, or by `load_state_dict` with
``assign=True``.  What is written is forgotten, and computing with them is an error.  So operands
are copied by `np.copyto`, which asks them: assigned to a subscript they would be zeros.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np


class MetaArray(np.ndarray):
    """An array of which all elements are one and the same, and mean nothing."""

    def __setitem__(self, index: Any, values: Any) -> None:
        """Forget the values."""

    def fill(self, value: Any) -> None:
        """Forget the value."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Forget what is written in place; anything else is an error."""
        if any(isinstance(out, MetaArray) for out in kwargs.get("out", ())):
            return self
        return self.refuse()

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: there are no values to compute with; kernels call it."""
        raise NotImplementedError(
            "tensors on the device 'meta' have no values to compute with; "
            "Module.to_empty(device='cpu') gives a module memory"
        )

    copy = astype = __array_function__ = refuse


def meta(shape: tuple[int, ...], dtype: np.dtype) -> MetaArray:
    """Return an array of a shape and dtype that needs no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape).view(MetaArray)
