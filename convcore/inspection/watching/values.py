"""Values kept by name: without copies, unless something writes into their memory, or as recipes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.meta import MetaArray
from convcore.engine.runtime import memory
from convcore.inspection.watching.recipes import Recipe
from convcore.inspection.watching.selection import nearest_of


class Kept:
    """A tensor's memory and its version; where it is kept outside the graph, a tensor when read."""

    __slots__ = ("_attached", "_detached", "array", "counter", "version")

    def __init__(self, tensor: Tensor, detach: bool) -> None:
        self._attached = None if detach else tensor
        self.array = tensor._array
        self.counter = tensor._counter
        self.version = self.counter[0]
        self._detached: Tensor | None = None

    def is_current(self) -> bool:
        """Return whether nothing was changed in place since."""
        return self.counter[0] == self.version

    def is_of(self, tensor: Tensor) -> bool:
        """Return whether it is what would be kept of a tensor now."""
        attached = self._attached
        same = self.array is tensor._array if attached is None else attached is tensor
        return same and self.is_current()

    def copy(self) -> None:
        """Copy the memory, which is about to be changed."""
        detach = self._attached is None
        copy = _copied(self.array) if self._attached is None else self._attached.clone()
        self.__init__(copy, detach)  # type: ignore[misc]

    def read(self, name: str, keep: Any) -> Tensor:
        """Return the tensor.

        Raises
        ------
        RuntimeError
            It was changed in place since.
        """
        if not self.is_current():
            raise RuntimeError(
                f"{name} was changed in place after it was captured, by something that is not seen "
                "here: read it before, or capture statistics"
            )
        if self._attached is not None:
            return self._attached
        if self._detached is None:
            self._detached = wrap(self.array)
            self._detached._counter = self.counter
        return self._detached


class Values(Mapping):
    """Values of calls by name, in the order of the calls: tensors, or statistics.

    Reading a name that is not there raises a KeyError with the nearest ones, and reading a tensor
    that was changed in place, by something that `capture` did not see, a RuntimeError.

    Parameters
    ----------
    detach : bool
        Whether tensors are kept outside the graph.
    without : str
        What to say of any name while there are no values at all.
    others : mapping of str to str
        Other names that values may be read by: those of nodes in an ONNX file.
    """

    def __init__(
        self, detach: bool = True, without: str = "", others: Mapping[str, str] | None = None
    ) -> None:
        self._detach = detach
        self._others = others or {}
        self._without = without
        self._found: dict[str, Any] = {}
        self._awaited: dict[str, None] = {}
        self._later: list[Callable[[], None]] = []
        self._sharing: dict[int, list[Kept]] = {}  # by the version counter that memory shares

    def keep(self, name: str, tensor: Tensor) -> None:
        """Keep a tensor, which is not copied."""
        if self._later:  # behind those
            self._later.append(functools.partial(self.keep, name, tensor))
        else:
            self._found[name] = self._hold(tensor)

    def keep_recipe(self, name: str, recipe: Recipe) -> None:
        """Keep how a value is computed when it is read, and what of."""
        self.settle()
        recipe.hold(self._hold)
        self._found[name] = recipe

    def _hold(self, tensor: Tensor) -> Kept:
        counter = id(tensor._counter)
        sharing = self._sharing.get(counter)
        if sharing is None:
            kept = Kept(tensor, self._detach)
            self._sharing[counter] = [kept]
            return kept
        for kept in sharing:
            if kept.is_of(tensor):
                return kept
        sharing.append(Kept(tensor, self._detach))
        return sharing[-1]

    def await_value(self, name: str) -> None:
        """Give a value that comes later, as a gradient does, its place among the others."""
        self._awaited[name] = None

    def later(self, keep: Callable[[], None]) -> None:
        """Keep values when one is read, or memory is about to be changed."""
        self._later.append(keep)

    def settle(self) -> None:
        """Keep the values that were to be kept later."""
        while self._later:
            keeping, self._later = self._later, []
            for keep in keeping:
                keep()

    def note(self, name: str, value: Any) -> None:
        """Keep what is no tensor."""
        self.settle()
        self._found[name] = value

    def before_write(self, tensor: Tensor) -> None:
        """Copy what is kept of a tensor's memory."""
        self.settle()
        for kept in self._sharing.pop(id(tensor._counter), ()):
            if kept.is_current() and not isinstance(kept.array, MetaArray):
                kept.copy()

    def clear(self) -> None:
        """Forget all values."""
        self._later.clear()
        self._found.clear()
        self._awaited.clear()
        self._sharing.clear()

    def __getitem__(self, name: str) -> Any:
        self.settle()
        try:
            value = self._found[self._own(name)]
        except KeyError:
            near = nearest_of(str(name), self._found)
            why = f"; {self._without}" if self._without and not self._found else near
            raise KeyError(f"{name}{why}") from None
        return value.read(name, self._hold) if isinstance(value, Kept | Recipe) else value

    def _own(self, name: Any) -> Any:
        """Return the name of a call, which may be given by another name of its module."""
        if name in self._found or not isinstance(name, str):
            return name
        ends = (name[len(other) :] for other in self._others if name.startswith(other))
        found = (self._others[name.removesuffix(end)] + end for end in ends)
        return next((each for each in found if each in self._found), name)

    def __contains__(self, name: object) -> bool:
        self.settle()
        return self._own(name) in self._found

    def __iter__(self) -> Iterator[str]:
        self.settle()
        if not self._awaited:
            return iter(self._found)
        return (name for name in self._awaited if name in self._found)

    def __len__(self) -> int:
        self.settle()
        return len(self._found)

    def __repr__(self) -> str:
        shown = (f"{name}: {_shown(self._found[name])}" for name in self)
        return "\n".join(shown)


def _copied(array: np.ndarray) -> Tensor:
    """Return a copy in the same memory format, in memory of the pool."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    dense = memory.empty([array.shape[axis] for axis in order], array.dtype)
    copy = dense.transpose(sorted(range(array.ndim), key=order.__getitem__))
    np.copyto(copy, array)
    return wrap(copy)


def _shown(value: Any) -> str:
    if isinstance(value, Kept | Recipe):
        return f"{list(value.array.shape)} {wrap(value.array).dtype}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {v:.4g}" for k, v in value.items() if k != "histogram")
    return str(value)
