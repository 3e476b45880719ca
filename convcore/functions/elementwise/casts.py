"""Casts of operands to the dtype that autocast asks for; those of weights are cached.

Gradients flow back through a cast, so that those of float32 weights are float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convcore._tensor import Tensor, dtypes
from convcore.autograd.casting import here
from convcore.autograd.grad_mode import mode
from convcore.functions.shapes.convert import to

__all__: list[str] = []  # autocast and layers call them

ELIGIBLE = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


def lower() -> Any:
    """Return the lower precision of autocast in this thread."""
    return here.dtypes["cpu"]


def lowered(value: Any) -> Any:
    """Return `cast(value, lower())`."""
    return cast(value, lower())


def cast(value: Any, dtype: Any) -> Any:
    """Return a tensor in a dtype, or a list or tuple with its tensors in it.

    float64, complex and integer tensors, and what is no tensor, stay as they are.
    """
    if isinstance(value, Tensor):
        if value.dtype is dtype or value.dtype not in ELIGIBLE:
            return value
        return _kept(value, dtype) if _is_weight(value, dtype) else to(value, dtype)
    if type(value) in (list, tuple):
        return type(value)([cast(item, dtype) for item in value])
    return value


def tensors(values: Any) -> Iterator[Tensor]:
    """Yield the tensors among values, those in lists and tuples too."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors(value)


def _is_weight(value: Tensor, dtype: Any) -> bool:
    """Return whether the cast is kept: a float32 leaf that requires grad, in lower precision."""
    return (
        here.caching
        and here.cache is not None
        and dtype is not dtypes.float32
        and value.dtype is dtypes.float32
        and value.requires_grad
        and value.is_leaf
        and value._base is None
    )


def _kept(weight: Tensor, dtype: Any) -> Tensor:
    """Return the cast that was made of a weight since its last change, in the same grad mode."""
    cache: Any = here.cache
    key = (id(weight), dtype, mode.enabled, mode.inference)
    found = cache.get(key)  # which keeps the weight alive, and so its number its own
    if found is None or found[1] != weight._version:
        found = cache[key] = (weight, weight._version, to(weight, dtype))
    return found[2]
