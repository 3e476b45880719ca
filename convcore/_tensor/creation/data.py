"""Tensors from data: numbers, nested sequences, NumPy arrays, DLPack objects."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor, dtypes, wrap
from convcore._tensor.creation.arguments import DtypeLike, leaf
from convcore._tensor.device import check_device, is_meta
from convcore._tensor.meta import MetaArray, meta
from convcore._tensor.storage import UntypedStorage, is_storage
from convcore._tensor.storage import as_tensor as elements


def tensor(
    data: Any,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Copy a number, nested sequences of numbers, an array or a Tensor into a new tensor.

    Parameters
    ----------
    data : what to copy.  Arrays, Tensors and NumPy's numbers keep their dtype; Python's ints become
        int64, bools bool, floats `get_default_dtype()`, complex numbers its complex counterpart.
    dtype : the dtype of the result, instead of that.

    Raises
    ------
    ValueError
        The sequences are ragged, or an int is too large for 64 bits.
    RuntimeError
        A number does not fit into ``dtype``, or ``data`` holds something else than numbers.

    Examples
    --------
    >>> tensor([[1, 2.5], [3, 4]])
    tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]])
    """
    check_device(device)
    return leaf(copied(data, dtype), requires_grad, device)


def as_tensor(data: Any, dtype: DtypeLike = None, device: Any = None) -> Tensor:
    """Return ``data`` as a tensor, without a copy if it is a Tensor or array of that dtype."""
    check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device, dtype)
    if isinstance(data, np.ndarray):
        array = _checked_array(data)
        array = array if dtype is None else dtypes.cast(array, dtypes.as_numpy(dtype))
        return leaf(array, device=device)
    return leaf(copied(data, dtype), device=device)


def asarray(
    obj: Any,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Return ``obj`` as a tensor, sharing its memory if possible.

    Parameters
    ----------
    obj : Tensor, ndarray, DLPack capsule, numbers, or object with the buffer protocol, whose bytes
        are read as numbers of ``dtype``.
    copy : True always copies, False never does; None copies if necessary.
    requires_grad : that of ``obj`` by default; False detaches from its graph.

    Raises
    ------
    ValueError
        ``copy`` is False, and ``obj`` is a sequence or has another dtype.
    """
    check_device(device)
    found = _shared(obj, dtype)
    if found is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return leaf(copied(obj, dtype), bool(requires_grad), device)
    if isinstance(obj, np.generic) and copy is False:
        raise RuntimeError(
            "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
        )
    if device is not None and is_meta(device) is not found.is_meta:
        if copy is False:
            raise ValueError(f"can't alias tensor on '{found.device}' to the device '{device}'.")
        found = found.to(device)
    target = found.dtype.numpy if dtype is None else dtypes.as_numpy(dtype)
    if target != found.dtype.numpy:
        if copy is False:
            raise ValueError(
                f"can't alias tensor with dtype '{found.dtype}' into dtype '{dtypes.of(target)}'."
            )
        found = found.to(dtypes.of(target))
    elif copy:
        found = found.clone()
    if requires_grad is None or requires_grad == found.requires_grad:
        return found
    return leaf(found._array, requires_grad)


def _shared(obj: Any, dtype: DtypeLike) -> Tensor | None:
    """Return a tensor that shares the memory of an object; None of numbers and sequences."""
    if isinstance(obj, Tensor):
        return obj
    if type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    if isinstance(obj, np.generic) or hasattr(obj, "__array_interface__"):
        return wrap(_checked_array(np.asarray(obj)))  # storages and other packages' arrays, too
    try:
        memory = memoryview(obj)
    except TypeError:
        return None
    return wrap(np.frombuffer(memory, dtypes.as_numpy(dtype)))


def from_numpy(array: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of ``array``.

    Negative strides are allowed, unlike in PyTorch.

    Raises
    ------
    TypeError
        It is not an ndarray, or has a dtype that no tensor has.
    ValueError
        Its byte order is not the machine's.
    """
    if not isinstance(array, np.ndarray):
        kind = type(array)
        name = (
            kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        )
        raise hinted(TypeError(f"expected np.ndarray (got {name})"), hints.not_a_tensor(array))
    if not array.flags.writeable:
        _warn_read_only("NumPy array")
    return wrap(_checked_array(array))


class _Capsule:
    """The owner of a DLPack capsule, as NumPy asks for it, and of its memory as a writable array.

    A capsule of DLPack's first version does not say whether its memory may be written to: PyTorch
    takes that for yes, and NumPy for no.
    """

    def __init__(self, capsule: Any):
        self.__dlpack__ = lambda **options: capsule
        self._array = np.from_dlpack(self)
        found = self._array.__array_interface__
        self.__array_interface__ = {**found, "data": (found["data"][0], False)}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: Any) -> Tensor:
    """Return a tensor that shares the memory of any object with ``__dlpack__``, or of a capsule."""
    if type(ext_tensor).__name__ == "PyCapsule":
        return wrap(_checked_array(np.asarray(_Capsule(ext_tensor))))
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            f"from_dlpack takes an object with __dlpack__, but got {type(ext_tensor).__name__}"
        )
    return wrap(_checked_array(np.from_dlpack(ext_tensor)))


