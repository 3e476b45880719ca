"""Steps for convolutions, and the ops that are fused into them.

An activation is fused into the convolution before it, also if a max pool is between them.  A sum is
fused into a convolution that computes one summand, if the other is no longer needed: the
convolution adds to it in place.  So a convolution that may be fused is deferred to its consumer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore.engine.conv.call import TRANSPOSE, CallPlan, plan_of
from convcore.engine.conv.epilogue import CLAMP, LEAKY
from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.conv.selection import current
from convcore.engine.runtime.checks import Array
from convcore.inference.batch_norm_folding import channels_last
from convcore.inference.elementwise import activation, arithmetic
from convcore.inference.execution_plan import FLOAT, SCRATCH, Value
from convcore.inference.op_graph import Op, Operand
from convcore.inference.plan_builder import PlanBuilder, UnplannedError, computed, constant

# (kind, low, high, slope) of an activation, as kernels take them.
ActivationParams = tuple[int, float, float, float]
PLAIN: ActivationParams = (0, 0.0, 0.0, 0.0)


# Convolutions


def convolution(
    builder: PlanBuilder,
    op: Op,
    after: Op | None = None,
    onto: Value | None = None,
    result: Operand = None,
) -> Value:
    """Add a PrepackedConv, with its own activation or ``after``, added to ``onto`` if given.

    result : whose memory the step writes, if it is not the activation's or the op's own
    """
    layer = op.attributes["layer"]
    builder.include(op, after)
    params = None if after is None else activation_params_of(after)
    x = computed(builder.consume(*op.inputs, dense=False, narrow=True)[0])
    made = result or (after or op).result
    narrow = builder.may_be_narrow(made) if onto is None else onto.narrow
    return prepacked_convolution(
        builder, layer.prepacked, x, params or layer.activation_params, onto, narrow
    )


def prepacked_convolution(
    builder: PlanBuilder,
    conv: PrepackedConvolution,
    x: Value,
    params: ActivationParams,
    onto: Value | None = None,
    narrow: bool = False,
) -> Value:
    """Add a convolution with prepacked weights, added in place to ``onto`` if given.

    narrow : whether the result shall be bfloat16 in memory, if the kernel can
    """
    call, prepacked = conv.prepared(x.shape, x.strides, x.dtype, (x.narrow, narrow))
    extra: tuple[Any, ...] = (conv.bias, *params)
    if onto is not None:
        extra += (prepacked, True)
    elif prepacked is not None:
        extra += (prepacked,)
    return _executed(builder, call, x, conv.weight, extra, onto)


def other_convolution(builder: PlanBuilder, op: Op) -> Value:
    """Add a convolution that is not a PrepackedConv, or a transposed one."""
    attributes = op.attributes
    if "steps" not in attributes:
        raise UnplannedError("a convolution with its activation")
    x, weight, bias = builder.consume(*op.inputs, dense=False, narrow=True)
    narrow = builder.may_be_narrow(op.result)
    x, filters, steps = computed(x), channels_last(constant(weight)), attributes["steps"]
    offsets = None if attributes["bias"] is None else constant(bias)
    if attributes["transposed"]:
        steps = (*steps, attributes["output_padding"])
        return _transposed(builder, x, filters, offsets, steps, narrow)
    prepacked = PrepackedConvolution(filters, offsets, **steps._asdict())
    return prepacked_convolution(builder, prepacked, x, PLAIN, narrow=narrow)


def _transposed(
    builder: PlanBuilder,
    x: Value,
    filters: Array,
    offsets: Array | None,
    steps: tuple,
    narrow: bool,
) -> Value:
    """Add a transposed convolution; the last of ``steps`` is its output_padding."""
    arrays = (x.shape, x.strides, x.dtype, filters.shape, filters.strides, FLOAT)
    narrows = x.narrow, narrow
    call = plan_of(TRANSPOSE, (*arrays, current()), steps, narrow=narrows)
    ends = call.plan.supports_epilogue
    y = _executed(builder, call, x, filters, (offsets,) if ends else (), transposed=True)
    if offsets is not None and not ends:
        column = offsets.reshape(-1, *(1,) * (filters.ndim - 2))
        builder.step(np.add, y, column, y)
    return y


def _executed(
    builder: PlanBuilder,
    call: CallPlan,
    x: Value,
    weight: Array,
    extra: tuple[Any, ...],
    onto: Value | None = None,
    transposed: bool = False,
) -> Value:
    """Add the kernel call of a convolution's plan."""
    if call.squeeze:
        raise UnplannedError("an input without a batch's axis")
    reads_narrow, narrow = call.narrow
    if not reads_narrow:
        x = builder.widened(x)
    y = Value(call.shape, call.channels_last, onto, narrow=narrow)
    kernel, plan = call.kernel, call.plan
    threads = kernel.threads()
    # A transposed convolution's weights meet each element of its input.
    image = x.shape if transposed else y.shape
    builder.step(
        *(kernel.run, x, weight, y, SCRATCH, threads, *extra),
        scratch_bytes=plan.shared_bytes + threads * plan.scratch_bytes,
        binds=call.binds,
        multiply_adds=math.prod(image) * math.prod(weight.shape[1:]),
        algorithm=plan.algorithm,
    )
    return y


