"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor, wrap
from convcore._tensor.creation import empty

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


def _share(cls: type, data: Tensor | None, requires_grad: bool) -> Any:
    """Return a leaf tensor of class `cls` that shares the memory and version counter of `data`."""
    if data is None:
        data = empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__} data has to be a Tensor, but got {type(data).__name__}")
    tensor = wrap(data._array, cls)
    tensor._counter = data._counter
    if requires_grad:
        tensor.requires_grad = True
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
        return _share(cls, data, requires_grad)

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
        buffer = _share(cls, data, data is not None and data.requires_grad)
        buffer.persistent = persistent
        return buffer


_values: Any = vars(Tensor)["_array"]  # the slot that tensors with a shape have their values in


class UninitializedTensorMixin:
    """What tensors whose shape is not known yet have in common: nothing computes with them."""

    __slots__ = ()

    cls_to_become: type

    @property
    def _array(self) -> Any:
        """Raise ValueError: there are no values yet."""
        frame, name = sys._getframe(1), "an operation"
        while frame is not None and _computes(frame.f_globals.get("__name__", "")):
            name, frame = frame.f_code.co_name, frame.f_back
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {name}. This error happens when you "
            "are using a `LazyModule` or explicitly manipulating "
            f"`torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules call "
            "`forward` with a dummy batch to initialize the parameters before calling torch "
            "functions"
        )

    @_array.setter
    def _array(self, array: Any) -> None:
        _values.__set__(self, array)

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor a shape, and memory that is not set to anything.

        Parameters
        ----------
        shape : int or tuple of int
        device, dtype : optional
            By default the tensor's own.
        """
        made = empty(
            shape,
            device=self.device if device is None else device,
            dtype=self.dtype if dtype is None else dtype,
        )
        self._array = made._array
        self.__class__ = self.cls_to_become

    def _without_elements(self) -> Tensor:
        """Return an ordinary tensor of the dtype and on the device, which has no elements."""
        return wrap(_values.__get__(self))

    @property
    def dtype(self) -> Any:
        """The dtype that the elements will have."""
        return self._without_elements().dtype

    @property
    def is_meta(self) -> bool:
        """Whether the elements will be on the device 'meta'."""
        return self._without_elements().is_meta

    @property
    def device(self) -> Any:
        """Where the elements will be."""
        return self._without_elements().device

    @property
    def data(self) -> Any:
        """The tensor itself: there is nothing to share yet."""
        return self

    @data.setter
    def data(self: Any, value: Any) -> None:
        plain = value._without_elements() if is_lazy(value) else value
        Tensor.data.__set__(self, plain)  # type: ignore[attr-defined]

    @property
    def shape(self) -> Any:
        """Raise RuntimeError: the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def detach(self: Any) -> Any:
        """Return the tensor itself: there is nothing to share yet."""
        return self

    def share_memory_(self) -> Any:
        """Raise RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __deepcopy__(self: Any, memo: dict) -> Any:
        """Return another tensor without a shape."""
        if id(self) not in memo:
            make, args, attributes = self.__reduce_ex__(4)
            memo[id(self)] = copied = make(*args)
            copied.__dict__.update(copy.deepcopy(attributes, memo))
        return memo[id(self)]

    def __reduce_ex__(self: Any, protocol: Any) -> tuple:
        return type(self), (self._requires_grad, self.device, self.dtype), self.__dict__

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    _repr_html_: Any = None  # notebooks show the text
    __format__ = object.__format__


def _computes(module: str) -> bool:
    """Return whether a module is one of convcore's whose function was called by another's."""
    return module.startswith("convcore.") and not module.startswith("convcore.nn.modules.")


def _known(name: str) -> Callable:
    """Return a method that needs no shape, as `Module.to` calls it."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(self._without_elements(), name)(*args, **kwargs)
        if not isinstance(found, Tensor):
            return found
        tensor = wrap(found._array, type(self))
        tensor._requires_grad = self._requires_grad
        tensor.__dict__.update(self.__dict__)
        return tensor

    method.__name__ = name
    method.__doc__ = f"Call `Tensor.{name}`, which needs no shape."
    return method


for _name in (
    *("bfloat16", "cpu", "double", "float", "half", "is_complex", "is_floating_point", "to"),
    "type",
):
    setattr(UninitializedTensorMixin, _name, _known(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; see `materialize`.

    Functions and methods that need its values raise ValueError.
    """

    __slots__ = ()

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """Make a parameter without a shape."""
        return _share(cls, empty(0, device=device, dtype=dtype), requires_grad)


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
        buffer = _share(cls, empty(0, device=device, dtype=dtype), requires_grad)
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
