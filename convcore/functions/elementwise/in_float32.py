"""bfloat16 for functions without arithmetic of their own in it: computed in float32, rounded once.

bfloat16 is the upper half of float32: widening loses nothing, and the result is rounded as if it
had been computed exactly and then stored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from convcore._errors.calls import UNNAMED, after
from convcore._tensor import Tensor, dtypes
from convcore.functions.shapes.broadcast import cast

__all__: list[str] = []

Function = TypeVar("Function", bound=Callable)

_SINGLE = np.dtype(np.float32)


def in_float32(function: Function) -> Function:
    """Let a function take bfloat16, whose results, and their gradients, it rounds once.

    Tensors of another dtype beside those of bfloat16 are for the function to promote or to refuse,
    unless they have no axes or hold integers.  Where none of bfloat16 has axes either, the result
    stays as wide as they are.
    """

    @functools.wraps(function)
    def widening(*args: Any, **kwargs: Any) -> Any:
        try:
            for one in args:
                if isinstance(one, Tensor) and one._array.dtype.kind == "V":
                    return _in_float32(function, args, kwargs)
            if kwargs:
                for one in kwargs.values():
                    if isinstance(one, Tensor) and one._array.dtype.kind == "V":
                        return _in_float32(function, args, kwargs)
            return function(*args, **kwargs)
        except UNNAMED as error:
            again = after(error, widening, function.__name__, function, args, kwargs)
            if again is None:
                raise
        return again()

    return widening  # type: ignore[return-value]


def _in_float32(function: Callable, args: tuple, kwargs: dict) -> Any:
    arrays = [one._array for one in (*args, *kwargs.values()) if isinstance(one, Tensor)]
    others = [array.ndim for array in arrays if array.dtype.kind in "fc"]
    if any(others):
        return function(*args, **kwargs)
    result = function(*map(widened, args), **{name: widened(one) for name, one in kwargs.items()})
    if others and not any(array.ndim for array in arrays if array.dtype.kind == "V"):
        return result  # of numbers alone: promoted
    if isinstance(result, Tensor):
        return _narrow(result)
    parts = [_narrow(one) for one in result]
    return type(result)(parts) if type(result) in (tuple, list) else type(result)(*parts)


def widened(value: Any) -> Any:
    """Return a tensor of bfloat16 in float32, anything else as it is."""
    is_narrow = isinstance(value, Tensor) and value._array.dtype.kind == "V"
    return cast(value, _SINGLE) if is_narrow else value


def _narrow(result: Any) -> Any:
    is_wide = isinstance(result, Tensor) and result._array.dtype == _SINGLE
    return cast(result, dtypes.bfloat16.numpy) if is_wide else result
