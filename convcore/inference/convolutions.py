"""Convolutions as steps, and what is joined with them.

An activation becomes part of the convolution before it, across a max pool, too.  A sum with what
nobody needs any more is made in place by the convolution that ends it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore.engine import elementwise
from convcore.engine.activation import CLAMP, LEAKY
from convcore.engine.algorithms.selection import current
from convcore.engine.calls import transpose_call
from convcore.engine.checks import Array, hashable
from convcore.engine.fixed import FixedConvolution
from convcore.inference.building import Building, UnplannedError
from convcore.inference.fold import channels_last
from convcore.inference.operations import Operand, Operation
from convcore.inference.plan import FLOAT, SCRATCH, Value

# (kind, low, high, slope), as convolutions take them.
Terms = tuple[int, float, float, float]
PLAIN: Terms = (0, 0.0, 0.0, 0.0)


def convolution(
    building: Building, operation: Operation, terms: Terms | None = None, onto: Value | None = None
) -> Value:
    """Add a fused convolution, with its own activation unless another is given."""
    layer = operation.node.attributes["layer"]
    x = building.value(operation.taken[0])
    building.take(operation)
    return fixed_convolution(building, layer.fixed, x, terms or layer.terms, onto)


def fixed_convolution(
    building: Building, fixed: FixedConvolution, x: Value, terms: Terms, onto: Value | None = None
) -> Value:
    """Add a convolution, perhaps onto what a value holds."""
    call, kept = fixed.prepared(x.shape, x.strides, FLOAT)
    if call.squeeze:
        raise UnplannedError("an input without a batch's axis")
    y = Value(call.shape, call.channels_last, onto)
    extra: tuple[Any, ...] = (fixed.bias, *terms)
    if onto is not None:
        extra += (kept, True)
    elif kept is not None:
        extra += (kept,)
    threads = call.kernel.threads()
    building.step(
        *(call.kernel.run, x, fixed.weight, y, SCRATCH, threads, *extra),
        scratch_bytes=call.plan.shared_bytes + threads * call.plan.scratch_bytes,
    )
    return y


def other_convolution(building: Building, operation: Operation) -> Value:
    """Add a convolution that was not fused, or a transposed one."""
    attributes = operation.node.attributes
    if "steps" not in attributes:
        raise UnplannedError("a convolution with its activation")
    given, steps = operation.taken, attributes["steps"]
    filters = channels_last(building.leaf(given[1]))
    offsets = None if attributes["bias"] is None else building.leaf(given[2])
    x = building.value(given[0])
    building.take(operation)
    if not attributes["transposed"]:
        return fixed_convolution(building, FixedConvolution(filters, offsets, **steps), x, PLAIN)
    return _transposed(building, x, filters, offsets, steps)


def _transposed(
    building: Building, x: Value, filters: Array, offsets: Array | None, steps: dict[str, Any]
) -> Value:
    """Add a transposed convolution."""
    names = ("stride", "padding", "output_padding", "dilation", "groups")
    parameters = [hashable(steps[name]) for name in names]
    arrays = (x.shape, x.strides, FLOAT, filters.shape, filters.strides, FLOAT)
    call = transpose_call(*arrays, *parameters, current())
    if call.squeeze:
        raise UnplannedError("an input without a batch's axis")
    y = Value(call.shape, call.channels_last)
    threads = call.kernel.threads()
    building.step(
        *(call.kernel.run, x, filters, y, SCRATCH, threads),
        *((offsets,) if call.plan.ends else ()),
        scratch_bytes=call.plan.shared_bytes + threads * call.plan.scratch_bytes,
    )
    if offsets is not None and not call.plan.ends:
        column = offsets.reshape(-1, *(1,) * (filters.ndim - 2))
        building.step(np.add, y, column, y)
    return y


def _plain(building: Building, operand: Operand) -> Operation | None:
    """Return the convolution without activation that waits to make an operand, if one does."""
    before = building.operations.of(operand)
    if before is None or building.is_made(operand) or before.name != "FixedConvolution":
        return None
    return before if before.node.attributes["layer"].terms == PLAIN else None


def ending(building: Building, operation: Operation) -> Operation | None:
    """Return the activation that alone takes a result, if a convolution can make it."""
    after = building.operations.only_taker(operation.node)
    return after if after is not None and terms_of(after) is not None else None


def end(building: Building, after: Operation | None, value: Value) -> Value:
    """Have a value be the activation's result as well."""
    if after is not None:
        building.take(after)
        building.give(after.node, value)
    return value


