"""A pickler without recursion: containers and objects may be nested to any depth."""

from __future__ import annotations

import copyreg
import itertools
import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

_Pickler: Any = vars(pickle)["_Pickler"]

_BATCH = 1000  # items of one opcode, as Python's pickler has it
_TUPLES = (pickle.EMPTY_TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)
_END = object()

# What an object's steps are: they write opcodes, and yield the parts to be written between them.
Steps = Iterator[Any]


class IterativePickler(_Pickler):
    """A pickler that writes what Python's does, with a stack of its own instead of Python's.

    Derived from pickle's Python version: the C version imports every name that it writes.
    """

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object and its parts."""
        stack: list[Steps] = []
        part = obj
        while True:
            steps = self.steps(part)
            if steps is not None:
                stack.append(steps)
            part = _END
            while stack and part is _END:
                part = next(stack[-1], _END)
                if part is _END:
                    stack.pop()
            if part is _END:
                return

    def steps(self, obj: Any) -> Steps | None:
        """Return the steps in which an object is written; None if it is written already."""
        self.framer.commit_frame()
        kind = type(obj)
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
            return None
        if self.proto >= 2 and kind in _CONTAINERS:
            return _CONTAINERS[kind](self, obj)
        is_simple = self.proto < 2 or kind in self.dispatch or issubclass(kind, type)
        if is_simple or self.persistent_id(obj) is not None:
            super().save(obj)
            return None
        reduce = copyreg.dispatch_table.get(kind)
        reduced = obj.__reduce_ex__(self.proto) if reduce is None else reduce(obj)
        if isinstance(reduced, str):
            self.save_global(obj, reduced)
            return None
        if not isinstance(reduced, tuple) or not 2 <= len(reduced) <= 6:
            raise pickle.PicklingError(f"{kind.__name__}.__reduce_ex__ returned {reduced!r:.99}")
        return self._object(obj, *reduced)

    def call(self, function: Any, args: tuple) -> Steps:
        """Write a call of a function."""
        yield function
        yield args
        self.write(pickle.REDUCE)

    def _object(
        self,
        obj: Any,
        function: Any,
        args: Any,
        state: Any = None,
        items: Iterable[Any] | None = None,
        pairs: Iterable[Any] | None = None,
        set_state: Any = None,
    ) -> Steps:
        """Write an object as what its ``__reduce_ex__`` returned."""
        if not isinstance(args, tuple) or not callable(function):
            raise pickle.PicklingError(
                f"{obj!r:.99} is not reduced to a function and its arguments"
            )
        name = getattr(function, "__name__", "")
        if name == "__newobj_ex__" and self.proto < 4:
            cls, positional, keywords = args
            yield from self.call(partial(cls.__new__, cls, *positional, **keywords), ())
        elif name == "__newobj_ex__":
            yield from args
            self.write(pickle.NEWOBJ_EX)
        elif name == "__newobj__":
            yield args[0]
            yield args[1:]
            self.write(pickle.NEWOBJ)
        else:
            yield from self.call(function, args)
        if id(obj) in self.memo:  # its arguments hold it
            self.write(pickle.POP + self.get(self.memo[id(obj)][0]))
        else:
            self.memoize(obj)
        yield from self._appended(items or ())
        yield from self._set_items(pairs or ())
        if state is not None and set_state is None:
            yield state
            self.write(pickle.BUILD)
        elif state is not None:
            yield from self.call(set_state, (obj, state))
            self.write(pickle.POP)

    def _list(self, obj: list) -> Steps:
        self.write(pickle.EMPTY_LIST)
        self.memoize(obj)
        yield from self._appended(obj)

    def _dict(self, obj: dict) -> Steps:
        self.write(pickle.EMPTY_DICT)
        self.memoize(obj)
        yield from self._set_items(obj.items())

    def _tuple(self, obj: tuple) -> Steps:
        is_short = len(obj) < len(_TUPLES)
        if not is_short:
            self.write(pickle.MARK)
        yield from obj
        if id(obj) in self.memo:  # an element holds it
            pops = pickle.POP * len(obj) if is_short else pickle.POP_MARK
            self.write(pops + self.get(self.memo[id(obj)][0]))
            return
        self.write(_TUPLES[len(obj)] if is_short else pickle.TUPLE)
        if obj:
            self.memoize(obj)

    def _appended(self, items: Iterable[Any]) -> Steps:
        """Write the items of a list that is on the stack."""
        for batch in _batches(items):
            if len(batch) == 1:
                yield batch[0]
                self.write(pickle.APPEND)
            else:
                self.write(pickle.MARK)
                yield from batch
                self.write(pickle.APPENDS)

    def _set_items(self, pairs: Iterable[Any]) -> Steps:
        """Write the items of a dict that is on the stack."""
        for batch in _batches(pairs):
            if len(batch) == 1:
                yield from batch[0]
                self.write(pickle.SETITEM)
            else:
                self.write(pickle.MARK)
                yield from itertools.chain.from_iterable(batch)
                self.write(pickle.SETITEMS)


_CONTAINERS: dict[type, Any] = {
    list: IterativePickler._list,
    tuple: IterativePickler._tuple,
    dict: IterativePickler._dict,
}


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, _BATCH)):
        yield batch
