"""Making tensors: from Python numbers, from arrays, and from a size and a rule.

Everything here ends in an ndarray that `wrap` makes a leaf of the graph.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore import _dtype
from convcore._device import check_device
from convcore._size import Size
from convcore._tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
    preserve_format,
    wrap,
)
from convcore.engine import layout

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

DtypeLike = _dtype.dtype | np.dtype | type | None


def leaf(array: np.ndarray, requires_grad: bool = False) -> Tensor:
    """Return a new leaf around an ndarray that only PyTorch's kinds of elements may have grads of.

    Raises
    ------
    RuntimeError
        Gradients are required of integers or bools.
    """
    made = wrap(array)
    if requires_grad:
        if array.dtype.kind not in "fc":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        made._requires_grad = True
    return made


# From data


def tensor(
    data: Any, *, dtype: DtypeLike = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Copy numbers, nested sequences of them, an array or a Tensor into a new tensor.

    Parameters
    ----------
    data : what to copy.  Arrays, Tensors and NumPy's numbers keep their type; Python's ints become
        int64, bools bool, floats `get_default_dtype`, complex numbers the complex type of that.
    dtype : the type of the elements, instead of that.

    Raises
    ------
    ValueError
        The sequences are ragged, or an int is too large for 64 bits.
    RuntimeError
        A number does not fit into ``dtype``, or ``data`` holds what is no number.

    Examples
    --------
    >>> tensor([[1, 2.5], [3, 4]])
    tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]])
    """
    check_device(device)
    return leaf(_copied(data, dtype), requires_grad)


def as_tensor(data: Any, dtype: DtypeLike = None, device: Any = None) -> Tensor:
    """Return ``data`` as a tensor: itself, or an array's memory, where the dtype is the same."""
    check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(_dtype.of(_dtype.as_numpy(dtype)))
    if isinstance(data, np.ndarray):
        array = _checked_array(data)
        return wrap(array if dtype is None else _dtype.cast(array, _dtype.as_numpy(dtype)))
    return wrap(_copied(data, dtype))


def asarray(
    obj: Any,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``obj`` as a tensor, sharing memory where it can unless ``copy`` says otherwise.

    Parameters
    ----------
    copy : True always copies, False never does; None copies where it must.

    Raises
    ------
    ValueError
        ``copy`` is False and ``obj`` cannot be shared, or not with this dtype.
    """
    check_device(device)
    if copy or not isinstance(obj, Tensor | np.ndarray):
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return leaf(_copied(obj, dtype), requires_grad)
    found = obj if isinstance(obj, Tensor) else wrap(_checked_array(obj))
    target = found.dtype.numpy if dtype is None else _dtype.as_numpy(dtype)
    if target != found.dtype.numpy:
        if copy is False:
            raise ValueError(
                f"can't alias tensor with dtype '{found.dtype}' into dtype '{_dtype.of(target)}'."
            )
        found = found.to(_dtype.of(target)) if isinstance(obj, Tensor) else as_tensor(obj, target)
    if requires_grad and not found.requires_grad:
        return leaf(found._array, True)
    return found


def from_numpy(array: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of ``array``.

    Negative strides are taken too, unlike in PyTorch.

    Raises
    ------
    TypeError
        It is no ndarray, or has elements that no tensor has.
    ValueError
        Its bytes are not in the machine's order.
    """
    if not isinstance(array, np.ndarray):
        kind = type(array)
        name = (
            kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        )
        raise TypeError(f"expected np.ndarray (got {name})")
    return wrap(_checked_array(array))


def from_dlpack(ext_tensor: Any) -> Tensor:
    """Return a tensor that shares the memory of any object with ``__dlpack__``."""
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            f"from_dlpack takes an object with __dlpack__, but got {type(ext_tensor).__name__}"
        )
    return wrap(_checked_array(np.from_dlpack(ext_tensor)))


