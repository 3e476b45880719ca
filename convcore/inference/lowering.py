"""Lowering: from the ops of a net to the steps of a plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from convcore._tensor import Tensor
from convcore.autograd.node import Node
from convcore.engine.conv.epilogue import CLAMP
from convcore.engine.layers.norm.norm import CLAMPS
from convcore.engine.layers.norm.norm import forward as normalize
from convcore.engine.layers.pooling.global_avg_pooling import write_global_avg_pool
from convcore.engine.layers.strided_copy import concatenate
from convcore.engine.matmul import matmul
from convcore.engine.runtime.checks import Array
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.elementwise import power_of
from convcore.inference.convolutions import (
    activated,
    activation_params_of,
    added,
    can_fuse,
    convolution,
    define_activation,
    fusable_activation,
    max_pool,
    other_convolution,
)
from convcore.inference.cutting import RECIPE, VALUE
from convcore.inference.elementwise import arithmetic, prelu
from convcore.inference.execution_plan import FLOAT, Plan, Value, Watched
from convcore.inference.linear import feeds_linear, linear
from convcore.inference.op_graph import MARKER, Constants, LayerNames, Op, OpGraph
from convcore.inference.plan_builder import (
    PlanBuilder,
    Resolved,
    UnplannedError,
    computed,
    constant,
    known,
)


def ops_of(
    input: Tensor,
    results: Sequence[Tensor],
    constants: Constants,
    markers: Iterable[Node] = (),
    names: LayerNames | None = None,
) -> OpGraph:
    """Return the ops by which a net computed ``results`` from ``input``.

    Parameters
    ----------
    input : Tensor
        float32, in one of the two memory formats; requires a gradient.
    results : sequence of Tensor
        Computed with gradients recorded, from the input, leaf tensors that require one, and
        constants.
    constants : Constants
        Which looked on.
    markers : iterable of Node
        See `OpGraph.recorded`.
    names : LayerNames, optional
        Which looked on, too.

    Raises
    ------
    UnplannedError
        The net does something that plans do not support.
    """
    if any(one.grad_fn is None for one in results):
        raise UnplannedError("a result that was not computed")
    if any(one._array.dtype != FLOAT for one in (input, *results)) or not input._array.size:
        raise UnplannedError("no float32 numbers")
    return OpGraph.recorded(input, results, constants, markers, names)


def lowered(ops: OpGraph, narrow: bool = False) -> Plan:
    """Return the plan of a net's ops.

    Parameters
    ----------
    ops : OpGraph
    narrow : bool
        Whether results between the steps may be bfloat16 in memory; the last ones are not.

    Raises
    ------
    UnplannedError
        The net does something that plans do not support.
    """
    return PlanBuilder(ops, _lower, _is_deferred, narrow).plan()


def _lower(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add the steps of an op; return its result."""
    lower = _LOWERINGS.get(op.name)
    if lower is None:
        lower = activated if op.attributes.get("kernel") else _replayed
    return lower(builder, op)


def _is_deferred(builder: PlanBuilder, op: Op) -> bool:
    """Return whether an op is lowered with its consumer, into which it may be fused."""
    if op.name == "PrepackedConvolution":
        return can_fuse(builder, op)
    return feeds_linear(builder, op)


def _concatenated(builder: PlanBuilder, op: Op) -> Value:
    """Add a concatenation."""
    parts = list(map(computed, builder.consume(*op.inputs, dense=False, narrow=True)))
    narrow = all(part.narrow for part in parts)
    if not narrow:
        parts = list(map(builder.widened, parts))
    axis = op.attributes["dim"]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    y = Value(shape, all(part.channels_last for part in parts), narrow=narrow)
    builder.step(_concatenate, axis, y, *parts)
    return y


def _reshaped(builder: PlanBuilder, op: Op) -> Value | Array:
    """Reshape a result, or a constant."""
    size = op.attributes.get("size")
    if size is None:
        raise UnplannedError("a view of another kind")
    (x,) = builder.consume(*op.inputs, dense=False)
    return _applied(builder, lambda array: array.reshape(size), x)


def _applied(builder: PlanBuilder, function: Callable[..., Array], *xs: Resolved) -> Value | Array:
    """Return the result of a NumPy function, computed now if all its operands are constants."""
    if all(isinstance(x, np.ndarray) for x in xs):
        return ignore_errstate(function, *xs)
    return builder.apply(function, *map(known, xs))


def _passed_on(builder: PlanBuilder, op: Op) -> Value | Array:
    """Return the operand itself."""
    (x,) = builder.consume(*op.inputs, dense=False)
    return known(x)


