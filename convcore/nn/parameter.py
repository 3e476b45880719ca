"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._dtype import get_default_dtype
from convcore._tensor import Tensor, wrap

__all__ = ["Buffer", "Parameter"]


def _share(cls: type, data: Tensor | None) -> Any:
    """Return a leaf tensor of class `cls` that shares the memory and version counter of `data`."""
    if data is None:
        return wrap(np.empty(0, get_default_dtype().numpy), cls)
    if not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__} data has to be a Tensor, but got {type(data).__name__}")
    tensor = wrap(data._array, cls)
    tensor._counter = data._counter
    return tensor


class Parameter(Tensor):
    """A tensor to be trained: assigned to a Module, it is one of its `parameters()`.

    Parameters
    ----------
    data : Tensor, optional
        The value. The parameter is a new leaf tensor that shares its memory.
    requires_grad : bool
        Whether gradients are computed for it. `no_grad` does not change the default.

    Raises
    ------
    RuntimeError
        ``requires_grad`` is true, but the dtype is neither floating-point nor complex.

    Examples
    --------
    >>> import convcore
    >>> convcore.nn.Parameter(convcore.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """Make a leaf tensor that shares the memory of ``data``."""
        parameter = _share(cls, data)
        if requires_grad:
            parameter.requires_grad = True
        return parameter

    def __deepcopy__(self, memo: dict) -> Parameter:
        """Copy the value, without its gradient, hooks and user-defined attributes."""
        if id(self) not in memo:
            copied = wrap(self._array.copy(order="K"), type(self))
            copied._requires_grad = self._requires_grad
            memo[id(self)] = copied
        return memo[id(self)]

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that belongs to a Module's state but is not trained, such as a running mean.

    Assigned as an attribute, it is one of the module's `buffers()`.

    Parameters
    ----------
    data : Tensor, optional
        The value. The buffer shares its memory.
    persistent : bool
        Whether the buffer is in the module's `state_dict`.
    """

    __slots__ = ()

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        """Make a leaf tensor that shares the memory of ``data``."""
        buffer = _share(cls, data)
        buffer.persistent = persistent
        if data is not None and data.requires_grad:
            buffer.requires_grad = True
        return buffer