def scalar_tensor(
    s: Any, *, dtype: DtypeLike = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor without axes that holds one number, of the default dtype unless given."""
    return full((), s, dtype=_dtype.as_numpy(dtype), device=device, requires_grad=requires_grad)


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex tensor of two real ones, which broadcast.

    Raises
    ------
    RuntimeError
        The parts are not both float32 or both float64.
    NotImplementedError
        A part requires grad: there is no gradient of this function.
    """
    for name, part in (("real", real), ("imag", imag)):
        _check_tensor("complex", name, part)
        if part.requires_grad:
            raise NotImplementedError(f"complex() has no gradient, but {name} requires grad")
    if real.dtype not in (_dtype.float32, _dtype.float64):
        raise RuntimeError(
            "Expected both inputs to be Float or Double tensors but got "
            f"{real.dtype} and {imag.dtype}"
        )
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {real.dtype} but got scalar type {imag.dtype} for "
            "second argument"
        )
    shape = np.broadcast_shapes(real._array.shape, imag._array.shape)
    array = np.empty(shape, real.dtype.to_complex().numpy)
    array.real, array.imag = real._array, imag._array
    return wrap(array)


def _checked_array(array: np.ndarray) -> np.ndarray:
    """Return an array a tensor can stand on, without a copy and without its subclass."""
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    _dtype.of(array.dtype)
    return np.asarray(array)


def _copied(data: Any, dtype: DtypeLike) -> np.ndarray:
    """Return a new array of what `tensor` takes; an array keeps the order of its axes in memory."""
    target = None if dtype is None else _dtype.as_numpy(dtype)
    if isinstance(data, Tensor):
        data = data._array
    elif hasattr(data, "__array__") and not isinstance(data, np.ndarray | np.generic):
        data = np.asarray(data)
    if isinstance(data, np.ndarray):
        array = _checked_array(data)
        if target is None or target == array.dtype:
            return array.copy(order="K")
        return _dtype.cast(array, target)
    kinds: set[np.dtype] = set()
    numbers = _survey(data, kinds)
    if target is None:
        target = _inferred(kinds)
    return _filled(numbers, {kind.kind for kind in kinds}, target)


_PYTHON_NUMBERS = {int, float, bool, builtins.complex}


def _survey(data: Any, kinds: set[np.dtype]) -> Any:
    """Add the types of all numbers in ``data`` to ``kinds``; return it with Tensors as numbers.

    A sequence of nothing but Python numbers is looked at from outside, quickly.
    """
    if isinstance(data, Tensor):
        if data._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        kinds.add(data._array.dtype)
        return data._array.item()
    if isinstance(data, np.ndarray | np.generic):
        kinds.add(_dtype.of(data.dtype).numpy)
        return data
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if isinstance(data, int | float | builtins.complex):
        kinds.add(_dtype.number_dtype(data))
        return data
    if isinstance(data, dict) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    items = list(data)
    classes = set(map(type, items))
    if classes <= _PYTHON_NUMBERS:
        kinds.update(_dtype.number_dtype(kind()) for kind in classes)
        return items
    return [_survey(item, kinds) for item in items]


def _inferred(kinds: set[np.dtype]) -> np.dtype:
    """Return the one type for numbers of all these."""
    if not kinds:
        return _dtype.as_numpy()
    found, *others = kinds
    for other in others:
        found = _dtype.promote_types(_dtype.of(found), _dtype.of(other)).numpy
    return found


def _filled(numbers: Any, families: set[str], target: np.dtype) -> np.ndarray:
    """Return nested lists of numbers as an array of ``target``, if all of them fit."""
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
    return _dtype.cast(array, target)


