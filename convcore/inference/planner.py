"""From a net's operations to the steps of a plan: kernels chosen, operations joined.

An activation becomes part of the convolution before it, across a max pool, too.  A sum with what
nobody needs any more is made in place by the convolution that ends it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine import elementwise
from convcore.engine.activation import CLAMP, LEAKY
from convcore.engine.algorithms.selection import current
from convcore.engine.boxes import concatenate
from convcore.engine.calls import transpose_call
from convcore.engine.checks import Array, hashable
from convcore.engine.fixed import FixedConvolution
from convcore.engine.layout import is_channels_last
from convcore.engine.matmul import matmul
from convcore.engine.means import write_plane_means
from convcore.functions.quiet import quiet
from convcore.inference.operations import Operand, Operation, Operations
from convcore.inference.plan import SCRATCH, Plan, Step, Value

_FLOAT = np.dtype(np.float32)
# (kind, low, high, slope), as convolutions take them.
Terms = tuple[int, float, float, float]
_PLAIN: Terms = (0, 0.0, 0.0, 0.0)
# Weights of a linear layer that are kept in panels, too.  Reading larger ones is all the time that
# their product takes.
_MOST_LINEAR_BYTES = 32 << 20


class UnplannedError(Exception):
    """A net does what plans do not know."""


def plan_of(input: Tensor, result: Any) -> Plan:
    """Return the plan of the net that made ``result`` of ``input``.

    Parameters
    ----------
    input : Tensor
        float32, in one of the two memory formats; requires a gradient.
    result : Tensor
        Made with gradients recorded, of the input and of leaves that require one.

    Raises
    ------
    UnplannedError
        The net does what plans do not know.
    """
    if not isinstance(result, Tensor) or result.grad_fn is None or result._output_nr:
        raise UnplannedError("the result is no tensor that was computed")
    if {input._array.dtype, result._array.dtype} != {_FLOAT} or not input._array.size:
        raise UnplannedError("no float32 numbers")
    return _Planner(input, Operations(result)).plan(result.grad_fn)


class _Planner:
    """The steps so far, and the values that operands are."""

    def __init__(self, input: Tensor, operations: Operations) -> None:
        array = input._array
        self._input = Value(array.shape, is_channels_last(array.shape, array.strides))
        if not self._input.lies_as(array):
            raise UnplannedError("an input in neither memory format")
        self._operations = operations
        self._steps: list[Step] = []
        self._values: dict[Operand, Value] = {}
        # How often an operand is still to be taken; the operands that lie in one memory.
        self._left = Counter(taken for operation in operations.all for taken in operation.taken)
        self._left[operations.result] += 1
        self._family: dict[Value, list[Operand]] = defaultdict(list)
        self._give(input, self._input)

    def plan(self, result: Operand) -> Plan:
        """Return the plan of all operations."""
        for operation in self._operations.all:
            if operation.node not in self._values and not self._waits(operation):
                self._make(operation)
            elif operation.name == "FixedConvolution":
                # Only one convolution waits on a path, so that no chain of them is made at once.
                self.value(operation.taken[0])
        value = self.value(result)
        if value.root is self._input:
            raise UnplannedError("the result is the input")
        return Plan(self._steps, self._input, value)

    # Values and who takes them

    def value(self, operand: Operand) -> Value:
        """Return what an operand is, computed now if that was put off."""
        if operand not in self._values:
            operation = self._operations.of(operand)
            if operation is None:
                raise UnplannedError("a constant")
            self._make(operation)
        return self._values[operand]

    def _make(self, operation: Operation) -> None:
        make = _MAKERS.get(operation.name)
        if make is None:
            known = operation.node.attributes.get("kernel")
            make = _Planner._activation if known else _Planner._again
        self._give(operation.node, make(self, operation))

    def _is_computed(self, operand: Operand) -> bool:
        return operand in self._values or self._operations.of(operand) is not None

    def _give(self, operand: Operand, value: Value) -> None:
        self._values[operand] = value
        self._family[value.root].append(operand)

    def _take(self, operation: Operation, times: int = 1) -> None:
        """Count an operation's operands as taken."""
        for taken in operation.taken:
            self._left[taken] -= times

    def _is_free(self, value: Value) -> bool:
        """Return whether nobody needs any more what a value's memory holds."""
        root = value.root
        return root is not self._input and not any(self._left[one] for one in self._family[root])

    def _in_place_of(self, *values: Value) -> Value:
        """Return a result that lies as the values do: in place of one that is needed no more."""
        home = next(filter(self._is_free, values), None)
        return Value(values[0].shape, values[0].channels_last, home)

    def _step(self, function: Callable[..., Any], *arguments: Any, scratch_bytes: int = 0) -> None:
        self._steps.append(Step(function, arguments, scratch_bytes))

    # Convolutions, and what they are joined with

    def _waits(self, operation: Operation) -> bool:
        """Return whether an operation is made when its result is asked for."""
        if operation.name == "T" or self._feeds_linear(operation):
            return True
        return operation.name == "FixedConvolution" and (
            self._operations.only_taker(operation.node) is not None
        )

    def _feeds_linear(self, operation: Operation) -> bool:
        """Return whether a copy, or the view of a copy, serves a linear layer alone."""
        if operation.name == "Clone":
            after = self._operations.only_taker(operation.node)
            return after is not None and after.name == "UnsafeView" and self._feeds_linear(after)
        if operation.name == "UnsafeView":
            after = self._operations.only_taker(operation.node)
            return after is not None and after.name == "Addmm"
        return False

    def _convolution(
        self, operation: Operation, terms: Terms | None = None, onto: Value | None = None
    ) -> Value:
        layer = operation.node.attributes["layer"]
        x = self.value(operation.taken[0])
        self._take(operation)
        return self._fixed(layer.fixed, x, terms or layer.terms, onto)

    def _fixed(
        self, fixed: FixedConvolution, x: Value, terms: Terms, onto: Value | None = None
    ) -> Value:
        """Add a convolution, perhaps onto what a value holds."""
        call, kept = fixed.prepared(x.shape, x.strides, _FLOAT)
        if call.squeeze:
            raise UnplannedError("an input without a batch's axis")
        y = Value(call.shape, call.channels_last, onto)
        extra: tuple[Any, ...] = (fixed.bias, *terms)
        if onto is not None:
            extra += (kept, True)
        elif kept is not None:
            extra += (kept,)
        threads = call.kernel.threads()
        self._step(
            *(call.kernel.run, x, fixed.weight, y, SCRATCH, threads, *extra),
            scratch_bytes=call.plan.shared_bytes + threads * call.plan.scratch_bytes,
        )
        return y

    def _plain(self, operand: Operand) -> Operation | None:
        """Return the convolution without activation that waits to make an operand, if one does."""
        before = self._operations.of(operand)
        if before is None or operand in self._values or before.name != "FixedConvolution":
            return None
        return before if before.node.attributes["layer"].terms == _PLAIN else None

    def _ending(self, operation: Operation) -> Operation | None:
        """Return the activation that alone takes a result, if a convolution can make it."""
        after = self._operations.only_taker(operation.node)
        return after if after is not None and _terms_of(after) is not None else None

    def _end(self, after: Operation | None, value: Value) -> Value:
        """Have a value be the activation's result as well."""
        if after is not None:
            self._take(after)
            self._give(after.node, value)
        return value

    def _activation(self, operation: Operation) -> Value:
        """Add an activation, or give it to the convolution before it."""
        before, terms = self._plain(operation.taken[0]), _terms_of(operation)
        if before is not None and terms is not None:
            self._take(operation)
            return self._convolution(before, terms)
        x = self.value(operation.taken[0])
        self._take(operation)
        y = self._in_place_of(x)
        kernel, *constants = _kernel_of(operation)
        self._step(elementwise.step_of(kernel, constants), x, None, y)
        return y

    def _sum(self, operation: Operation) -> Value:
        """Add a sum, by the convolution that ends it if it can."""
        if len(operation.taken) != 2 or None in operation.taken:
            raise UnplannedError("a sum with a constant")
        for operand, other in (operation.taken, operation.taken[::-1]):
            before = self._plain(operand)
            if before is not None:
                joined = self._sum_in_place(operation, before, self.value(other))
                if joined is not None:
                    return joined
        a, b = map(self.value, operation.taken)
        self._take(operation)
        if a.shape != b.shape:
            raise UnplannedError("a sum that broadcasts")
        if a.lies_as(b):
            y = self._in_place_of(a, b)
            self._step(elementwise.step_of("sum"), a, b, y)
        else:
            y = self._in_place_of(a if a.channels_last else b)
            self._step(np.add, a, b, y)
        return y

    def _sum_in_place(self, operation: Operation, before: Operation, other: Value) -> Value | None:
        """Add a sum and the convolution before it, if nobody needs the other summand any more."""
        x = self.value(before.taken[0])
        call, _ = before.node.attributes["layer"].fixed.prepared(x.shape, x.strides, _FLOAT)
        self._take(operation)
        alike = Value(call.shape, call.channels_last).lies_as(other)
        if not (call.plan.adds and alike and self._is_free(other)):
            self._take(operation, -1)
            return None
        after = self._ending(operation)
        terms = None if after is None else _terms_of(after)
        return self._end(after, self._convolution(before, terms, other))

    def _max_pool(self, operation: Operation) -> Value:
        """Add a max pool; the activation after it is made before it, which gives the same."""
        pool = operation.node.attributes.get("pool")
        if pool is None:
            raise UnplannedError("a pool of indices")
        before, after = self._plain(operation.taken[0]), self._ending(operation)
        if before is not None and after is not None:
            self._give(before.node, self._convolution(before, _terms_of(after)))
        x = self.value(operation.taken[0])
        if len(x.shape) != len(pool.outs) + 2:
            raise UnplannedError("an input without a batch's axis")
        self._take(operation)
        y = Value((*x.shape[:2], *pool.outs), x.channels_last)
        n, c = x.shape[:2]
        images, channels = (n, c) if x.channels_last else (n * c, 0)
        threads = pool.kernel.threads(images, channels, False)
        self._step(
            *(pool.kernel.forward, x, y, None, SCRATCH, images, channels, False, threads),
            scratch_bytes=threads * pool.kernel.scratch_bytes(False),
        )
        return y if before is None else self._end(after, y)

    def _linear(self, operation: Operation) -> Value:
        """Add a linear layer: a convolution of one pixel an image."""
        bias, left, right = operation.taken
        turned = self._operations.of(right)
        weight = right if turned is None else turned.taken[0]
        if not (isinstance(weight, Tensor) and isinstance(bias, Tensor)) or bias._array.ndim != 1:
            raise UnplannedError("a product that is no linear layer")
        if operation.node.attributes != {"beta": 1, "alpha": 1}:
            raise UnplannedError("a product with factors")
        matrix = weight._array.T if turned is None else weight._array
        x = self._pixels_of(left)
        if x is None:
            x = self.value(left)
        else:
            # The pictures are not copied to have their channels apart: the weights are, once.
            assert x.home is not None
            n_out, (_, channels, *sizes) = len(matrix), x.home.shape
            matrix = np.moveaxis(matrix.reshape(n_out, channels, *sizes), 1, -1).reshape(n_out, -1)
        self._take(operation)
        if matrix.nbytes > _MOST_LINEAR_BYTES:
            return self._filled(lambda array: _product_sum(array, matrix.T, bias._array), x)
        after = self._ending(operation)
        terms = None if after is None else _terms_of(after)
        filters = np.ascontiguousarray(matrix)[:, :, np.newaxis, np.newaxis]
        pixels = Value((*x.shape, 1, 1), True, x, _as_pixels)
        y = self._fixed(FixedConvolution(filters, bias._array), pixels, terms or _PLAIN)
        return self._end(after, Value(y.shape[:2], False, y, _as_rows))

    def _pixels_of(self, operand: Operand) -> Value | None:
        """Return channels_last pictures as rows, as they lie, where their flattening waits."""
        view = self._operations.of(operand)
        if view is None or operand in self._values or not self._feeds_linear(view):
            return None
        copy = self._operations.of(view.taken[0])
        if copy is None or copy.name != "Clone" or copy.node in self._values:
            return None
        x = self.value(copy.taken[0])
        n = x.shape[0]
        shape = (n, math.prod(x.shape[1:]))
        if not x.channels_last or view.node.attributes["size"] != shape:
            return None
        self._take(copy)
        self._take(view)
        return Value(shape, False, x, lambda array: np.moveaxis(array, 1, -1).reshape(shape))

    def _other_convolution(self, operation: Operation) -> Value:
        """Add a convolution that was not fused, or a transposed one."""
        attributes = dict(operation.node.attributes)
        weight, bias = operation.taken[1], attributes.pop("bias", None)
        if not isinstance(weight, Tensor):
            raise UnplannedError("a convolution with computed weights")
        filters = np.moveaxis(np.ascontiguousarray(np.moveaxis(weight._array, 1, -1)), -1, 1)
        offsets = None if bias is None else bias._array
        x = self.value(operation.taken[0])
        self._take(operation)
        if not attributes.pop("transposed", True):
            return self._fixed(FixedConvolution(filters, offsets, **attributes), x, _PLAIN)
        names = ("stride", "padding", "output_padding", "dilation", "groups")
        steps = [hashable(attributes[name]) for name in names]
        arrays = (x.shape, x.strides, _FLOAT, filters.shape, filters.strides, _FLOAT)
        call = transpose_call(*arrays, *steps, current())
        if call.squeeze:
            raise UnplannedError("an input without a batch's axis")
        y = Value(call.shape, call.channels_last)
        threads = call.kernel.threads()
        self._step(
            *(call.kernel.run, x, filters, y, SCRATCH, threads),
            *((offsets,) if call.plan.ends else ()),
            scratch_bytes=call.plan.shared_bytes + threads * call.plan.scratch_bytes,
        )
        if offsets is not None and not call.plan.ends:
            column = offsets.reshape(-1, *(1,) * (filters.ndim - 2))
            self._step(np.add, y, column, y)
        return y

    # Other operations

    def _joined(self, operation: Operation) -> Value:
        """Add a concatenation."""
        parts = list(map(self.value, operation.taken))
        self._take(operation)
        axis = operation.node.attributes["dim"]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        y = Value(shape, all(part.channels_last for part in parts))
        self._step(_concatenate, axis, y, *parts)
        return y

    def _shaped(self, operation: Operation) -> Value:
        """See a result in another shape; copy it where that is no view."""
        size = operation.node.attributes.get("size")
        if size is None:
            raise UnplannedError("a view of another kind")
        x = self.value(operation.taken[0])
        self._take(operation)
        array = x.new()
        if np.may_share_memory(array, array.reshape(size)):
            return Value(size, False, x, lambda array: array.reshape(size))
        return self._filled(lambda array: array.reshape(size), x)

    def _mean(self, operation: Operation) -> Value:
        """Add a mean over whole planes."""
        x = self.value(operation.taken[0])
        axes = tuple(range(2, len(x.shape)))
        attributes = operation.node.attributes
        if attributes.get("dim", axes) != axes or len(axes) == 0:
            raise UnplannedError("a mean over other axes")
        self._take(operation)
        means = Value((*x.shape[:2], *(1,) * len(axes)), x.channels_last)
        self._step(write_plane_means, x, means)
        if attributes.get("keepdim", True):
            return means
        return Value(x.shape[:2], False, means, lambda array: array.reshape(x.shape[:2]))

    def _again(self, operation: Operation) -> Value:
        """Add any operation of one result that says how it is done again."""
        forward = operation.node.attributes.get("forward")
        # What is no result of the net is as it was, and `forward` has it.
        if forward is None or any(self._is_computed(one) for one in operation.taken[1:]):
            raise UnplannedError(operation.name)
        x = self.value(operation.taken[0])
        self._take(operation)
        return self._filled(forward, x)

    def _filled(self, function: Callable[[Array], Array], x: Value) -> Value:
        """Add a function of one array that returns another one, to be copied."""
        array = x.new()
        array[...] = 0
        array = quiet(function, array)
        if array.dtype != _FLOAT:
            raise UnplannedError("no float32 numbers")
        y = Value(array.shape, is_channels_last(array.shape, array.strides))
        self._step(_fill, function, x, y)
        return y