# Ops that are fused into them


def can_fuse(builder: PlanBuilder, op: Op) -> bool:
    """Return whether a PrepackedConv is deferred, as its consumer may be fused into it."""
    after = builder.ops.only_consumer(op.result)
    if after is None or op.attributes["layer"].activation_params != PLAIN:
        return False
    is_activation = activation_params_of(after) is not None
    return is_activation or after.name == "Add" or _swaps_with_activation(builder, after)


def _swaps_with_activation(builder: PlanBuilder, op: Op) -> bool:
    """Return whether an op is a max pool that may run after the activation that follows it.

    Not if a window lies in the padding alone: its -inf would escape the activation.
    """
    may_be_padding = op.attributes.get("may_be_padding", True)
    return not may_be_padding and fusable_activation(builder, op) is not None


def _deferred_convolution(builder: PlanBuilder, operand: Operand) -> Op | None:
    """Return the deferred PrepackedConv that computes an operand, if there is one."""
    before = builder.deferred(operand)
    return before if before is not None and before.name == "PrepackedConvolution" else None


def fusable_activation(builder: PlanBuilder, op: Op) -> Op | None:
    """Return the activation that alone consumes an op's result, if a convolution can apply it."""
    after = builder.ops.only_consumer(op.result)
    return after if after is not None and activation_params_of(after) is not None else None


def define_activation(builder: PlanBuilder, after: Op | None, value: Value) -> Value:
    """Record that a value is the fused activation's result as well, if there is one."""
    return value if after is None else builder.define_fused(after, value)


def activated(builder: PlanBuilder, op: Op) -> Value:
    """Add an activation, fused into the convolution before it if there is one."""
    before = _deferred_convolution(builder, op.inputs[0])
    if before is None:
        return activation(builder, op)
    return convolution(builder, before, op)


def added(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add a sum, fused into the convolution that computes one of its operands if possible."""
    for operand, other in (op.inputs, op.inputs[::-1]):
        before = _deferred_convolution(builder, operand)
        if before is not None and _can_add(builder, before, op, other):
            (onto,) = builder.consume(other, narrow=True)
            after = fusable_activation(builder, op)
            return define_activation(builder, after, convolution(builder, before, after, onto))
    return arithmetic(builder, op)


def _can_add(builder: PlanBuilder, before: Op, op: Op, other: Operand) -> bool:
    """Return whether a convolution can add its result to the other operand in place."""
    x, onto = computed(builder.peek(before.inputs[0])), builder.peek(other)
    if not isinstance(onto, Value):
        return False
    conv, narrow = before.attributes["layer"].prepacked, (x.narrow, onto.narrow)
    call = conv.plan(x.shape, x.strides, x.dtype, narrow)
    made = Value(call.shape, call.channels_last, narrow=call.narrow[1])
    alike = made.same_layout(onto)
    return call.plan.supports_accumulate and alike and builder.is_free(onto, but=op)


def max_pool(builder: PlanBuilder, op: Op) -> Value:
    """Add a max pool; an activation after it is fused into the convolution before it.

    The result is the same, as activations are monotonic (see `activation_params_of`).
    """
    pool = op.attributes.get("pool")
    if pool is None:
        raise UnplannedError("a pool of indices")
    before = _deferred_convolution(builder, op.inputs[0])
    if before is None:
        return _pooled(builder, pool, computed(builder.consume(*op.inputs, narrow=True)[0]))
    after = fusable_activation(builder, op)
    ops = [before] if after is None else [before, after]
    x = builder.part_of(ops, convolution, builder, before, after, None, before.result)
    return define_activation(builder, after, _pooled(builder, pool, x))


def _pooled(builder: PlanBuilder, pool: Any, x: Value) -> Value:
    if len(x.shape) != len(pool.outs) + 2:
        raise UnplannedError("an input without a batch's axis")
    if not x.channels_last:
        x = builder.widened(x)
    y = Value((*x.shape[:2], *pool.outs), x.channels_last, narrow=x.narrow)
    n, c = x.shape[:2]
    if x.narrow:
        threads = pool.kernel.threads(n, c, False)
        builder.step(pool.kernel.narrow_forward, x, y, n, c, threads)
        return y
    images, channels = (n, c) if x.channels_last else (n * c, 0)
    threads = pool.kernel.threads(images, channels, False)
    builder.step(
        *(pool.kernel.forward, x, y, None, SCRATCH, images, channels, False, threads),
        scratch_bytes=threads * pool.kernel.scratch_bytes(False),
    )
    return y


def activation_params_of(op: Op) -> ActivationParams | None:
    """Return the parameters with which a convolution applies an activation; None if it cannot.

    Only monotonically increasing ones, which commute with max pooling.
    """
    if op.name == "Relu":
        return CLAMP, 0.0, math.inf, 0.0
    match op.attributes.get("kernel"):
        case ("clamp", low, high):
            return CLAMP, low, high, 0.0
        case ("leaky_relu", slope) if slope >= 0:
            return LEAKY, 0.0, 0.0, slope
    return None
