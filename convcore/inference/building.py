"""A plan as it is built: which values operands are, who still needs them, and the steps so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.checks import Array
from convcore.engine.layout import is_channels_last
from convcore.functions.quiet import quiet
from convcore.inference.operations import Operand, Operation, Operations
from convcore.inference.plan import FLOAT, Plan, Step, Value


class UnplannedError(Exception):
    """A net does what plans do not know."""


class Building:
    """The steps so far, and the values that operands are.

    Parameters
    ----------
    input : Tensor
        What the operations began with.
    operations : Operations
    make : function from a Building and an operation to the value of its result
        Adds the steps for it.
    waits : function from a Building and an operation to whether its result is not made before it
        is asked for

    Raises
    ------
    UnplannedError
        The input lies in neither memory format.
    """

    def __init__(
        self,
        input: Tensor,
        operations: Operations,
        make: Callable[[Building, Operation], Value],
        waits: Callable[[Building, Operation], bool],
    ) -> None:
        array = input._array
        self._input = Value(array.shape, is_channels_last(array.shape, array.strides))
        if not self._input.lies_as(array):
            raise UnplannedError("an input in neither memory format")
        self.operations, self._make_value, self._waits = operations, make, waits
        self._steps: list[Step] = []
        self._values: dict[Operand, Value] = {}
        # How often an operand is still to be taken; the operands that lie in one memory.
        self._left = Counter(taken for operation in operations.all for taken in operation.taken)
        self._left[operations.result] += 1
        self._family: dict[Value, list[Operand]] = defaultdict(list)
        self.give(input, self._input)

    def plan(self) -> Plan:
        """Return the plan of all operations."""
        for operation in self.operations.all:
            if self.is_made(operation.node):
                continue
            if not self._waits(self, operation):
                self._make(operation)
                continue
            # Of several alike in a row the last waits alone, so that no chain is made at once.
            for taken in operation.taken:
                before = self.operations.of(taken)
                if before is not None and before.name == operation.name:
                    self.value(taken)
        value = self.value(self.operations.result)
        if value.root is self._input:
            raise UnplannedError("the result is the input")
        return Plan(self._steps, self._input, value)

    # Values, and who takes them

    def value(self, operand: Operand) -> Value:
        """Return what an operand is, computed now if that was put off."""
        if operand not in self._values:
            operation = self.operations.of(operand)
            if operation is None:
                raise UnplannedError("a constant")
            self._make(operation)
        return self._values[operand]

    def leaf(self, operand: Operand) -> Array:
        """Return the array of what the net has, whatever its input is."""
        if not isinstance(operand, Tensor) or self.is_made(operand):
            raise UnplannedError("a computed weight")
        return operand._array

    def _make(self, operation: Operation) -> None:
        self.give(operation.node, self._make_value(self, operation))

    def is_made(self, operand: Operand) -> bool:
        """Return whether the value of an operand is there."""
        return operand in self._values

    def give(self, operand: Operand, value: Value) -> None:
        """Note what an operand is."""
        self._values[operand] = value
        self._family[value.root].append(operand)

    def take(self, operation: Operation) -> None:
        """Count an operation's operands as taken."""
        self._left.subtract(operation.taken)

    def is_free(self, value: Value, but: Operation | None = None) -> bool:
        """Return whether nobody, or nobody but one, needs any more what a value's memory holds."""
        root = value.root
        own = Counter(() if but is None else but.taken)
        return root is not self._input and all(
            self._left[one] == own[one] for one in self._family[root]
        )

    def in_place_of(self, *values: Value) -> Value:
        """Return a result that lies as the values do: in place of one that is needed no more."""
        home = next(filter(self.is_free, values), None)
        return Value(values[0].shape, values[0].channels_last, home)

    # Steps

    def step(self, function: Callable[..., Any], *arguments: Any, scratch_bytes: int = 0) -> None:
        """Add a step; see `Step`."""
        self._steps.append(Step(function, arguments, scratch_bytes))

    def filled(self, function: Callable[[Array], Array], x: Value) -> Value:
        """Add a function of one array that returns another one, to be copied."""
        array = x.new()
        array[...] = 0
        array = quiet(function, array)
        if array.dtype != FLOAT:
            raise UnplannedError("no float32 numbers")
        y = Value(array.shape, is_channels_last(array.shape, array.strides))
        self.step(_fill, function, x, y)
        return y


def _fill(function: Callable[[Array], Array], x: Array, out: Array) -> None:
    np.copyto(out, quiet(function, x))
