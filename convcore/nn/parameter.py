"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._dtype import get_default_dtype
from convcore._tensor import Tensor, wrap

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


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
        if not isinstance(requires_grad, bool):
            kind = type(requires_grad).__name__
            raise TypeError(f"Parameter(): argument 'requires_grad' must be bool, not {kind}")
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


class UninitializedTensorMixin:
    """What tensors whose shape is not known yet have in common."""

    __slots__ = ()

    cls_to_become: type

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor a shape, and memory that is not set to anything.

        Parameters
        ----------
        shape : int or tuple of int
        device, dtype : optional
            By default the tensor's own.
        """
        kind = self.dtype if dtype is None else dtype
        self._array = np.empty(shape if isinstance(shape, int) else tuple(shape), kind.numpy)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Raise RuntimeError: the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def size(self, *args: Any) -> Any:
        """Raise ValueError: the shape is not known yet."""
        raise ValueError(
            f"Attempted to use an uninitialized parameter: this {type(self).__name__} has no "
            "shape yet. This error happens when you are using a `LazyModule`. Call `forward` with "
            "a dummy batch to initialize the parameters before"
        )

    numel = dim = nelement = size

    def detach(self: Any) -> Any:
        """Return the tensor itself: there is nothing to share yet."""
        return self

    def share_memory_(self) -> Any:
        """Raise RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; see `materialize`."""

    __slots__ = ()

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """Make a parameter without a shape."""
        kind = get_default_dtype() if dtype is None else dtype
        return Parameter.__new__(cls, wrap(np.empty(0, kind.numpy)), requires_grad)

    def __deepcopy__(self, memo: dict) -> Any:
        """Return another parameter without a shape."""
        if id(self) not in memo:
            memo[id(self)] = type(self)(self._requires_grad, dtype=self.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; see `UninitializedTensorMixin.materialize`."""

    __slots__ = ()

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        """Make a buffer without a shape."""
        kind = get_default_dtype() if dtype is None else dtype
        buffer: Any = wrap(np.empty(0, kind.numpy), cls)
        buffer.persistent = persistent
        return buffer


def is_lazy(param: Any) -> bool:
    """Return whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


def refuse_lazy(param: Any, kind: str, action: str) -> None:
    """Raise ValueError if a parameter that is to be normalized has no shape yet."""
    if is_lazy(param):
        raise ValueError(
            f"The module passed to `{kind}` can't have uninitialized parameters. Make sure to run "
            f"the dummy forward before applying {action}"
        )