def activation(building: Building, operation: Operation) -> Value:
    """Add an activation, or give it to the convolution before it."""
    before, terms = _plain(building, operation.taken[0]), terms_of(operation)
    if before is not None and terms is not None:
        building.take(operation)
        return convolution(building, before, terms)
    x = building.value(operation.taken[0])
    building.take(operation)
    y = building.in_place_of(x)
    kernel, *constants = _kernel_of(operation)
    building.step(elementwise.step_of(kernel, constants), x, None, y)
    return y


def sum_of_two(building: Building, operation: Operation) -> Value:
    """Add a sum, by the convolution that ends it if it can."""
    if len(operation.taken) != 2 or None in operation.taken:
        raise UnplannedError("a sum with a constant")
    for operand, other in (operation.taken, operation.taken[::-1]):
        before = _plain(building, operand)
        if before is not None:
            joined = _sum_in_place(building, operation, before, building.value(other))
            if joined is not None:
                return joined
    a, b = map(building.value, operation.taken)
    building.take(operation)
    if a.shape != b.shape:
        raise UnplannedError("a sum that broadcasts")
    if a.lies_as(b):
        y = building.in_place_of(a, b)
        building.step(elementwise.step_of("sum"), a, b, y)
    else:
        y = building.in_place_of(a if a.channels_last else b)
        building.step(np.add, a, b, y)
    return y


def _sum_in_place(
    building: Building, operation: Operation, before: Operation, other: Value
) -> Value | None:
    """Add a sum and the convolution before it, if nobody needs the other summand any more."""
    x = building.value(before.taken[0])
    call, _ = before.node.attributes["layer"].fixed.prepared(x.shape, x.strides, FLOAT)
    alike = Value(call.shape, call.channels_last).lies_as(other)
    if not (call.plan.adds and alike and building.is_free(other, operation)):
        return None
    building.take(operation)
    after = ending(building, operation)
    terms = None if after is None else terms_of(after)
    return end(building, after, convolution(building, before, terms, other))


def max_pool(building: Building, operation: Operation) -> Value:
    """Add a max pool; the activation after it is made before it, which gives the same."""
    pool = operation.node.attributes.get("pool")
    if pool is None:
        raise UnplannedError("a pool of indices")
    before, after = _plain(building, operation.taken[0]), ending(building, operation)
    if operation.node.attributes["hollow"]:
        after = None  # which is to make a bound of the -inf of a window in the padding
    if before is not None and after is not None:
        building.give(before.node, convolution(building, before, terms_of(after)))
    x = building.value(operation.taken[0])
    if len(x.shape) != len(pool.outs) + 2:
        raise UnplannedError("an input without a batch's axis")
    building.take(operation)
    y = Value((*x.shape[:2], *pool.outs), x.channels_last)
    n, c = x.shape[:2]
    images, channels = (n, c) if x.channels_last else (n * c, 0)
    threads = pool.kernel.threads(images, channels, False)
    building.step(
        *(pool.kernel.forward, x, y, None, SCRATCH, images, channels, False, threads),
        scratch_bytes=threads * pool.kernel.scratch_bytes(False),
    )
    return y if before is None else end(building, after, y)


def _kernel_of(operation: Operation) -> tuple[Any, ...]:
    """Return an activation's kernel and its constants, as engine/elementwise.py has them."""
    return ("relu",) if operation.name == "Relu" else operation.node.attributes["kernel"]


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
