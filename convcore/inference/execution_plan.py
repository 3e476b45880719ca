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
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from convcore._tensor import Tensor, wrap
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

    Attributes
    ----------
    is_kept : bool
        Whether its memory is new in each call and written once, as somebody may keep the value.
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
        self.is_kept = False
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


class DepartedError(Exception):
    """A hook returned what cannot take the place of the value that it was called with."""


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """The function of a step that shows values to who watches a point.

    Attributes
    ----------
    point : Point
    shown : int
        See `cutting.py`.
    passed : tuple of Value
        What operands that may be replaced are after the step: themselves, or values without memory
        of their own, which the step chooses.
    recipe : (ConvPart, array) or None
        A part of a convolution, and an array of its result's shape and dtype.
    """

    point: Any
    shown: int
    passed: tuple[Value, ...] = ()
    recipe: tuple[Any, Array] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What a step computes: the ops, and the multiply-adds and algorithm of a product."""

    ops: Sequence[Any] = ()
    multiply_adds: int = 0
    algorithm: str = ""


class StepRecord(NamedTuple):
    """What a profile says of a step: `Work` without arrays.

    Attributes
    ----------
    layers : tuple of str
        The names of the layers or nodes that it computes.
    type : str
        The functions, joined by " + "; "hook" of a step that shows values to who watches.
    n_bytes : int
        Of its result; 0 where that is written into an operand's memory.
    """

    layers: tuple[str, ...]
    type: str
    n_bytes: int
    multiply_adds: int
    algorithm: str


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A function, its arguments, with Value and SCRATCH as placeholders, and its scratch bytes.

    binds : whether the function takes ``later=True``, and then returns one without arguments.
    """

    function: Callable[..., Any] | Watched
    arguments: tuple[Any, ...]
    scratch_bytes: int = 0
    binds: bool = False
    work: Work = Work()

    def roots(self) -> Iterable[Value]:
        """Yield the values whose memory it reads or writes."""
        passed = self.function.passed if isinstance(self.function, Watched) else ()
        return (one.root for one in (*self.arguments, *passed) if isinstance(one, Value))


