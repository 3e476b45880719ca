"""Legacy tensor constructors: Tensor(...), FloatTensor(...), LongTensor(...) and the like."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, dtypes, wrap
from convcore._tensor.creation.arguments import DtypeLike, allocated, shape
from convcore._tensor.creation.data import copied
from convcore._tensor.device import check_device
from convcore._tensor.settings import unset
from convcore._tensor.size import Size


def legacy_tensor(
    *args: Any,
    size: Any = None,
    dtype: DtypeLike = None,
    device: Any = None,
    kind: type[Tensor] = Tensor,
) -> Tensor:
    """Do what ``Tensor(...)`` does: ints and a Size are a size, a sequence is data.

    Parameters
    ----------
    args : nothing, sizes, a sequence or array of numbers, or a Tensor, whose memory is shared.
    size : the size, instead of those.
    kind : the class of the result.
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
    if size is not None:
        args = (Size(size),)
    made = _made(args, dtype)
    return made if kind is Tensor else wrap(made._array, kind)


def _made(args: tuple, dtype: DtypeLike) -> Tensor:
    target = dtypes.as_numpy(dtype)
    if not args:
        return wrap(np.empty(0, target))
    first = args[0]
    if len(args) > 1 or isinstance(first, Size) or _is_integer(first):
        return wrap(unset(allocated(np.empty, shape("new", args), target)))
    if isinstance(first, Tensor):
        if dtype is not None and first.dtype.numpy != target:
            raise TypeError(f"expected a tensor of {dtypes.of(target)} (got {first.dtype})")
        return first.view(first.shape) if first.requires_grad else wrap(first._array)
    if isinstance(first, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if not hasattr(first, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return wrap(copied(first, dtypes.of(target)))


def _is_integer(number: Any) -> bool:
    return hasattr(number, "__index__") and not isinstance(number, bool | Tensor | np.ndarray)


class _LegacyType(type):
    """The metaclass of `FloatTensor` and the like: calling one makes a `Tensor` of its dtype.

    No tensor is of such a class, but ``isinstance`` says so of those that have its dtype.
    """

    dtype: dtypes.dtype

    def __new__(cls, name: str, bases: tuple, names: dict, dtype: dtypes.dtype) -> _LegacyType:
        return type.__new__(cls, name, bases, {**names, "dtype": dtype})

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return legacy_tensor(*args, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance._array.dtype == cls.dtype.numpy

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


class FloatTensor(metaclass=_LegacyType, dtype=dtypes.float32):
    """Tensors of float32, in PyTorch's older way of naming them."""


class DoubleTensor(metaclass=_LegacyType, dtype=dtypes.float64):
    """Tensors of float64."""


class HalfTensor(metaclass=_LegacyType, dtype=dtypes.float16):
    """Tensors of float16."""


class LongTensor(metaclass=_LegacyType, dtype=dtypes.int64):
    """Tensors of int64."""


class IntTensor(metaclass=_LegacyType, dtype=dtypes.int32):
    """Tensors of int32."""


class ShortTensor(metaclass=_LegacyType, dtype=dtypes.int16):
    """Tensors of int16."""


class ByteTensor(metaclass=_LegacyType, dtype=dtypes.uint8):
    """Tensors of uint8."""


class CharTensor(metaclass=_LegacyType, dtype=dtypes.int8):
    """Tensors of int8."""


class BoolTensor(metaclass=_LegacyType, dtype=dtypes.bool):
    """Tensors of bool."""
