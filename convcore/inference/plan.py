"""A plan: the kernels that a net calls, one after the other, on memory that was laid out before.

What a call of a net in Python costs, a layer at a time - look-ups, checks, allocations - is paid
when the plan is made; running it calls kernels and nothing else.

References
----------
Y. Pisarchyk, J. Lee, "Efficient memory management for deep neural net inference", MLSys workshop
on resource-constrained learning (2020), arXiv 2001.03288: greedy by size, for where values lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convcore.engine.runtime import layout, memory
from convcore.engine.runtime.checks import Array

FLOAT = np.dtype(np.float32)
_LINE = 64  # bytes that values begin at multiples of


class Value:
    """An array of a plan before it has memory: of its own, or another value's.

    Parameters
    ----------
    shape : tuple of int
    channels_last : bool
    base : Value, optional
        Whose memory this is.
    view : function, optional
        From base's array to this one; by default they are the same.
    strides : tuple of int, optional
        In bytes, of a view that is not dense in the memory format.
    """

    def __init__(
        self,
        shape: Sequence[int],
        channels_last: bool,
        base: Value | None = None,
        view: Callable[[Array], Array] | None = None,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.shape, self.channels_last = tuple(shape), channels_last
        self.base, self.view = base, view
        self.is_dense = strides is None
        self.strides = self._dense_strides() if strides is None else strides

    @property
    def root(self) -> Value:
        """The value whose memory this is in the end."""
        return self if self.base is None else self.base.root

    def _dense_strides(self) -> tuple[int, ...]:
        rank = len(self.shape)
        order = (0, *range(2, rank), 1) if self.channels_last else tuple(range(rank))
        strides, step = [0] * rank, FLOAT.itemsize
        for axis in reversed(order):
            strides[axis] = step
            step *= self.shape[axis]
        return tuple(strides)

    def lies_as(self, array: Any) -> bool:
        """Return whether an array, or another value, is of its shape and lies in the same way."""
        if self.shape != array.shape:
            return False
        axes = zip(self.shape, self.strides, array.strides, strict=True)
        return all(size == 1 or mine == other for size, mine, other in axes)

    @property
    def n_bytes(self) -> int:
        """Bytes of the memory, up to where the next value may begin."""
        return -(-math.prod(self.shape) * FLOAT.itemsize // _LINE) * _LINE

    def array_in(self, root: Array) -> Array:
        """Return the array, given the root's."""
        if self.base is None:
            return root
        array = self.base.array_in(root)
        return array if self.view is None else self.view(array)

    def new(self) -> Array:
        """Return memory for it, not cleared."""
        return layout.empty(self.shape, FLOAT, self.channels_last)


class Scratch:
    """Stands for the plan's scratch among a step's arguments."""


SCRATCH = Scratch()


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A function and its arguments, among them Values and SCRATCH, and the scratch's bytes."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    scratch_bytes: int = 0

    def roots(self) -> Iterable[Value]:
        """Yield the values in whose memory it works."""
        return (one.root for one in self.arguments if isinstance(one, Value))


class Plan:
    """Steps that make ``result`` of ``input``, and the memory for what is between them.

    For one call at a time.
    """

    def __init__(self, steps: Sequence[Step], input: Value, result: Value) -> None:
        self._steps, self._input, self._result = steps, input, result
        outside = (input.root, result.root)
        offsets, self.n_bytes = offsets_of(steps, outside)
        self._arena = memory.Block(max(self.n_bytes, _LINE))
        self._scratch = memory.Block(max([_LINE, *(step.scratch_bytes for step in steps)]))
        self._calls: list[tuple[Callable[..., Any], list[Any]]] = []
        # Where arguments come from each call: the list, the place, and the value.
        self._given: list[tuple[list[Any], int, Value]] = []
        self._made: list[tuple[list[Any], int, Value]] = []
        for step in steps:
            arguments = list(step.arguments)
            for place, one in enumerate(arguments):
                if one is SCRATCH:
                    arguments[place] = self._scratch
                elif isinstance(one, Value) and one.root in outside:
                    patched = self._given if one.root is input.root else self._made
                    patched.append((arguments, place, one))
                elif isinstance(one, Value):
                    arguments[place] = self._array(one, offsets[one.root])
            self._calls.append((step.function, arguments))

    def again(self) -> Plan:
        """Return the same plan on memory of its own, for a call at the same time."""
        return Plan(self._steps, self._input, self._result)

    def _array(self, value: Value, offset: int) -> Array:
        root = value.root
        shape = root.shape
        if not root.channels_last:
            return value.array_in(np.ndarray(shape, FLOAT, self._arena, offset))
        dense = np.ndarray((shape[0], *shape[2:], shape[1]), FLOAT, self._arena, offset)
        return value.array_in(dense.transpose(layout.memory_order(len(shape) - 2)))

    def __call__(self, array: Array) -> Array:
        """Return a new array: what the net makes of one like that which the plan was made for."""
        result = self._result.root.new()
        for arguments, place, value in self._given:
            arguments[place] = value.array_in(array)
        for arguments, place, value in self._made:
            arguments[place] = value.array_in(result)
        try:
            for function, arguments in self._calls:
                function(*arguments)
        finally:
            for arguments, place, _ in (*self._given, *self._made):
                arguments[place] = None
        return self._result.array_in(result)


def offsets_of(
    steps: Sequence[Step], outside: Sequence[Value] = ()
) -> tuple[dict[Value, int], int]:
    """Return where each value's memory begins, so that those needed at once lie apart; and the end.

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
