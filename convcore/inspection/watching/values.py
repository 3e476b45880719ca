"""Values kept by name, without copies unless something writes into their memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from convcore._meta import MetaArray
from convcore._tensor import Tensor, wrap
from convcore.engine.runtime import memory
from convcore.inspection.watching.selection import nearest_of


class Kept:
    """A tensor as it was, and the version that it had."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.version = tensor._counter[0]

    def is_current(self) -> bool:
        """Return whether nothing was changed in place since."""
        return self.tensor._counter[0] == self.version


class Values(Mapping):
    """Values of calls by name, in the order of the calls: tensors, or statistics.

    Reading a name that is not there raises a KeyError with the nearest ones, and reading a tensor
    that was changed in place, by something that `capture` did not see, a RuntimeError.
    """

    def __init__(self, detach: bool = True) -> None:
        self._detach = detach
        self._found: dict[str, Any] = {}
        self._awaited: dict[str, None] = {}
        self._sharing: dict[int, list[Kept]] = {}  # by the version counter that memory shares

    def keep(self, name: str, tensor: Tensor) -> None:
        """Keep a tensor, which is not copied."""
        kept = self._found[name] = Kept(_detached(tensor) if self._detach else tensor)
        counter = id(kept.tensor._counter)
        sharing = self._sharing.get(counter)
        if sharing is None:
            self._sharing[counter] = [kept]
        else:
            sharing.append(kept)

    def await_value(self, name: str) -> None:
        """Give a value that comes later, as a gradient does, its place among the others."""
        self._awaited[name] = None

    def note(self, name: str, value: Any) -> None:
        """Keep what is no tensor."""
        self._found[name] = value

    def before_write(self, tensor: Tensor) -> None:
        """Copy what is kept of a tensor's memory."""
        copies: dict[int, Tensor] = {}
        for kept in self._sharing.pop(id(tensor._counter), ()):
            if not kept.is_current():
                continue
            array = kept.tensor._array
            if isinstance(array, MetaArray):
                continue
            copy = copies.get(id(array))
            if copy is None:
                copy = _copied(array) if self._detach else kept.tensor.clone()
                copies[id(array)] = copy
            kept.tensor, kept.version = copy, copy._counter[0]

    def clear(self) -> None:
        """Forget all values."""
        self._found.clear()
        self._awaited.clear()
        self._sharing.clear()

    def __getitem__(self, name: str) -> Any:
        try:
            value = self._found[name]
        except KeyError:
            raise KeyError(f"{name}{nearest_of(str(name), self._found)}") from None
        if not isinstance(value, Kept):
            return value
        if not value.is_current():
            raise RuntimeError(
                f"{name} was changed in place after it was captured, by something that is not seen "
                "here: read it before, or capture statistics"
            )
        return value.tensor

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        if not self._awaited:
            return iter(self._found)
        return (name for name in self._awaited if name in self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        shown = (f"{name}: {_shown(self._found[name])}" for name in self)
        return "\n".join(shown)


def _detached(tensor: Tensor) -> Tensor:
    """Return the same memory outside the graph, with its version counter."""
    found = wrap(tensor._array)
    found._counter = tensor._counter
    return found


def _copied(array: np.ndarray) -> Tensor:
    """Return a copy in the same memory format, in memory of the pool."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    dense = memory.empty([array.shape[axis] for axis in order], array.dtype)
    copy = dense.transpose(sorted(range(array.ndim), key=order.__getitem__))
    np.copyto(copy, array)
    return wrap(copy)


def _shown(value: Any) -> str:
    if isinstance(value, Kept):
        return f"{list(value.tensor.shape)} {value.tensor.dtype}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {v:.4g}" for k, v in value.items() if k != "histogram")
    return str(value)