_MAKERS: dict[str, Callable[[_Planner, Operation], Value]] = {
    "Add": _Planner._sum,
    "Addmm": _Planner._linear,
    "Cat": _Planner._joined,
    "Convolution": _Planner._other_convolution,
    "FixedConvolution": _Planner._convolution,
    "MaxPool1DWithIndices": _Planner._max_pool,
    "MaxPool2DWithIndices": _Planner._max_pool,
    "MaxPool3DWithIndices": _Planner._max_pool,
    "Mean": _Planner._mean,
    "Relu": _Planner._activation,
    "ReshapeAlias": _Planner._shaped,
    "UnsafeView": _Planner._shaped,
    "View": _Planner._shaped,
}


def _kernel_of(operation: Operation) -> tuple[Any, ...]:
    """Return an activation's kernel and its constants, as engine/elementwise.py has them."""
    return ("relu",) if operation.name == "Relu" else operation.node.attributes["kernel"]


def _terms_of(operation: Operation) -> Terms | None:
    """Return what a convolution is told to end with an activation; None if it cannot.

    Only those that never fall, so that the largest element stays the largest.
    """
    if operation.name == "Relu":
        return CLAMP, 0.0, math.inf, 0.0
    match operation.node.attributes.get("kernel"):
        case ("clamp", low, high):
            return CLAMP, low, high, 0.0
        case ("leaky_relu", slope) if slope >= 0:
            return LEAKY, 0.0, 0.0, slope
    return None


def _as_pixels(array: Array) -> Array:
    return array[:, np.newaxis, np.newaxis, :].transpose(0, 3, 1, 2)


def _as_rows(array: Array) -> Array:
    return array[:, :, 0, 0]


def _concatenate(axis: int, out: Array, *parts: Array) -> None:
    concatenate(parts, axis, out)


def _fill(function: Callable[[Array], Array], x: Array, out: Array) -> None:
    np.copyto(out, quiet(function, x))


def _product_sum(x: Array, columns: Array, bias: Array) -> Array:
    out = matmul(x, columns)
    out += bias
    return out