def _fits(array: np.ndarray, target: np.dtype) -> bool:
    """Return whether all numbers, cut to integers, are within an integer type.

    Negative integers wrap around in an unsigned type, if their absolute value fits.
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
    """Return the lengths met on the way to the very first number."""
    shape = []
    while _is_nested(numbers):
        shape.append(len(numbers))
        if not len(numbers):
            break
        numbers = numbers[0]
    return shape


def _raise_ragged(numbers: Any, shape: list[int] | None = None, axis: int = 0) -> None:
    """Raise what names the first place where nested sequences differ in length or depth."""
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


# From a size


def zeros(
    *sizes: Any,
    size: Sequence[int] | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of zeros; the size is several ints or one sequence of them.

    Examples
    --------
    >>> zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    check_device(device)
    return leaf(np.zeros(shape("zeros", sizes, size), _dtype.as_numpy(dtype)), requires_grad)


def ones(
    *sizes: Any,
    size: Sequence[int] | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of ones; the size is several ints or one sequence of them."""
    check_device(device)
    return leaf(np.ones(shape("ones", sizes, size), _dtype.as_numpy(dtype)), requires_grad)


def empty(
    *sizes: Any,
    size: Sequence[int] | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: memory_format = contiguous_format,
) -> Tensor:
    """Return a tensor whose elements are whatever was in that memory."""
    check_device(device)
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    array = _empty(shape("empty", sizes, size), _dtype.as_numpy(dtype), memory_format)
    return leaf(array, requires_grad)


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of one number, of the dtype that `tensor` gives it unless given.

    Raises
    ------
    RuntimeError
        The number does not fit into ``dtype``.
    """
    check_device(device)
    if not isinstance(size, tuple | list):
        raise TypeError(
            f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}"
        )
    number = _number("full", fill_value)
    target = _dtype.number_dtype(number) if dtype is None else _dtype.as_numpy(dtype)
    return leaf(np.full(shape("full", (size,)), number_as(number, target), target), requires_grad)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an (n, m) tensor of zeros with ones on the diagonal; m is n unless given."""
    check_device(device)
    rows, columns = _int("eye", "n", n), _int("eye", "m", n if m is None else m)
    for name, number in (("n", rows), ("m", columns)):
        if number < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {number}")
    return leaf(np.eye(rows, columns, dtype=_dtype.as_numpy(dtype)), requires_grad)


def shape(function: str, sizes: Sequence[Any], size: Any = None) -> tuple[int, ...]:
    """Return the shape that several ints, or one sequence of ints, ask for.

    Raises
    ------
    TypeError
        A size is missing, or is no int; the message names the ``function``.
    RuntimeError
        A size is negative.
    """
    if size is not None:
        sizes = (size,)
    elif not sizes:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    single = len(sizes) == 1
    if single and isinstance(sizes[0], tuple | list):
        sizes, single = sizes[0], False
    elif not single and isinstance(sizes[0], tuple | list):
        raise TypeError(f"{function}() takes 1 positional argument but {len(sizes)} were given")
    found = tuple(
        number if number.__class__ is int else _size(function, place, number, single)
        for place, number in enumerate(sizes)
    )
    if found and min(found) < 0:
        if function == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        negative = next(number for number in found if number < 0)
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {negative}: {list(found)}"
        )
    return found


def _size(function: str, place: int, number: Any, single: bool) -> int:
    """Return one size, which is no plain int, as one."""
    try:
        if not isinstance(number, bool):
            return int(operator.index(number))
    except TypeError:
        pass
    kind = type(number).__name__
    where = f", not {kind}" if single else f", but found element of type {kind} at pos {place}"
    raise TypeError(f"{function}(): argument 'size' (position 1) must be tuple of ints{where}")


def _int(function: str, name: str, number: Any) -> int:
    """Return an argument that must be an int."""
    try:
        return operator.index(number)
    except TypeError:
        kind = type(number).__name__
        raise TypeError(f"{function}(): argument '{name}' must be int, not {kind}") from None


def _number(function: str, number: Any, name: str = "fill_value", real: bool = False) -> Any:
    """Return an argument that must be a number, or a Tensor without axes, as a number."""
    if isinstance(number, Tensor) and number._array.ndim == 0:
        number = number._array.item()
    if isinstance(number, int | float | np.bool_ | np.integer | np.floating):
        return number
    if isinstance(number, builtins.complex | np.complexfloating) and not real:
        return number
    raise TypeError(f"{function}(): argument '{name}' must be Number, not {type(number).__name__}")


