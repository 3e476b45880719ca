"""A plan as it is built: what operands are, who still needs them, and the steps so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.runtime.checks import Array
from convcore.engine.runtime.layout import is_channels_last
from convcore.functions._support.errstate import ignore_errstate
from convcore.inference.operations import Operand, Operation, Operations
from convcore.inference.plan import FLOAT, Plan, Step, Value

# What an operand is: made when the plan runs, the same whatever the input is, or not to be known.
Found = Value | Array | None


class UnplannedError(Exception):
    """A net does what plans do not know."""


def computed(found: Found) -> Value:
    """Return what an operand is, which has to be made when the plan runs."""
    if not isinstance(found, Value):
        raise UnplannedError("a constant")
    return found


def fixed(found: Found) -> Array:
    """Return what an operand is, which has to be the same whatever the input is."""
    if not isinstance(found, np.ndarray):
        raise UnplannedError("a computed weight")
    return found


class Building:
    """The steps so far, and what operands are.

    Parameters
    ----------
    input : Tensor
        What the operations began with.
    operations : Operations
    make : function from a Building and an operation to what its result is
        Takes the operands and adds the steps for it.
    waits : function from a Building and an operation to whether its result is made when it is
        first asked for, and not before: the operation that takes it may make it in its own way

    Raises
    ------
    UnplannedError
        The input lies in neither memory format.
    """

    def __init__(
        self,
        input: Tensor,
        operations: Operations,
        make: Callable[[Building, Operation], Value | Array],
        waits: Callable[[Building, Operation], bool],
    ) -> None:
        array = input._array
        self._input = Value(array.shape, is_channels_last(array.shape, array.strides))
        if not self._input.lies_as(array):
            raise UnplannedError("an input in neither memory format")
        self.operations, self._make_result, self._waits = operations, make, waits
        self._steps: list[Step] = []
        self._found: dict[Operand, Value | Array] = {}
        # How often an operand is still to be taken, and the operands that lie in one memory.
        self._left = Counter(operations.uses)
        self._family: dict[Value, list[Operand]] = defaultdict(list)
        self.give(input, self._input)

    def plan(self) -> Plan:
        """Return the plan of all operations."""
        for operation in self.operations.all:
            if not self.is_made(operation) and not self._waits(self, operation):
                self._make(operation)
        value = computed(*self.take(self.operations.result))
        if value.root is self._input:
            raise UnplannedError("the result is the input")
        return Plan(self._steps, self._input, value)

    # Operands, and who needs them

    def take(self, *operands: Operand, dense: bool = True) -> list[Any]:
        """Return what the operands of an operation are, and count each as taken.

        All at once: what of them waits is made while none is counted, so that nothing is made in
        place of what the operation is to read.  Views that are not dense are copied, unless the
        operation says that it takes them as they lie.
        """
        found = [self.peek(operand) for operand in operands]
        if dense:
            found = [self._dense(one) if isinstance(one, Value) else one for one in found]
        self._left.subtract(operands)
        return found

    def _dense(self, value: Value) -> Value:
        if value.is_dense:
            return value
        copy = Value(value.shape, value.channels_last)
        self.step(np.copyto, copy, value)
        return copy

    def peek(self, operand: Operand) -> Found:
        """Return what an operand is, made now if it waited, without taking it."""
        operation = self.operations.of(operand)
        if operation is not None and not self.is_made(operation):
            self._make(operation)
        if operand in self._found:
            return self._found[operand]
        return operand._array if isinstance(operand, Tensor) else None

    def waiting(self, operand: Operand) -> Operation | None:
        """Return the operation that waits to make an operand, if one does."""
        operation = self.operations.of(operand)
        return None if operation is None or self.is_made(operation) else operation

    def is_made(self, operation: Operation) -> bool:
        """Return whether the result of an operation is there."""
        return operation.result in self._found

    def _make(self, operation: Operation) -> None:
        self.give(operation.result, self._make_result(self, operation))

    def give(self, operand: Operand, found: Value | Array) -> None:
        """Note what an operand is."""
        self._found[operand] = found
        if isinstance(found, Value):
            self._family[found.root].append(operand)

    def give_on(self, after: Operation, value: Value) -> Value:
        """Note that a value is the result also of the operation that alone takes it."""
        self._left.subtract(after.taken)
        self.give(after.result, value)
        return value

    def is_free(self, value: Value, but: Operation | None = None) -> bool:
        """Return whether nobody, or nobody but one, needs any more what a value's memory holds."""
        root = value.root
        own = Counter(() if but is None else but.taken)
        return root is not self._input and all(
            self._left[one] == own[one] for one in self._family[root]
        )

    def in_place_of(self, *values: Value) -> Value:
        """Return a result that lies as the values do: in place of one that is needed no more."""
        base = next(filter(self.is_free, values), None)
        return Value(values[0].shape, values[0].channels_last, base)

    # Steps

    def step(self, function: Callable[..., Any], *arguments: Any, scratch_bytes: int = 0) -> None:
        """Add a step; see `Step`."""
        self._steps.append(Step(function, arguments, scratch_bytes))

    def applied(self, function: Callable[[Array], Array], x: Value) -> Value:
        """Return what a function of one array makes: a view of it, or what a step copies."""
        array = x.array_in(x.root.new())
        array[...] = 0
        made = ignore_errstate(function, array)
        if made.dtype != FLOAT:
            raise UnplannedError("no float32 numbers")
        y = Value(made.shape, is_channels_last(made.shape, made.strides))
        if np.may_share_memory(made, array):
            strides = None if y.lies_as(made) else made.strides
            return Value(made.shape, y.channels_last, x, function, strides)
        self.step(_fill, function, x, y)
        return y


def _fill(function: Callable[[Array], Array], x: Array, out: Array) -> None:
    np.copyto(out, ignore_errstate(function, x))
