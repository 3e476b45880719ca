"""Execution plan: the kernel calls of a net in order, on memory that is laid out beforehand.

Look-ups, checks and allocations of the net's Python code are paid when the plan is made; running
it calls kernels and nothing else.

References
----------
Y. Pisarchyk, J. Lee, "Efficient memory management for deep neural net inference", MLSys workshop
on resource-constrained learning (2020), arXiv 2001.03288: greedy by size, for the offsets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convcore.engine.conv.call import NARROW_DTYPE
from convcore.engine.runtime import layout, memory
from convcore.engine.runtime.checks import Array

FLOAT = np.dtype(np.float32)
# bfloat16 in memory: NumPy has no such type.
NARROW = NARROW_DTYPE
_LINE = 64  # alignment of values in bytes: a cache line


class Value:
    """An array of a plan before it has memory: memory of its own, or another value's.

    Parameters
    ----------
    shape : tuple of int
    channels_last : bool
    base : Value, optional
        Whose memory this is.
    view : function, optional
        From base's array to this one; the identity by default.
    strides : tuple of int, optional
        In bytes, of a view that is not dense in the memory format.
    narrow : bool
        Whether it is bfloat16 in memory, if that is its own; else it is as ``base`` is.
    """

    def __init__(
        self,
        shape: Sequence[int],
        channels_last: bool,
        base: Value | None = None,
        view: Callable[[Array], Array] | None = None,
        strides: tuple[int, ...] | None = None,
        narrow: bool = False,
    ) -> None:
        self.shape, self.channels_last = tuple(shape), channels_last
        self.base, self.view = base, view
        self.narrow: bool = narrow if base is None else base.narrow
        self.dtype = NARROW if self.narrow else FLOAT
        self.is_dense = strides is None
        self.strides = self._dense_strides() if strides is None else strides

    @property
    def root(self) -> Value:
        """The value that owns the memory."""
        return self if self.base is None else self.base.root

    def _dense_strides(self) -> tuple[int, ...]:
        rank = len(self.shape)
        order = (0, *range(2, rank), 1) if self.channels_last else tuple(range(rank))
        strides, step = [0] * rank, self.dtype.itemsize
        for axis in reversed(order):
            strides[axis] = step
            step *= self.shape[axis]
        return tuple(strides)

    def same_layout(self, array: Any) -> bool:
        """Return whether an array, or another value, has the same shape, strides and dtype."""
        if self.shape != array.shape or self.dtype != array.dtype:
            return False
        axes = zip(self.shape, self.strides, array.strides, strict=True)
        return all(size == 1 or mine == other for size, mine, other in axes)

    @property
    def n_bytes(self) -> int:
        """Bytes of the memory, rounded up to the alignment."""
        return -(-math.prod(self.shape) * self.dtype.itemsize // _LINE) * _LINE

    def array_in(self, root: Array) -> Array:
        """Return the array, given the array of the root."""
        if self.base is None:
            return root
        array = self.base.array_in(root)
        return array if self.view is None else self.view(array)

    def allocate(self) -> Array:
        """Return an uninitialised array for it."""
        return layout.empty(self.shape, self.dtype, self.channels_last)


class Scratch:
    """Placeholder for the plan's scratch memory among a step's arguments."""


SCRATCH = Scratch()


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A function, its arguments, with Value and SCRATCH as placeholders, and its scratch bytes.

    binds : whether the function takes ``later=True``, and then returns one without arguments.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    scratch_bytes: int = 0
    binds: bool = False

    def roots(self) -> Iterable[Value]:
        """Yield the values whose memory it reads or writes."""
        return (one.root for one in self.arguments if isinstance(one, Value))


class Plan:
    """Steps that compute ``results`` from ``input``, and the memory of intermediate results.

    One thread may run it at a time.
    """

    def __init__(self, steps: Sequence[Step], input: Value, results: Sequence[Value]) -> None:
        self._steps, self._input, self._results = steps, input, tuple(results)
        self._result_roots = tuple(dict.fromkeys(result.root for result in results))
        outside = (input.root, *self._result_roots)
        offsets, self.n_bytes = offsets_of(steps, outside)
        self._arena = memory.Block(max(self.n_bytes, _LINE))
        self._scratch = memory.Block(max([_LINE, *(step.scratch_bytes for step in steps)]))
        self._calls: list[tuple[Callable[..., Any], Sequence[Any]]] = []
        # Arguments that differ from call to call: the list, the place in it, and the value.
        self._input_slots: list[tuple[list[Any], int, Value]] = []
        self._result_slots: list[tuple[list[Any], int, Value]] = []
        for step in steps:
            arguments, varies = list(step.arguments), False
            for place, one in enumerate(arguments):
                if one is SCRATCH:
                    arguments[place] = self._scratch
                elif isinstance(one, Value) and one.root in outside:
                    patched = self._input_slots if one.root is input.root else self._result_slots
                    patched.append((arguments, place, one))
                    varies = True
                elif isinstance(one, Value):
                    arguments[place] = self._array(one, offsets[one.root])
            if step.binds and not varies:
                self._calls.append((step.function(*arguments, later=True), ()))
            else:
                self._calls.append((step.function, arguments))

    def copy(self) -> Plan:
        """Return the same plan with memory of its own, for a concurrent call."""
        return Plan(self._steps, self._input, self._results)

    def _array(self, value: Value, offset: int) -> Array:
        root = value.root
        shape = root.shape
        if not root.channels_last:
            return value.array_in(np.ndarray(shape, root.dtype, self._arena, offset))
        dense = np.ndarray((shape[0], *shape[2:], shape[1]), root.dtype, self._arena, offset)
        return value.array_in(dense.transpose(layout.memory_order(len(shape) - 2)))

    def __call__(self, array: Array) -> list[Array]:
        """Return the net's results, new arrays, for an input of the plan's shape and layout."""
        made = {root: root.allocate() for root in self._result_roots}
        for arguments, place, value in self._input_slots:
            arguments[place] = value.array_in(array)
        for arguments, place, value in self._result_slots:
            arguments[place] = value.array_in(made[value.root])
        try:
            for function, given in self._calls:
                function(*given)
        finally:
            for arguments, place, _ in (*self._input_slots, *self._result_slots):
                arguments[place] = None
        return [result.array_in(made[result.root]) for result in self._results]


def offsets_of(
    steps: Sequence[Step], outside: Sequence[Value] = ()
) -> tuple[dict[Value, int], int]:
    """Return each value's offset, such that values alive at once do not overlap; and the end.

    outside : values whose memory is not the plan's
    """
    lives: dict[Value, tuple[int, int]] = {}
    for number, step in enumerate(steps):
        for root in step.roots():
            if root not in outside:
                lives[root] = (lives.get(root, (number,))[0], number)
    offsets: dict[Value, int] = {}
    for value in sorted(lives, key=lambda one: -one.n_bytes):
        begin, end = lives[value]
        taken = sorted(
            (offsets[other], offsets[other] + other.n_bytes)
            for other in offsets
            if lives[other][0] <= end and begin <= lives[other][1]
        )
        offset = 0
        for low, high in taken:
            if low - offset >= value.n_bytes:
                break
            offset = max(offset, high)
        offsets[value] = offset
    total = max((offset + value.n_bytes for value, offset in offsets.items()), default=0)
    return offsets, total