def _selected(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add slices of an axis at constant indices."""
    axis, index = op.attributes["dim"], op.attributes["index"]
    if index not in builder.ops.constants:
        raise UnplannedError("computed indices")
    places = index._array
    (x,) = builder.consume(*op.inputs)
    return _applied(builder, lambda array: array.take(places, axis), x)


def _powered(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add a power with a constant exponent."""
    (x, *exponents) = builder.consume(*op.inputs)
    if not exponents:
        return _replay(builder, op, x)
    exponent = constant(exponents[0])
    n = exponent.item() if exponent.size == 1 else exponent
    return _applied(builder, lambda array: power_of(array, n), x)


def _product(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add products of matrices, batch by batch."""
    xs = builder.consume(*op.inputs, dense=False)
    if all(isinstance(x, np.ndarray) for x in xs):
        return matmul(*xs)
    a, b = map(known, xs)
    return builder.apply(matmul, a, b, multiply_adds=math.prod(a.shape) * b.shape[-1])


def _stacked(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add a new axis along which results follow one another."""
    axis = op.attributes["dim"]
    parts = builder.consume(*op.inputs, dense=False)
    return _applied(builder, lambda *arrays: np.stack(arrays, axis), *parts)


def _mean(builder: PlanBuilder, op: Op) -> Value:
    """Add a mean over all pixels (global average pooling)."""
    x = computed(builder.consume(*op.inputs)[0])
    axes = tuple(range(2, len(x.shape)))
    attributes = op.attributes
    if attributes.get("dim") != axes or not axes:
        raise UnplannedError("a mean over other axes")
    means = Value((*x.shape[:2], *(1,) * len(axes)), x.channels_last)
    builder.step(write_global_avg_pool, x, means, binds=True)
    if attributes["keepdim"]:
        return means
    return Value(x.shape[:2], False, means, lambda array: array.reshape(x.shape[:2]))


def _replayed(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add an op of one input whose node knows its forward function."""
    x, *others = builder.consume(*op.inputs, dense=False)
    # Other operands are constants, which the node's function already has.
    if any(isinstance(one, Value) for one in others):
        raise UnplannedError(op.name)
    return _replay(builder, op, x)


def _replay(builder: PlanBuilder, op: Op, x: Resolved) -> Value | Array:
    forward = op.attributes.get("forward")
    if forward is None:
        raise UnplannedError(op.name)
    return _applied(builder, forward, x)


def _watched(builder: PlanBuilder, op: Op) -> Value:
    """Add a call of who watches."""
    point, shown, part = (op.attributes[name] for name in ("point", "shown", "part"))
    operands = list(map(known, builder.consume(*op.inputs)))
    if shown == RECIPE:
        x = computed(operands[0])
        like = np.broadcast_to(np.float32(0), part.shape(x))
        builder.watch(Watched(point, shown, recipe=(part, like)), operands)
        return x
    passed = [computed(one) for one in operands[: point.n_results]]
    if shown == VALUE:
        builder.watch(Watched(point, shown), operands)
    else:
        if not point.in_place:
            passed = [Value(one.shape, one.channels_last) for one in passed]
        builder.watch(Watched(point, shown, tuple(passed)), operands)
    for number, value in enumerate(passed[1:], 1):
        builder.define((op.result[0], number), value)
    return passed[0]


def _normalized(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add a batch norm by running statistics, with the activation after it."""
    norm, after = op.attributes["norm"], fusable_activation(builder, op)
    if norm.given is None or "parameters" not in op.attributes:
        return _replayed(builder, op)
    if any(map(builder.ops.is_computed, op.inputs[1:])):
        raise UnplannedError("a computed weight")
    name = norm.activation
    if name is None and after is not None:
        clamp = activation_params_of(after)
        name = next((name for name, ends in CLAMPS.items() if clamp == (CLAMP, *ends, 0.0)), None)
    if name is not norm.activation:
        builder.include(after)
    x = computed(builder.consume(op.inputs[0])[0])
    y = Value(x.shape, x.channels_last)
    statistics, (weight, bias) = norm.given, op.attributes["parameters"]

    def step(x: Array, out: Array) -> None:
        normalize(x, weight, bias, norm.eps, norm.groups, statistics, None, name, out)

    builder.step(step, x, y)
    return y if name is norm.activation else define_activation(builder, after, y)


def _split(builder: PlanBuilder, op: Op) -> Value:
    """Split a result."""
    x = computed(builder.consume(*op.inputs, dense=False)[0])
    parts = [builder.apply(part, x) for part in op.attributes["parts"]]
    for number, part in enumerate(parts[1:], 1):
        builder.define((op.result[0], number), part)
    return parts[0]


_LOWERINGS: dict[str, Callable[[PlanBuilder, Op], Value | Array]] = {
    "Add": added,
    "Addmm": linear,
    "Alias": _passed_on,
    "Bmm": _product,
    "Cat": _concatenated,
    "Convolution": other_convolution,
    "Div": arithmetic,
    "IndexSelect": _selected,
    "PrepackedConvolution": convolution,
    "MaxPool1DWithIndices": max_pool,
    "MaxPool2DWithIndices": max_pool,
    "MaxPool3DWithIndices": max_pool,
    "Mean": _mean,
    "Mm": linear,
    "Mul": arithmetic,
    "NativeBatchNorm": _normalized,
    "Pow": _powered,
    "PreluKernel": prelu,
    "Relu": activated,
    "ReshapeAlias": _reshaped,
    "Rsub": arithmetic,
    "Split": _split,
    "SplitWithSizes": _split,
    "Stack": _stacked,
    "Squeeze": _reshaped,
    "Sub": arithmetic,
    "Unbind": _split,
    "UnsafeView": _reshaped,
    "Unsqueeze": _reshaped,
    "View": _reshaped,
    MARKER: _watched,
}


def _concatenate(axis: int, out: Array, *parts: Array) -> None:
    concatenate(parts, axis, out)
