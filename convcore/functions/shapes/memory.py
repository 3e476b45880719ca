"""A tensor's memory: storage, set_, resize_, pinning; functions of each element; layouts.

What only other devices and layouts have is asked for here and answered: False, or an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, channels_last, channels_last_3d, preserve_format, wrap
from convcore._tensor.creation.arguments import checked_number, number_as
from convcore._tensor.creation.memory import check_format
from convcore._tensor.dtype_names import C_NAMES
from convcore._tensor.dtypes import of
from convcore._tensor.meta import meta
from convcore._tensor.settings import unset
from convcore._tensor.storage import TypedStorage, UntypedStorage, as_tensor, strided
from convcore.autograd.views import check_writable, view
from convcore.engine.runtime.layout import memory_order
from convcore.engine.runtime.storages import memory_of
from convcore.functions._support.arguments import ints
from convcore.functions.indexing.indexing import applied
from convcore.functions.shapes.splitting import split
from convcore.functions.shapes.strided import as_strided

__all__ = ["split_with_sizes"]


# Storages


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the bytes that the tensor and its views share."""
    return UntypedStorage(memory_of(self._array))


def storage(self: Tensor) -> TypedStorage:
    """Return the memory that the tensor and its views share, as elements of its dtype."""
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=of(self._array.dtype))


def set_(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Give the tensor the memory of another tensor or storage, and shape and strides in it.

    Parameters
    ----------
    source : Tensor, storage, or None for no memory
    storage_offset : int
    size, stride : ints, or None for those of the tensor, or for all of the storage
    """
    if source is None:
        source = wrap(np.empty(0, self._array.dtype))
    if isinstance(source, Tensor):
        if source._array.dtype != self._array.dtype:
            theirs, ours = (C_NAMES[x._array.dtype.name] for x in (source, self))
            raise RuntimeError(f"Could not set tensor of type {theirs} to a tensor of type {ours}")
        found = source
    else:
        found = as_tensor(source, self._array.dtype)
    if size is not None:
        sizes = ints("set_", "size", size)
        found = as_strided(found.detach(), sizes, stride or _steps(sizes), storage_offset)
    _exchange(self, found._array)
    return self


def _steps(sizes: tuple[int, ...]) -> list[int]:
    return [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]


def _exchange(x: Tensor, array: np.ndarray) -> None:
    """Give a tensor another array, shape and all."""
    if x.requires_grad and not x.is_leaf:
        raise RuntimeError("set_ and resize_ of a tensor with history: detach() it first")
    if x.requires_grad:
        check_writable(x)
    x._array = array
    x._counter[0] += 1
    if x._leaf is not None:
        x._leaf.forget_accumulator()


def resize_(self: Tensor, size: Any, *more: int, memory_format: Any = None) -> Tensor:
    """Give the tensor another shape, in place; what does not fit its memory gets new memory.

    Elements stay in the order of the memory; new ones are not initialised.

    Raises
    ------
    RuntimeError
        The tensor requires grad, or has another number of axes than the format.
    """
    shape = ints("resize_", "size", size, more)
    if memory_format is not None:
        check_format(memory_format)
        if memory_format is preserve_format:
            raise RuntimeError("Unsupported memory format: preserve_format")
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    array = self._array
    count = math.prod(shape)
    if math.prod([max(size, 1) for size in shape]) * array.itemsize >= 2**63:
        what = "Storage size" if count else "Stride"
        raise RuntimeError(f"{what} calculation overflowed with sizes={list(shape)}")
    if self.is_meta:
        _exchange(self, meta(shape, array.dtype))
        return self
    memory = memory_of(array)[self.data_ptr() - untyped_storage(self).data_ptr() :]
    held = memory[: memory.size // array.itemsize * array.itemsize].view(array.dtype)
    if array.shape == shape and memory_format is None:
        return self
    if count > held.size:
        grown = unset(np.empty(count, array.dtype))
        grown[: held.size] = held
        held = grown
    if memory_format in (channels_last, channels_last_3d):
        rank = 4 if memory_format is channels_last else 5
        if len(shape) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {memory_format} format")
        lines = held[:count].reshape(shape[0], *shape[2:], shape[1])
        _exchange(self, lines.transpose(memory_order(rank - 2)))
    else:
        _exchange(self, held[:count].reshape(shape))
    return self


@names_arguments
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give the tensor the shape of another, in place: see ``resize_``."""
    if memory_format is preserve_format:
        memory_format = the_template._suggested_format()
    return resize_(self, the_template._array.shape, memory_format=memory_format)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Return the tensor itself: only transfers to an accelerator are helped by pinned memory."""
    return self


def _false(self: Tensor, *args: Any) -> bool:
    """Return False: tensors are dense and on the CPU."""
    return False


def as_subclass(self: Tensor, cls: type) -> Tensor:
    """Return the tensor, the same memory and history, as one of a subclass of Tensor."""
    _check_class(cls)
    out = wrap(self._array, cls)
    aliased = view(self, self._array, "AliasBackward0", lambda needs, grad: grad)
    for name in ("_counter", "_grad_fn", "_output_nr", "_requires_grad", "_view"):
        setattr(out, name, getattr(aliased, name))
    return out


@names_arguments
def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Tensor:
    """Return a leaf of a subclass of Tensor that shares the memory and the version of ``data``.

    PyTorch's packages build tensors of their own classes with it.

    Raises
    ------
    TypeError
        ``cls`` is no subclass of Tensor, or ``data`` no tensor.
    RuntimeError
        ``require_grad`` is true, and the dtype neither floating-point nor complex.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    _check_class(cls)
    made = wrap(data._array, cls)
    made._counter = data._counter
    if require_grad:
        made.requires_grad = True
    return made


def _check_class(cls: Any) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )


# Copies of views, under PyTorch's other names


@names_arguments
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along an axis into views of the given sizes."""
    return split(input, ints("split_with_sizes", "split_sizes", split_sizes), dim)


# Element by element, in Python


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal to a number, in place; the axes must be equal if there are several.

    Parameters
    ----------
    fill_value : number
    wrap : bool
        Of a tall matrix: whether the diagonal starts again after N columns.
    """
    shape = self._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")

    return _diagonal_filled(self, fill_value, wrap, in_place=True)


def _diagonal_filled(x: Tensor, value: Any, again: bool, *, in_place: bool) -> Tensor:
    if not isinstance(value, Tensor):
        value = number_as(checked_number("fill_diagonal_", value), x._array.dtype)

    def change(array: np.ndarray) -> None:
        np.fill_diagonal(array, value, again)

    def backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
        return _diagonal_filled(grad, 0, again, in_place=False)

    return applied(x, in_place, change, "FillDiagonalBackward0", (x,), backward)


# Other layouts


def _layout(self: Tensor) -> Any:
    """Return how the elements lie in memory: strided, always."""
    return strided


def to_dense(self: Tensor, dtype: Any = None) -> Tensor:
    """Return the tensor itself, which is dense, or in another dtype."""
    return self if dtype is None else self.to(dtype)


def _refused(name: str, what: str) -> Callable:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        raise NotImplementedError(f"Tensor.{name}() needs {what} tensors, which convcore has not")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Raise NotImplementedError: there are no {what} tensors."
    return method


@names_arguments
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Do what ``Tensor(...)`` does, with this tensor's dtype and device."""
    return Tensor(*args, **kwargs).to(self.device, of(self._array.dtype))


_FALSE = (
    *("is_distributed", "is_pinned", "is_coalesced"),
    *("is_ipu", "is_mkldnn", "is_mps", "is_mtia", "is_nested", "is_quantized"),
    *("is_sparse_csr", "is_vulkan", "is_xla", "is_xpu"),
)
_METHODS_OF_FALSE = ("is_coalesced", "is_distributed", "is_pinned")
_SPARSE = (
    *("coalesce", "indices", "values", "sparse_mask", "to_sparse", "to_sparse_coo"),
    *("to_sparse_bsr", "to_sparse_bsc", "to_sparse_csc", "to_sparse_csr"),
)

METHODS: dict[str, Any] = {
    "_make_subclass": staticmethod(_make_subclass),
    "as_subclass": as_subclass,
    "fill_diagonal_": fill_diagonal_,
    "layout": property(_layout),
    "new": new,
    "pin_memory": pin_memory,
    "resize_": resize_,
    "resize_as_": resize_as_,
    "set_": set_,
    "storage": storage,
    "to_dense": to_dense,
    "to_mkldnn": _refused("to_mkldnn", "MKL-DNN"),
    "untyped_storage": untyped_storage,
    **{name: _false if name in _METHODS_OF_FALSE else property(_false) for name in _FALSE},
    **{name: _refused(name, "sparse") for name in _SPARSE},
}