_C_NAMES = {
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "short",
    "int32": "int",
    "int64": "int64_t",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
}


def number_as(number: Any, target: np.dtype) -> Any:
    """Return a Python number as one of ``target``.

    Raises
    ------
    RuntimeError
        It does not fit: too large, not finite for an integer, or complex for a real type.
    """
    if target.kind == "b":
        return bool(number)
    try:
        if target.kind != "c" and isinstance(number, builtins.complex | np.complexfloating):
            if number.imag:
                raise OverflowError
            number = number.real
        if target.kind in "iu":
            return _integer_as(number, target)
        with np.errstate(over="ignore"):
            cast = target.type(number)
        if not np.isfinite(cast) and np.isfinite(number):
            raise OverflowError
        return cast
    except OverflowError:
        name = _C_NAMES.get(target.name, target.name)
        raise RuntimeError(f"value cannot be converted to type {name} without overflow") from None


def _integer_as(number: Any, target: np.dtype) -> Any:
    """Cut a real number to an integer of ``target``; negative ones wrap around where unsigned."""
    if number != number:
        raise OverflowError
    whole, limits = int(number), np.iinfo(target)
    lowest = -limits.max if target.kind == "u" else limits.min
    if not lowest <= whole <= limits.max:
        raise OverflowError
    return target.type(whole if whole >= limits.min else whole + limits.max + 1)


# Ranges


def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return start, start + step, ... below ``end``; a single number is the end.

    The type is int64 if all three are integers, else the default.

    Raises
    ------
    RuntimeError
        The step is zero or leads away from the end, or a limit is not finite.

    Examples
    --------
    >>> arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    check_device(device)
    if start is None or end is None:
        start, end = 0, start if end is None else end
    given = (("start", start), ("end", end), ("step", step))
    limits = [_number("arange", number, name, real=True) for name, number in given]
    whole = all(isinstance(number, int | np.integer) for number in limits)
    target = _dtype.as_numpy((_dtype.int64 if whole else None) if dtype is None else dtype)
    if target.kind in "bc":
        raise NotImplementedError(f"arange() cannot count in {target.name}")
    if target.kind != "f":
        # Only the sizes below are counted in fractions, if there are any.
        return leaf(_integer_range(target, *limits), requires_grad)
    first, last, stride = map(float, limits)
    count = _range_length(first, last, stride)
    return leaf(_dtype.cast(first + stride * np.arange(count), target), requires_grad)


def _integer_range(target: np.dtype, start: Any, end: Any, step: Any) -> np.ndarray:
    """Count in integers, from limits that are cut to integers once the length is known."""
    if target.itemsize == 8:
        start, end, step = map(int, (start, end, step))
    count = _range_length(start, end, step)
    first, stride = int(start), int(step)
    return _dtype.cast(first + stride * np.arange(count), target)


