"""Constructors that a checkpoint may call: of tensors, storages, containers; they check arguments.

PyTorch's files rebuild tensors by calls of functions of ``torch._utils``.  What stands for them
here takes nothing but what such a file holds: storages, sizes, flags.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.text import printable
from convcore._tensor import Tensor, dtypes, wrap
from convcore._tensor.device import device
from convcore._tensor.size import Size
from convcore._tensor.storage import (
    TypedStorage,
    UntypedStorage,
    layout,
    sparse_coo,
    sparse_csr,
    strided,
)
from convcore.nn.parameter import Parameter
from convcore.serialization import bfloat16
from convcore.serialization.archive import BFLOAT16, UNTYPED
from convcore.serialization.errors import CheckpointError
from convcore.serialization.unpickler import checked_keys, set_attributes

_FARTHEST = 2**60  # bytes, of steps between elements
_MOST_AXES = 64


class FileStorage(TypedStorage):
    """A storage of a file, or a part of one.

    Parameters
    ----------
    memory : ndarray
        A vector of elements.
    whole : (FileStorage, slice), optional
        What it is a part of, and which.
    bits : ndarray, optional
        Where ``memory`` is to be float32 of bfloat16, for want of ml_dtypes: that, as uint16.
    """

    __slots__ = ("_bits", "_resolved", "_whole", "kind")

    def __init__(
        self,
        memory: np.ndarray,
        whole: tuple[FileStorage, slice] | None = None,
        bits: np.ndarray | None = None,
    ) -> None:
        self.kind = memory.dtype  # as the file says
        self._bits = bits
        untyped = UntypedStorage(memory.view(np.uint8))
        super().__init__(wrap_storage=untyped, dtype=dtypes.of(memory.dtype))
        self._resolved: dict[tuple[bool, bool], np.ndarray] = {}
        self._whole = whole

    @classmethod
    def of(cls, memory: np.ndarray) -> FileStorage:
        """Return the storage of what a file has, whose elements NumPy may have no type for."""
        if memory.dtype == BFLOAT16:
            bits = memory.view(np.uint16)
            numbers = bfloat16.numbers(bits)
            if numbers is not None:
                made = cls(numbers)
            else:
                made = cls(np.zeros(memory.size, np.float32), bits=bits)
                made.settle()
        else:
            made = cls(memory.view(np.uint8) if memory.dtype == UNTYPED else memory)
        made.kind = memory.dtype
        return made

    def part(self, place: Any) -> FileStorage:
        """Return a part of it: its key, its first element, its number of elements."""
        _, first, size = _is(place, (tuple, list), "a part of a storage")
        part = _view(self._elements, first, (size,), (1,))
        return FileStorage(part, (self, slice(first, first + size)))

    def resolved(self, conj: bool, neg: bool) -> np.ndarray:
        """Return the elements, conjugated or negated: once for all tensors of the storage.

        PyTorch does that as late as it can, and writes such tensors as they are, with two bits.
        """
        if not (conj or neg):
            return self._elements
        if self._whole is not None:
            whole, place = self._whole
            return whole.resolved(conj, neg)[place]
        if (conj, neg) not in self._resolved:
            self._resolved[conj, neg] = np.empty_like(self._elements)
            self.settle()
        return self._resolved[conj, neg]

    def settle(self) -> None:
        """Compute what depends on the elements, again where they were read later."""
        if self._bits is not None:
            self._elements[...] = bfloat16.widened(self._bits)
        for (conj, neg), memory in self._resolved.items():
            values = np.conj(self._elements) if conj else self._elements
            memory[...] = np.negative(values) if neg else values


def _is(value: Any, kind: type | tuple[type, ...], name: str) -> Any:
    """Return a value of a kind, or raise CheckpointError."""
    if isinstance(value, kind):
        return value
    kinds = kind if isinstance(kind, tuple) else (kind,)
    expected = " or ".join(one.__name__ for one in kinds)
    raise CheckpointError(f"{name} is {expected}, got {type(value).__name__}")


def count(value: Any, name: str) -> int:
    """Return a number of elements, an int that is not negative, or raise CheckpointError."""
    if not isinstance(value, int) or value < 0 or value > _FARTHEST:
        is_short = isinstance(value, int) and value.bit_length() < 99
        shown = value if is_short else type(value).__name__
        raise CheckpointError(f"{name} is an int from 0 to 2**60, got {shown}")
    return value


def _counts(values: Any, name: str) -> tuple[int, ...]:
    found = tuple(count(value, name) for value in _is(values, (tuple, list), name))
    if len(found) > _MOST_AXES:
        raise CheckpointError(f"{name}: at most {_MOST_AXES} axes, got {len(found)}")
    return found


def _view(elements: np.ndarray, offset: Any, size: Any, stride: Any) -> np.ndarray:
    """Return elements of a vector, all of them within it.

    NumPy's own check of bounds wraps around at 2**63 bytes.
    """
    shape, steps, start = _counts(size, "size"), _counts(stride, "stride"), count(offset, "offset")
    if len(shape) != len(steps):
        raise CheckpointError(f"size has {len(shape)} axes, stride {len(steps)}")
    end = start
    if math.prod(shape):
        end += 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if end > elements.size or any(step * elements.itemsize > _FARTHEST for step in steps):
        raise CheckpointError(
            f"a tensor of size {list(shape)}, stride {list(steps)} and offset {start} reaches "
            f"outside its storage of {elements.size} elements"
        )
    strides = tuple(step * elements.itemsize for step in steps)
    return np.ndarray(shape, elements.dtype, elements, start * elements.itemsize, strides)


def _requiring_grad(tensor: Tensor, requires_grad: Any) -> Tensor:
    if _is(requires_grad, bool, "requires_grad"):
        tensor.requires_grad = True
    return tensor


def _tensor(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """Rebuild a tensor from its storage; the lazy bits in ``metadata`` are resolved."""
    bits = {} if metadata is None else _is(metadata, dict, "metadata")
    if set(checked_keys(bits)) - {"conj", "neg"}:
        raise CheckpointError("a tensor's metadata are 'conj' and 'neg', and there are others")
    memory = _is(storage, FileStorage, "storage")
    elements = memory.resolved(bits.get("conj") is True, bits.get("neg") is True)
    return _requiring_grad(wrap(_view(elements, offset, size, stride)), requires_grad)


def _tensor_of_version_0_3(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """Rebuild a tensor as PyTorch 0.3 and older write it, which had no gradients of tensors."""
    return _tensor(storage, offset, size, stride, False)


def _tensor_of_bytes(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """Rebuild a tensor of an untyped storage (PyTorch's format for newer dtypes)."""
    if not isinstance(dtype, dtypes.dtype) or dtype not in dtypes.ALL or metadata:
        raise CheckpointError(
            f"tensors of {printable(str(dtype), 99)} are not read: cast them in PyTorch first"
        )
    memory = _is(storage, FileStorage, "storage")
    if memory.kind != UNTYPED:
        raise CheckpointError("a tensor of bytes has a storage of another type")
    n_bytes = memory._elements.size // dtype.itemsize * dtype.itemsize
    elements = memory._elements[:n_bytes].view(dtype.numpy)
    return _requiring_grad(wrap(_view(elements, offset, size, stride)), requires_grad)


def _parameter(data: Any, requires_grad: Any, hooks: Any = None) -> Parameter:
    is_trained = _is(requires_grad, bool, "requires_grad")
    return Parameter(_is(data, Tensor, "a parameter's value"), is_trained)


def _parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Tensor:
    return set_attributes(_parameter(data, requires_grad), state, Tensor)


def _of_type(rebuild: Any, cls: Any, args: Any, state: Any) -> Tensor:
    if rebuild not in (_tensor, _tensor_of_bytes, _parameter):
        raise CheckpointError("a tensor with attributes is rebuilt as a tensor or a parameter")
    if not issubclass(_is(cls, type, "a tensor's class"), Tensor):
        raise CheckpointError(f"a tensor's class is a Tensor, got {cls.__name__}")
    tensor = rebuild(*_is(args, tuple, "args"))
    if type(tensor) is not cls:
        tensor = _requiring_grad(wrap(tensor._array, cls), tensor.requires_grad)
    return set_attributes(tensor, state, Tensor)


def _bytes(text: Any, encoding: Any) -> bytes:
    """Return bytes, which pickle protocol 2 writes as latin-1 text."""
    return _is(text, str, "text").encode("latin1")


def _no_bytes() -> bytes:
    """Return empty bytes, which early protocols write as a call."""
    return b""


def _bytearray(content: Any = b"", encoding: Any = None) -> bytearray:
    if isinstance(content, str):
        content = _bytes(content, encoding)
    return bytearray(_is(content, (bytes, list), "a bytearray's content"))


def _complex(real: Any, imag: Any) -> complex:
    return complex(_is(real, (float, int), "real"), _is(imag, (float, int), "imag"))


def _set(items: Any = ()) -> set:
    return set(checked_keys(_is(items, (list, tuple), "a set's items")))


def _ordered(pairs: Any = ()) -> OrderedDict:
    found = _is(pairs, (list, tuple), "an OrderedDict's items")
    checked_keys(_is(pair, (list, tuple), "an item")[0] for pair in found)
    return OrderedDict(found)


def _counter(counts: Any = None) -> Counter:
    return Counter({} if counts is None else _is(counts, dict, "a Counter's counts"))


def _size(sizes: Any = ()) -> Size:
    return Size(_is(sizes, (list, tuple), "a Size's sizes"))


def _layout(name: Any) -> layout:
    found = {str(one): one for one in (strided, sparse_coo, sparse_csr)}
    if name not in found:
        raise CheckpointError(f"a layout is one of {', '.join(found)}, got {name!r:.99}")
    return found[name]


def _device(*place: Any) -> device:
    """Return the CPU, whatever device a checkpoint names."""
    return device("cpu")


# PyTorch's names that convcore has elsewhere or not at all.
PYTORCHS: dict[tuple[str, str], Any] = {
    ("torch", "Size"): Size,
    ("torch", "Tensor"): Tensor,
    ("torch", "device"): _device,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _of_type,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter_with_state,
    ("torch._utils", "_rebuild_tensor"): _tensor_of_version_0_3,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_bytes,
    ("torch.serialization", "_get_layout"): _layout,
    ("torch.storage", "UntypedStorage"): UNTYPED,
}

# Python's names that a file of data may use.
PYTHONS: dict[tuple[str, str], Any] = {
    ("collections", "Counter"): Counter,
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "complex"): complex,
    ("builtins", "set"): set,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "bytes"): bytes,
    ("_codecs", "encode"): _bytes,
}

_checked: list[tuple[Any, Callable]] = [
    (Counter, _counter),
    (OrderedDict, _ordered),
    (complex, _complex),
    (set, _set),
    (bytearray, _bytearray),
    (bytes, _no_bytes),
    (Size, _size),
]
_own = (
    *(_bytes, _device, _layout, _of_type, _parameter, _parameter_with_state, _tensor),
    *(_tensor_of_bytes, _tensor_of_version_0_3),
)

# What is called in place of what a file names, by the id of that.
CONSTRUCTORS: dict[int, Callable] = {
    id(named): constructor
    for named, constructor in [*_checked, *((function, function) for function in _own)]
}
