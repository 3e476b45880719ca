"""Helpers for layers: a size per axis from one number, and the tensors in nested containers.

`_single`, `_pair` and so on are PyTorch's names: programs with layers of their own import them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from convcore._tensor import Tensor
from convcore.nn import functional

__all__ = [
    "_ntuple",
    "_pair",
    "_quadruple",
    "_single",
    "_triple",
    "consume_prefix_in_state_dict_if_present",
]


class at_call:
    """A layer's function, looked up in `nn.functional` at each call.

    Tools that count calls put functions of their own there.
    """

    __slots__ = ("name",)

    def __init__(self, function: Callable) -> None:
        self.name = function.__name__

    def __get__(self, layer: Any, owner: Any = None) -> Callable[..., Any]:
        return getattr(functional, self.name)


def _ntuple(n: int) -> Callable[[Any], tuple]:
    """Return a function that makes a tuple of an iterable, or repeats any other value n times."""

    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    return parse


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def nested_tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from nested_tensors(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from nested_tensors(part)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix such as 'module.' from the keys of a state, in place.

    A state that was saved from within a wrapper such as `DataParallel` then loads into the module.
    """
    metadata = getattr(state_dict, "_metadata", {})
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    for key in [key for key in metadata if f"{key}.".startswith(prefix)]:
        metadata[key[len(prefix) :]] = metadata.pop(key)