def _range_length(start: Any, end: Any, step: Any) -> int:
    """Return how many numbers lie in the half-open range."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if all(isinstance(number, int) for number in (start, end, step)):
        return -((start - end) // step)
    return math.ceil((end - start) / step)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``steps`` numbers at equal distances, from ``start`` to ``end`` inclusive."""
    check_device(device)
    array = _spaced("linspace", start, end, steps, dtype)
    return leaf(array, requires_grad)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the powers of ``base`` whose exponents `linspace` gives."""
    check_device(device)
    exponents = _spaced("logspace", start, end, steps, _dtype.float64)
    powers = np.power(float(base), exponents)
    return leaf(_dtype.cast(powers, _dtype.as_numpy(dtype)), requires_grad)


def _spaced(function: str, start: Any, end: Any, steps: int, dtype: DtypeLike) -> np.ndarray:
    """Step from both ends towards the middle, so that both ends are met exactly."""
    steps = _int(function, "steps", steps)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    first, last = _number(function, start, "start"), _number(function, end, "end")
    is_complex = any(isinstance(limit, builtins.complex) for limit in (first, last))
    if dtype is None and is_complex:
        target = _dtype.default_complex()
    else:
        target = _dtype.as_numpy(dtype)
    if target.kind == "b":
        raise NotImplementedError(f"{function}() cannot count in bool")
    places = np.arange(steps)
    if target.kind in "fc":  # the step is rounded, what is made with it is not until the end
        with np.errstate(over="ignore"):
            first, last = target.type(first), target.type(last)
            step = (last - first) / target.type(max(steps - 1, 1))
        first, last, step = first.item(), last.item(), step.item()
    else:
        first, last = int(first), int(last)
        step = (last - first) / max(steps - 1, 1)
    rising, falling = first + step * places, last - step * places[::-1]
    return _dtype.cast(np.where(places < max(steps // 2, steps == 1), rising, falling), target)


# Like another tensor


def zeros_like(
    input: Tensor,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return zeros of the size, dtype and memory format of ``input``, unless told otherwise."""
    array = array_like("zeros_like", input, dtype, device, memory_format)
    array.fill(0)
    return leaf(array, requires_grad)