def frombuffer(
    buffer: Any, *, dtype: DtypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Return a vector that shares the memory of an object with the buffer protocol, such as bytes.

    Parameters
    ----------
    buffer : object
    dtype : dtype of the elements
    count : int
        How many elements, at most all; negative for all.
    offset : int
        How many bytes are skipped.
    requires_grad : bool

    Raises
    ------
    ValueError
        It has no bytes, too few of them, or no whole number of elements.
    """
    target = dtypes.as_numpy(dtype)
    try:
        memory = np.frombuffer(buffer, np.uint8) if memoryview(buffer).nbytes else np.empty(0)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    _check_extent(memory.nbytes, target.itemsize, count, offset)
    if not memory.flags.writeable:
        _warn_read_only("buffer")
    return leaf(np.frombuffer(buffer, target, count, offset), requires_grad)


def _check_extent(length: int, item: int, count: int, offset: int) -> None:
    """Raise ValueError unless ``count`` items of so many bytes lie within a buffer's bytes."""
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % item:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({item})"
        )
    if count * item > length - offset:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )


def _warn_read_only(what: str) -> None:
    warnings.warn(
        f"The given {what} is not writable: the tensor that shares its memory is non-writable, "
        "too, and raises RuntimeError where it is written to. A clone() can be written to.",
        stacklevel=4,
    )


def _checked_array(array: np.ndarray) -> np.ndarray:
    """Return an array as a plain ndarray, without a copy, if its dtype is a tensor's."""
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    dtypes.of(array.dtype)
    return np.asarray(array)


def copied(data: Any, dtype: DtypeLike) -> np.ndarray:
    """Return data that `tensor` accepts as a new array; arrays keep the memory order of axes."""
    target = None if dtype is None else dtypes.as_numpy(dtype)
    if isinstance(data, Tensor):
        data = data._array
        if isinstance(data, MetaArray):
            return meta(data.shape, target or data.dtype)
    elif hasattr(data, "__array__") and not isinstance(data, np.ndarray | np.generic):
        is_bytes = isinstance(data, UntypedStorage) or (is_storage(data) and target is not None)
        data = elements(data, target or dtypes.as_numpy())._array if is_bytes else np.asarray(data)
    if isinstance(data, np.ndarray):
        array = _checked_array(data)
        if target is None or target == array.dtype:
            return array.copy(order="K")
        return dtypes.cast(array, target)
    kinds: set[np.dtype] = set()
    numbers = _survey(data, kinds)
    if target is None:
        target = _inferred(kinds)
    return _filled(numbers, {kind.kind for kind in kinds}, target)


_PYTHON_NUMBERS = {int, float, bool, builtins.complex}


def _survey(data: Any, kinds: set[np.dtype]) -> Any:
    """Add the dtypes of all numbers in ``data`` to ``kinds``; return it with Tensors as numbers.

    A sequence of Python numbers only takes a short cut.
    """
    if isinstance(data, Tensor):
        if data._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        kinds.add(data._array.dtype)
        return data._array.item()
    if isinstance(data, np.ndarray | np.generic):
        kinds.add(dtypes.of(data.dtype).numpy)
        return data
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if isinstance(data, int | float | builtins.complex):
        kinds.add(dtypes.number_dtype(data))
        return data
    if isinstance(data, dict) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    try:
        items = list(data)
    except Exception:
        kind = type(data).__name__
        raise ValueError(f"could not determine the shape of object type '{kind}'") from None
    classes = set(map(type, items))
    if classes <= _PYTHON_NUMBERS:
        kinds.update(dtypes.number_dtype(kind()) for kind in classes)
        return items
    return [_survey(item, kinds) for item in items]


def _inferred(kinds: set[np.dtype]) -> np.dtype:
    """Return the dtype that all these promote to; the default if there are none."""
    if not kinds:
        return dtypes.as_numpy()
    found, *others = kinds
    for other in others:
        found = dtypes.promote_types(dtypes.of(found), dtypes.of(other)).numpy
    return found


def _filled(numbers: Any, families: set[str], target: np.dtype) -> np.ndarray:
    """Return nested lists of numbers as an array of ``target``, or raise if one does not fit."""
    if "c" in families and target.kind not in "cb":
        raise TypeError("must be real number, not complex")
    if target.kind == "c" or "c" in families:
        wide = np.complex128
    elif target.kind == "f" or "f" in families:
        wide = np.float64
    else:
        wide = np.int64
    try:
        array = np.array(numbers, wide)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    except ValueError:
        _raise_ragged(numbers)
        raise
    if target.kind in "iu" and array.size and not _fits(array, target):
        raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")
    return dtypes.cast(array, target)


def _fits(array: np.ndarray, target: np.dtype) -> bool:
    """Return whether all numbers, truncated to integers, fit into an integer dtype.

    Negative integers wrap around in an unsigned dtype if their absolute value fits.
    """
    limits = np.iinfo(target)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            return False
        return limits.min <= array.min() and array.max() < limits.max + 1.0
    lowest = -limits.max if target.kind == "u" else limits.min
    return lowest <= array.min() and array.max() <= limits.max


def _is_nested(item: Any) -> bool:
    return hasattr(item, "__len__") and getattr(item, "ndim", 1) > 0


def _shape_of_first(numbers: Any) -> list[int]:
    """Return the lengths of the nested sequences around the first number."""
    shape = []
    while _is_nested(numbers):
        shape.append(len(numbers))
        if not len(numbers):
            break
        numbers = numbers[0]
    return shape


def _raise_ragged(numbers: Any, shape: list[int] | None = None, axis: int = 0) -> None:
    """Raise an error that names the first place where nested sequences are ragged."""
    shape = _shape_of_first(numbers) if shape is None else shape
    if not _is_nested(numbers):
        if axis < len(shape):
            raise TypeError("not a sequence")
        return
    if axis == len(shape):
        raise TypeError(f"'{type(numbers).__name__}' object cannot be interpreted as an integer")
    if len(numbers) != shape[axis]:
        raise ValueError(
            f"expected sequence of length {shape[axis]} at dim {axis} (got {len(numbers)})"
        )
    for item in numbers:
        _raise_ragged(item, shape, axis + 1)
