"""PlanBuilder: the steps of a plan so far, what operands are, and who still needs them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.runtime._casts import widen
from convcore.engine.runtime.checks import Array
from convcore.engine.runtime.layout import is_channels_last
from convcore.functions._support.errstate import ignore_errstate
from convcore.inference.execution_plan import FLOAT, Plan, Step, Value, Watched, Work
from convcore.inference.op_graph import Op, Operand, OpGraph

# What an operand is: computed when the plan runs, a constant, or unknown.
Resolved = Value | Array | None


# Ops whose steps read bfloat16 in memory.
NARROW_READERS = frozenset(
    (
        *("Add", "Cat", "Convolution", "PrepackedConvolution"),
        *("MaxPool1DWithIndices", "MaxPool2DWithIndices", "MaxPool3DWithIndices"),
    )
)


class UnplannedError(Exception):
    """A net does something that plans do not support."""


def computed(resolved: Resolved) -> Value:
    """Return an operand that has to be computed when the plan runs; raise if it is not."""
    if not isinstance(resolved, Value):
        raise UnplannedError("a constant")
    return resolved


def constant(resolved: Resolved) -> Array:
    """Return an operand that has to be constant, whatever the input is; raise if it is not."""
    if not isinstance(resolved, np.ndarray):
        raise UnplannedError("a computed weight")
    return resolved


def known(resolved: Resolved) -> Value | Array:
    """Return an operand that is computed or constant; raise if it is neither."""
    if resolved is None:
        raise UnplannedError("a tensor that is neither computed with gradients nor the model's own")
    return resolved


class PlanBuilder:
    """The steps of a plan so far, and what operands are.

    Parameters
    ----------
    ops : OpGraph
    lower : function of a PlanBuilder and an op
        Adds the op's steps; returns its result.
    is_deferred : function of a PlanBuilder and an op
        Whether the op is lowered only when its result is asked for, since its consumer may fuse it.
    narrow : bool
        Whether results may be bfloat16 in memory.

    Raises
    ------
    UnplannedError
        The input lies in neither memory format.
    """

    def __init__(
        self,
        ops: OpGraph,
        lower: Callable[[PlanBuilder, Op], Value | Array],
        is_deferred: Callable[[PlanBuilder, Op], bool],
        narrow: bool = False,
    ) -> None:
        array = ops.input._array
        self._input = Value(array.shape, is_channels_last(array.shape, array.strides))
        if not self._input.same_layout(array):
            raise UnplannedError("an input in neither memory format")
        self.ops, self._lower_op, self._is_deferred = ops, lower, is_deferred
        self._narrow = narrow
        self._steps: list[Step] = []
        self._ops: list[Op] = []  # that the next steps are of
        self._shared: dict[Hashable, Any] = {}
        self._resolved: dict[Operand, Value | Array] = {}
        # How often each operand is still to be consumed, and the operands that share a memory.
        self._remaining = Counter(ops.uses)
        self._aliases: dict[Value, list[Operand]] = defaultdict(list)
        self.define(ops.input, self._input)

    def plan(self) -> Plan:
        """Return the plan of all ops."""
        for op in self.ops.all:
            if not self.is_lowered(op) and not self._is_deferred(self, op):
                self._lower(op)
        values = list(map(computed, self.consume(*self.ops.results)))
        if any(value.root is self._input for value in values):
            raise UnplannedError("a result is the input")
        return Plan(self._steps, self._input, values)

    # Operands, and their consumers

    def consume(self, *operands: Operand, dense: bool = True, narrow: bool = False) -> list[Any]:
        """Return what the operands of an op are, and count each as consumed.

        All at once: deferred ones are lowered before any is counted, so that none of their steps
        overwrites what the op is to read.  Views that are not dense are copied, unless ``dense``
        is false, and what is bfloat16 in memory is widened, unless ``narrow`` is true.
        """
        resolved = [self.peek(operand) for operand in operands]
        if not narrow:
            resolved = [self.widened(one) if isinstance(one, Value) else one for one in resolved]
        if dense:
            resolved = [self._dense(one) if isinstance(one, Value) else one for one in resolved]
        self._remaining.subtract(operands)
        return resolved

    def widened(self, value: Value) -> Value:
        """Return a result in float32 memory: itself, or a copy."""
        if not value.narrow:
            return value
        wide = Value(value.shape, value.channels_last)
        self.step(widen, value, wide, math.prod(value.shape))
        return wide

    def may_be_narrow(self, operand: Operand) -> bool:
        """Return whether an op's result shall be bfloat16 in memory: if all that read it can."""
        readers = self.ops.consumers(operand)
        is_result = len(readers) < self.ops.uses[operand]
        return self._narrow and not is_result and all(op.name in NARROW_READERS for op in readers)

    def _dense(self, value: Value) -> Value:
        if value.is_dense:
            return value
        copy = Value(value.shape, value.channels_last)
        self.step(np.copyto, copy, value)
        return copy

    def peek(self, operand: Operand) -> Resolved:
        """Return what an operand is, lowered now if it was deferred, without consuming it."""
        op = self.ops.of(operand)
        if op is not None and not self.is_lowered(op):
            self._lower(op)
        if operand in self._resolved:
            return self._resolved[operand]
        return operand._array if isinstance(operand, Tensor) else None

    def deferred(self, operand: Operand) -> Op | None:
        """Return the op of an operand if that is deferred and not yet lowered."""
        op = self.ops.of(operand)
        return None if op is None or self.is_lowered(op) else op

    def is_lowered(self, op: Op) -> bool:
        """Return whether the steps of an op have been added."""
        return op.result in self._resolved

    def _lower(self, op: Op) -> None:
        self.define(op.result, self.part_of([op], self._lower_op, self, op))

    def part_of(self, ops: list[Op], lower: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns whose steps belong to some ops."""
        outer, self._ops = self._ops, ops
        result = lower(*arguments)
        self._ops = outer
        return result

    def include(self, *ops: Op | None) -> None:
        """Record that the present steps compute these ops as well, which have none of their own."""
        self._ops += [op for op in ops if op is not None and op not in self._ops]

    def define(self, operand: Operand, resolved: Value | Array) -> None:
        """Record what an operand is."""
        self._resolved[operand] = resolved
        if isinstance(resolved, Value):
            self._aliases[resolved.root].append(operand)

    def define_fused(self, after: Op, value: Value) -> Value:
        """Record that a value is the result also of the op that alone consumes it."""
        self._remaining.subtract(after.inputs)
        self.define(after.result, value)
        return value

    def is_free(self, value: Value, but: Op | None = None) -> bool:
        """Return whether no op, or no op but one, still needs what a value's memory holds."""
        root = value.root
        if root.is_kept:
            return False
        own = Counter(() if but is None else but.inputs)
        return root is not self._input and all(
            self._remaining[one] == own[one] for one in self._aliases[root]
        )

    def in_place_of(self, *values: Value) -> Value:
        """Return a result like the values, in the memory of one that nothing else needs if any."""
        base = next(filter(self.is_free, values), None)
        return Value(values[0].shape, values[0].channels_last, base)

    # Steps

    def shared(self, key: Hashable, make: Callable[..., Any], *arguments: Any) -> Any:
        """Return what is made of constants, once for each key."""
        if key not in self._shared:
            # The arguments too, so that no other constant comes to lie where these do.
            self._shared[key] = make(*arguments), arguments
        return self._shared[key][0]

    def step(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        scratch_bytes: int = 0,
        binds: bool = False,
        multiply_adds: int = 0,
        algorithm: str = "",
    ) -> None:
        """Add a step; see `Step`."""
        work = Work(self._ops, multiply_adds, algorithm)
        self._steps.append(Step(function, arguments, scratch_bytes, binds, work))

    def watch(self, watched: Watched, operands: Sequence[Value | Array]) -> None:
        """Add a step that shows operands to who watches."""
        for one in (*operands, *watched.passed):
            if isinstance(one, Value):
                one.root.is_kept = True
        self._steps.append(Step(watched, tuple(operands)))

    def apply(
        self, function: Callable[..., Array], *operands: Value | Array, multiply_adds: int = 0
    ) -> Value:
        """Return the result of a NumPy function: a view of its one operand, or made by a step."""
        arrays = [self._example(one) if isinstance(one, Value) else one for one in operands]
        made = ignore_errstate(function, *arrays)
        if made.dtype != FLOAT:
            raise UnplannedError("no float32 numbers")
        y = Value(made.shape, is_channels_last(made.shape, made.strides))
        shared = [np.may_share_memory(made, array) for array in arrays]
        if shared == [True]:
            strides = None if y.same_layout(made) else made.strides
            return Value(made.shape, y.channels_last, computed(operands[0]), function, strides)
        if any(shared):
            raise UnplannedError("a view of one of several")
        self.step(_fill, function, y, *operands, multiply_adds=multiply_adds)
        return y

    def _example(self, value: Value) -> Array:
        array = value.array_in(value.root.allocate())
        array[...] = 0
        return array


def _fill(function: Callable[..., Array], out: Array, *arrays: Array) -> None:
    np.copyto(out, ignore_errstate(function, *arrays))