def ones_like(
    input: Tensor,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return ones of the size, dtype and memory format of ``input``, unless told otherwise."""
    array = array_like("ones_like", input, dtype, device, memory_format)
    array.fill(1)
    return leaf(array, requires_grad)


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return one number in the size, dtype and memory format of ``input``, unless told otherwise.

    Raises
    ------
    RuntimeError
        The number does not fit into the dtype.
    """
    array = array_like("full_like", input, dtype, device, memory_format)
    array.fill(number_as(_number("full_like", fill_value), array.dtype))
    return leaf(array, requires_grad)


def empty_like(
    input: Tensor,
    *,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return whatever was in memory in the size, dtype and memory format of ``input``."""
    return leaf(array_like("empty_like", input, dtype, device, memory_format), requires_grad)


def _check_tensor(function: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(f"{function}(): argument '{name}' must be Tensor, not {kind}")


def array_like(
    function: str, input: Tensor, dtype: DtypeLike, device: Any, memory_format: memory_format
) -> np.ndarray:
    """Return the uninitialised array behind the functions above."""
    _check_tensor(function, "input", input)
    check_device(device)
    array = input._array
    target = array.dtype if dtype is None else _dtype.as_numpy(dtype)
    if memory_format is preserve_format:
        return empty_preserving(array, target)
    return _empty(array.shape, target, memory_format)


def _empty(shape: tuple[int, ...], dtype: np.dtype, memory_format: memory_format) -> np.ndarray:
    """Return a new array in a memory format that is no 'as it was'."""
    if memory_format is contiguous_format:
        return np.empty(shape, dtype)
    rank = {channels_last: 4, channels_last_3d: 5}[memory_format]
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format._name} format")
    return layout.empty(shape, dtype, channels_last=True)


def empty_preserving(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a new array of the same shape with its axes in the same order in memory.

    The strides are the same where the elements of ``array`` lie densely, axes of size 1 included:
    those decide which memory format a batch of one-pixel images has.
    """
    new = np.empty_like(array, dtype, subok=False)  # dense, and often just right
    if not array.size or (dtype.itemsize == array.itemsize and new.strides == array.strides):
        return new
    axes = _axes_in_memory(array)
    steps, step = [0] * array.ndim, dtype.itemsize
    for axis in axes:
        steps[axis] = step
        step *= array.shape[axis]
    item = array.itemsize
    found = [stride // item * dtype.itemsize for stride in array.strides]
    is_dense = all(
        size == 1 or step == stride
        for size, step, stride in zip(array.shape, steps, found, strict=True)
    )
    memory = np.empty(array.size, dtype)
    return np.ndarray(array.shape, dtype, memory, 0, found if is_dense else steps)


def _axes_in_memory(array: np.ndarray) -> list[int]:
    """Return the axes from the one that runs fastest in memory to the slowest.

    An insertion sort that passes over axes of stride 0, which say nothing of their place; where
    they end up is where PyTorch puts them.
    """
    axes = list(reversed(range(array.ndim)))
    for here in range(1, len(axes)):
        for there in reversed(range(here)):
            first, second = axes[there], axes[here]
            order = _order(array, first, second)
            if order < 0:
                break
            if order > 0:
                axes[there], axes[here] = second, first
                here = there
    return axes


def _order(array: np.ndarray, first: int, second: int) -> int:
    """Return 1 if the second axis runs faster than the first, -1 if slower, 0 if unknown."""
    strides = abs(array.strides[first]), abs(array.strides[second])
    if 0 in strides:
        return 0
    if strides[0] == strides[1]:
        return int(array.shape[first] > array.shape[second])
    return 1 if strides[0] > strides[1] else -1


# PyTorch's older constructors


def legacy_tensor(*args: Any, dtype: DtypeLike = None, device: Any = None) -> Tensor:
    """Do what ``Tensor(...)`` does: ints and a Size are a size, a sequence is data.

    Parameters
    ----------
    args : nothing, sizes, a sequence or array of numbers, or a Tensor, whose memory is shared.
    dtype : the type of the elements; None for the default, or for that of a Tensor.

    Raises
    ------
    TypeError
        The argument is none of these, or a Tensor of another dtype.

    Examples
    --------
    >>> legacy_tensor([2, 3])
    tensor([2., 3.])
    >>> legacy_tensor(2, 3).shape
    torch.Size([2, 3])
    """
    check_device(device)
    target = _dtype.as_numpy(dtype)
    if not args:
        return wrap(np.empty(0, target))
    first = args[0]
    if len(args) > 1 or isinstance(first, Size) or _is_integer(first):
        return wrap(np.empty(shape("new", args), target))
    if isinstance(first, Tensor):
        if dtype is not None and first.dtype.numpy != target:
            raise TypeError(f"expected a tensor of {_dtype.of(target)} (got {first.dtype})")
        return first.view(first.shape) if first.requires_grad else wrap(first._array)
    if isinstance(first, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if not hasattr(first, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return wrap(_copied(first, _dtype.of(target)))


def _is_integer(number: Any) -> bool:
    return hasattr(number, "__index__") and not isinstance(number, bool | Tensor | np.ndarray)


class _LegacyType(type):
    """The class of `FloatTensor` and its like: called they make tensors, and they have instances.

    They are not classes of tensors, as there is only one; they stand for a dtype.
    """

    dtype: _dtype.dtype

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return legacy_tensor(*args, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance._array.dtype == cls.dtype.numpy

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


class FloatTensor(metaclass=_LegacyType):
    """Tensors of float32, in PyTorch's older way of naming them."""

    dtype = _dtype.float32


class DoubleTensor(metaclass=_LegacyType):
    """Tensors of float64."""

    dtype = _dtype.float64


class HalfTensor(metaclass=_LegacyType):
    """Tensors of float16."""

    dtype = _dtype.float16


class LongTensor(metaclass=_LegacyType):
    """Tensors of int64."""

    dtype = _dtype.int64


class IntTensor(metaclass=_LegacyType):
    """Tensors of int32."""

    dtype = _dtype.int32


class ShortTensor(metaclass=_LegacyType):
    """Tensors of int16."""

    dtype = _dtype.int16


class ByteTensor(metaclass=_LegacyType):
    """Tensors of uint8."""

    dtype = _dtype.uint8


class CharTensor(metaclass=_LegacyType):
    """Tensors of int8."""

    dtype = _dtype.int8


class BoolTensor(metaclass=_LegacyType):
    """Tensors of bool."""

    dtype = _dtype.bool
