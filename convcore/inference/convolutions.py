"""Convolutions as steps, and what is joined with them.

An activation becomes part of the convolution before it, across a max pool, too.  A sum with what
nobody needs any more is made in place by the convolution that ends it.  So a convolution that may
be joined waits for the operation that takes its result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore.engine.conv.algorithms.selection import current
from convcore.engine.conv.epilogue import CLAMP, LEAKY
from convcore.engine.conv.executables import Executable, transpose_executable
from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.runtime.checks import Array, hashable
from convcore.inference.building import Building, UnplannedError, computed, fixed
from convcore.inference.fold import channels_last
from convcore.inference.operations import Operand, Operation
from convcore.inference.plan import FLOAT, SCRATCH, Value
from convcore.inference.pointwise import activation, arithmetic

# (kind, low, high, slope), as convolutions take them.
Terms = tuple[int, float, float, float]
PLAIN: Terms = (0, 0.0, 0.0, 0.0)


# Convolutions


def convolution(
    building: Building,
    operation: Operation,
    after: Operation | None = None,
    onto: Value | None = None,
) -> Value:
    """Add a fused convolution, with its own activation unless that of an operation is given."""
    layer = operation.node.attributes["layer"]
    terms = None if after is None else terms_of(after)
    x = computed(building.take(*operation.taken, dense=False)[0])
    return fixed_convolution(building, layer.fixed, x, terms or layer.terms, onto)


def fixed_convolution(
    building: Building,
    conv: PrepackedConvolution,
    x: Value,
    terms: Terms,
    onto: Value | None = None,
) -> Value:
    """Add a convolution, perhaps onto what a value holds."""
    call, kept = conv.prepared(x.shape, x.strides, FLOAT)
    extra: tuple[Any, ...] = (conv.bias, *terms)
    if onto is not None:
        extra += (kept, True)
    elif kept is not None:
        extra += (kept,)
    return _called(building, call, x, conv.weight, extra, onto)


def other_convolution(building: Building, operation: Operation) -> Value:
    """Add a convolution that was not fused, or a transposed one."""
    attributes = operation.node.attributes
    if "steps" not in attributes:
        raise UnplannedError("a convolution with its activation")
    x, weight, bias = building.take(*operation.taken, dense=False)
    x, filters, steps = computed(x), channels_last(fixed(weight)), attributes["steps"]
    offsets = None if attributes["bias"] is None else fixed(bias)
    if attributes["transposed"]:
        return _transposed(building, x, filters, offsets, (*steps, attributes["output_padding"]))
    prepacked = PrepackedConvolution(filters, offsets, **steps._asdict())
    return fixed_convolution(building, prepacked, x, PLAIN)


def _transposed(
    building: Building, x: Value, filters: Array, offsets: Array | None, steps: tuple
) -> Value:
    """Add a transposed convolution; the last of ``steps`` is its output_padding."""
    arrays = (x.shape, x.strides, FLOAT, filters.shape, filters.strides, FLOAT)
    call = transpose_executable(*arrays, current(), *map(hashable, steps))
    y = _called(building, call, x, filters, (offsets,) if call.plan.ends else ())
    if offsets is not None and not call.plan.ends:
        column = offsets.reshape(-1, *(1,) * (filters.ndim - 2))
        building.step(np.add, y, column, y)
    return y


def _called(
    building: Building,
    call: Executable,
    x: Value,
    weight: Array,
    extra: tuple[Any, ...],
    onto: Value | None = None,
) -> Value:
    """Add a call of a map's kernel."""
    if call.squeeze:
        raise UnplannedError("an input without a batch's axis")
    y = Value(call.shape, call.channels_last, onto)
    threads = call.kernel.threads()
    building.step(
        *(call.kernel.run, x, weight, y, SCRATCH, threads, *extra),
        scratch_bytes=call.plan.shared_bytes + threads * call.plan.scratch_bytes,
    )
    return y


# What is joined with them


def may_be_joined(building: Building, operation: Operation) -> bool:
    """Return whether a fused convolution waits for the operation that takes its result."""
    after = building.operations.only_taker(operation.result)
    if after is None or operation.node.attributes["layer"].terms != PLAIN:
        return False
    return after.name == "Add" or terms_of(after) is not None or _passes_on(building, after)


def _passes_on(building: Building, operation: Operation) -> bool:
    """Return whether an operation is a max pool before which the activation after it can be made.

    Not where windows in the padding alone give -inf, of which the activation makes a bound.
    """
    hollow = operation.node.attributes.get("hollow", True)
    return not hollow and ending(building, operation) is not None


def _plain(building: Building, operand: Operand) -> Operation | None:
    """Return the convolution that waits to be joined with what takes its result."""
    before = building.waiting(operand)
    return before if before is not None and before.name == "PrepackedConvolution" else None


def ending(building: Building, operation: Operation) -> Operation | None:
    """Return the activation that alone takes a result, if a convolution can make it."""
    after = building.operations.only_taker(operation.result)
    return after if after is not None and terms_of(after) is not None else None


def end(building: Building, after: Operation | None, value: Value) -> Value:
    """Have a value be the activation's result as well."""
    return value if after is None else building.give_on(after, value)


def activated(building: Building, operation: Operation) -> Value:
    """Add an activation, by the convolution before it if there is one."""
    before = _plain(building, operation.taken[0])
    if before is None:
        return activation(building, operation)
    return convolution(building, before, operation)


def added(building: Building, operation: Operation) -> Value:
    """Add a sum, by the convolution that ends it if it can."""
    for operand, other in (operation.taken, operation.taken[::-1]):
        before = _plain(building, operand)
        if before is not None and _can_add(building, before, operation, other):
            (onto,) = building.take(other)
            after = ending(building, operation)
            return end(building, after, convolution(building, before, after, onto))
    return arithmetic(building, operation)


def _can_add(building: Building, before: Operation, operation: Operation, other: Operand) -> bool:
    """Return whether a convolution can add its result to the other summand, where that lies."""
    x, onto = computed(building.peek(before.taken[0])), building.peek(other)
    if not isinstance(onto, Value):
        return False
    call, _ = before.node.attributes["layer"].fixed.prepared(x.shape, x.strides, FLOAT)
    alike = Value(call.shape, call.channels_last).lies_as(onto)
    return call.plan.adds and alike and building.is_free(onto, but=operation)


def max_pool(building: Building, operation: Operation) -> Value:
    """Add a max pool; the activation after it is made before it, which gives the same."""
    pool = operation.node.attributes.get("pool")
    if pool is None:
        raise UnplannedError("a pool of indices")
    before = _plain(building, operation.taken[0])
    if before is None:
        return _pooled(building, pool, computed(building.take(*operation.taken)[0]))
    after = ending(building, operation)
    return end(building, after, _pooled(building, pool, convolution(building, before, after)))


def _pooled(building: Building, pool: Any, x: Value) -> Value:
    if len(x.shape) != len(pool.outs) + 2:
        raise UnplannedError("an input without a batch's axis")
    y = Value((*x.shape[:2], *pool.outs), x.channels_last)
    n, c = x.shape[:2]
    images, channels = (n, c) if x.channels_last else (n * c, 0)
    threads = pool.kernel.threads(images, channels, False)
    building.step(
        *(pool.kernel.forward, x, y, None, SCRATCH, images, channels, False, threads),
        scratch_bytes=threads * pool.kernel.scratch_bytes(False),
    )
    return y


def terms_of(operation: Operation) -> Terms | None:
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