class Plan:
    """Steps that compute ``results`` from ``input``, and the memory of intermediate results.

    One thread may run it at a time.

    Attributes
    ----------
    unfused : tuple of Module
        Layers that are steps of their own where somebody watches what they are called on.
    """

    unfused: tuple[Any, ...] = ()

    def __init__(self, steps: Sequence[Step], input: Value, results: Sequence[Value]) -> None:
        self._steps, self._input, self._results = steps, input, tuple(results)
        kept = {root for step in steps for root in step.roots() if root.is_kept}
        roots = dict.fromkeys(result.root for result in results)
        self._result_roots = tuple(root for root in roots if root not in kept)
        # Values whose memory differs from call to call, and the arguments that they are: the list
        # and the place in it.
        self._slots: dict[Value, list[tuple[list[Any], int, Value]]] = {
            root: [] for root in (input, *roots, *kept)
        }
        offsets, self.n_bytes = offsets_of(steps, tuple(self._slots))
        self._arena = memory.Block(max(self.n_bytes, _LINE))
        self._records: tuple[StepRecord, ...] = ()
        self._scratch = memory.Block(max([_LINE, *(step.scratch_bytes for step in steps)]))
        self._calls: list[tuple[Callable[..., Any], Sequence[Any]]] = []
        self._made: dict[Value, Tensor] = {}  # of this call
        self._watch: Any = None
        self._ends_step: list[bool] = []  # of each call
        begins, ends = _first_and_last_uses(steps, kept - {input})
        for number, step in enumerate(steps):
            self._calls += [(self._allocate, (root,)) for root in begins[number]]
            self._calls.append(self._call(step, offsets))
            self._ends_step += [False] * (len(self._calls) - 1 - len(self._ends_step)) + [True]
            self._calls += [(self._release, (root,)) for root in ends[number] if root not in roots]
        self._ends_step += [False] * (len(self._calls) - len(self._ends_step))

    def copy(self) -> Plan:
        """Return the same plan with memory of its own, for a concurrent call."""
        return Plan(self._steps, self._input, self._results)

    def _call(
        self, step: Step, offsets: dict[Value, int]
    ) -> tuple[Callable[..., Any], Sequence[Any]]:
        """Return a step's function and arguments."""
        arguments, varies = list(step.arguments), False
        for place, one in enumerate(arguments):
            if one is SCRATCH:
                arguments[place] = self._scratch
            elif isinstance(one, Value) and one.root in self._slots:
                self._slots[one.root].append((arguments, place, one))
                varies = True
            elif isinstance(one, Value):
                arguments[place] = self._array(one, offsets[one.root])
        if isinstance(step.function, Watched):
            watched, values = step.function, step.arguments
            if watched.passed:
                return self._change, (watched, values, arguments)
            return self._show, (watched.point, watched.recipe, values, arguments)
        if step.binds and not varies:
            return step.function(*arguments, later=True), ()
        return step.function, arguments

    def _array(self, value: Value, offset: int) -> Array:
        root = value.root
        shape = root.shape
        if not root.channels_last:
            return value.array_in(np.ndarray(shape, root.dtype, self._arena, offset))
        dense = np.ndarray((shape[0], *shape[2:], shape[1]), root.dtype, self._arena, offset)
        return value.array_in(dense.transpose(layout.memory_order(len(shape) - 2)))

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """What a profile says of each step; computed once."""
        if self._records:
            return self._records
        found, written = [], {self._input}
        for step in self._steps:
            new = {root for root in step.roots() if root not in written}
            written |= new
            n_bytes = sum(math.prod(root.shape) * root.dtype.itemsize for root in new)
            ops = sorted(step.work.ops, key=lambda op: op.result[0]._sequence)
            is_hook = isinstance(step.function, Watched)
            layers = tuple(dict.fromkeys(name for op in ops for name in op.layers))
            types = dict.fromkeys(op.function for op in ops)
            found.append(
                StepRecord(
                    *(layers, "hook" if is_hook else " + ".join(types) or "copy", n_bytes),
                    *(step.work.multiply_adds, step.work.algorithm),
                )
            )
        self._records = tuple(found)
        return self._records

    def __call__(
        self, array: Array, watch: Any = None, times: list[int] | None = None
    ) -> list[Tensor]:
        """Return the net's results for an input of the plan's shape and layout.

        watch : `points.Watch`, who watches the points of a plan that has some
        times : gets the time when the first step begins, and when each ends, in nanoseconds

        Raises
        ------
        DepartedError
            A hook returned a value that cannot take the place of another.
        """
        self._watch = watch
        try:
            self._set(self._input, wrap(array))
            for root in self._result_roots:
                self._allocate(root)
            if times is None:
                for function, given in self._calls:
                    function(*given)
            else:
                self._run_timed(times)
            return [
                self._tensor(one, one.array_in(self._made[one.root]._array))
                for one in self._results
            ]
        finally:
            self._watch = None
            self._made.clear()
            for slots in self._slots.values():
                for arguments, place, _ in slots:
                    arguments[place] = None

    def _run_timed(self, times: list[int]) -> None:
        times.append(perf_counter_ns())
        for (function, given), ends_step in zip(self._calls, self._ends_step, strict=True):
            function(*given)
            if ends_step:
                times.append(perf_counter_ns())

    # Values whose memory differs from call to call

    def _allocate(self, root: Value) -> None:
        self._set(root, wrap(root.allocate()))

    def _set(self, root: Value, tensor: Tensor) -> None:
        self._made[root] = tensor
        for arguments, place, value in self._slots[root]:
            arguments[place] = value.array_in(tensor._array)

    def _release(self, root: Value) -> None:
        del self._made[root]
        for arguments, place, _ in self._slots[root]:
            arguments[place] = None

    def _tensor(self, value: Value | Array, array: Array) -> Tensor:
        """Return the tensor of an array: the same one each time, if it is all of its memory."""
        made = self._made.get(value.root) if isinstance(value, Value) else None
        return made if made is not None and made._array is array else wrap(array)

    def _show(
        self, point: Any, recipe: Any, values: Sequence[Value | Array], arrays: Sequence[Array]
    ) -> None:
        """Show values to who watches."""
        tensors = map(self._tensor, values, arrays)
        if recipe is None:
            self._watch.see(point, *tensors)
        else:
            self._watch.compute(point, *recipe, *tensors)

    def _change(
        self, watched: Watched, values: Sequence[Value | Array], arrays: Sequence[Array]
    ) -> None:
        """Show values to who watches, and let those that pass be what that returns."""
        tensors = list(map(self._tensor, values, arrays))
        passing = self._watch.at(watched.point, watched.shown, tensors)
        for value, old, new in zip(watched.passed, tensors, passing, strict=False):
            if new._array.shape != value.shape or new._array.dtype != value.dtype:
                raise DepartedError
            if any(value is one for one in values):  # changed in place, for all who have it
                if new is not old:
                    np.copyto(old._array, new._array)
            elif value.same_layout(new._array) and new._array.flags.aligned:
                self._set(value, new)
            else:
                copy = value.allocate()
                np.copyto(copy, new._array)
                self._set(value, wrap(copy))


def _first_and_last_uses(
    steps: Sequence[Step], values: Collection[Value]
) -> tuple[dict[int, list[Value]], dict[int, list[Value]]]:
    """Return the values by the numbers of the steps that use them first, and last.

    Values that a step lets pass need no memory, and are not among the first.
    """
    begins: dict[Value, int] = {}
    ends: dict[Value, int] = {}
    passed: set[Value] = set()
    for number, step in enumerate(steps):
        if isinstance(step.function, Watched) and not step.function.point.in_place:
            passed.update(step.function.passed)
        for root in step.roots():
            if root in values:
                begins.setdefault(root, number)
                ends[root] = number
    first, last = defaultdict(list), defaultdict(list)
    for root, number in begins.items():
        if root not in passed:
            first[number].append(root)
    for root, number in ends.items():
        last[number].append(root)
    return first, last


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
