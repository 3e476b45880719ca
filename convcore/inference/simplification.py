"""Simplification of a net's ops: several that are one, and factors that weights can take in.

- Numbers of a channel by which a convolution's result is multiplied, or to which they are added,
  go into its weights, and so do those of its input where no zeros are padded (which they would
  have to change, too).  ``batch_norm_folding.py`` does the same for batch norms, which are layers.
- x * sigmoid(x) is SiLU, x * clamp(x + 3, 0, 6) / 6 is Hardswish: one pass over memory for each.
- A batch norm that was folded into a convolution, and is recorded alone for somebody may watch
  what is between, goes back into it where nobody does.
- A product with a constant matrix, to which a constant vector is added, is a linear layer.

A rule sees an op and what computes its operands, and returns the op that replaces them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.runtime.checks import Array
from convcore.inference.batch_norm_folding import channels_last
from convcore.inference.execution_plan import FLOAT
from convcore.inference.layers import ConvPart, PrepackedConv
from convcore.inference.op_graph import MARKER, Op, Operand, OpGraph

# Scale and shift, (C,) or (1,), of y = x * scale + shift.
Affine = tuple[Array, Array]


def simplified(ops: OpGraph) -> OpGraph:
    """Return the ops with those replaced that a rule makes one of."""
    for rule in (_refolded, _silu, _hardswish, _linear, _affine_after, _affine_before):
        ops = _replaced(ops, rule)
    return ops


def _replaced(ops: OpGraph, rule: Callable[[_Ops, Op], Op | None]) -> OpGraph:
    """Return the ops with one rule applied to each, in order."""
    now = _Ops(ops)
    for op in ops.all:
        while (simpler := rule(now, op)) is not None:
            op = replace(simpler, layers=now.layers(op, simpler.inputs))
        now.add(op)
    return OpGraph(ops.input, now.left(ops.results), ops.results, ops.constants)


class _Ops:
    """The ops up to one of them, as they are after a rule was applied."""

    def __init__(self, ops: OpGraph) -> None:
        self._uses, self.is_computed = ops.uses, ops.is_computed
        self._made: dict[Operand, Op] = {}

    def add(self, op: Op) -> None:
        """Add the next op."""
        self._made[op.result] = op

    def source(self, operand: Operand, *names: str) -> Op | None:
        """Return the op of one of these names that computes an operand for one consumer alone."""
        op = self._made.get(operand) if isinstance(operand, tuple) else None
        return op if op is not None and op.name in names and self._uses[operand] == 1 else None

    def layers(self, op: Op, inputs: tuple[Operand, ...]) -> tuple[str, ...]:
        """Return the names of the layers that compute an op's result from these operands."""
        ends = {one for one in inputs if isinstance(one, tuple)}
        inner = {one for one in op.inputs if isinstance(one, tuple)} - ends
        before = [self._made[one] for one in op.inputs if one in inner and one in self._made]
        names = [name for each in before for name in self.layers(each, inputs)]
        return tuple(dict.fromkeys((*names, *op.layers)))

    def left(self, results: tuple[Operand, ...]) -> list[Op]:
        """Return the ops that the results and markers still need, in order."""
        needed = {one[0] for one in results if isinstance(one, tuple)}
        kept = []
        for op in reversed(self._made.values()):
            if op.result[0] in needed or op.name == MARKER:
                kept.append(op)
                needed |= {one[0] for one in op.inputs if isinstance(one, tuple)}
        return kept[::-1]


# Batch norms


def _refolded(ops: _Ops, op: Op) -> Op | None:
    """Return a convolution with the batch norm after it that was folded into its weights."""
    norm = op.attributes.get("folded")
    before = None if norm is None else ops.source(op.inputs[0], "PrepackedConvolution")
    part = None if before is None else before.attributes["layer"]
    if before is None or not isinstance(part, ConvPart):
        return None
    whole = part.with_norm(norm)
    if whole is None:
        return None
    return Op("PrepackedConvolution", {"layer": whole}, before.inputs, op.result)


# Activations


def _silu(ops: _Ops, op: Op) -> Op | None:
    """Return SiLU for x * sigmoid(x)."""
    if op.name != "Mul":
        return None
    for x, gate in (op.inputs, op.inputs[::-1]):
        sigmoid = ops.source(gate, "Sigmoid")
        if sigmoid is not None and _are_same(sigmoid.inputs[0], x):
            return Op("Silu", {"kernel": ("silu",)}, (x,), op.result)
    return None


def _hardswish(ops: _Ops, op: Op) -> Op | None:
    """Return Hardswish for x * clamp(x + 3, 0, 6) / 6, however it is written."""
    affine = _affine(ops, op)
    if affine is None:
        return None
    product = ops.source(affine[0], "Mul")
    if product is None or not _is_close(affine[1], (1 / 6, 0)):
        return None
    for x, gate in (product.inputs, product.inputs[::-1]):
        clamp = ops.source(gate, "Hardtanh", "Clamp")
        if clamp is None or clamp.attributes.get("kernel") != ("clamp", 0, 6):
            continue
        moved = ops.source(clamp.inputs[0], "Add", "Sub")
        inner = None if moved is None else _affine(ops, moved)
        if inner is not None and _are_same(inner[0], x) and _is_close(inner[1], (1, 3)):
            return Op("Hardswish", {"kernel": ("hardswish",)}, (x,), op.result)
    return None


def _are_same(a: Operand, b: Operand) -> bool:
    return a is b is not None or (isinstance(a, tuple) and a == b)


def _is_close(affine: Affine, numbers: tuple[float, float]) -> bool:
    return all(
        each.size == 1 and math.isclose(each[0], number, rel_tol=1e-6)
        for each, number in zip(affine, numbers, strict=True)
    )


# Linear layers


def _linear(ops: _Ops, op: Op) -> Op | None:
    """Return one op for a product with a constant matrix and the sum with a constant vector."""
    if op.name != "Add":
        return None
    for operand, other in (op.inputs, op.inputs[::-1]):
        product = ops.source(operand, "Mm")
        if product is None or not isinstance(other, Tensor) or ops.is_computed(other):
            continue
        right = product.inputs[1]
        if isinstance(right, Tensor) and other._array.shape == right._array.shape[1:]:
            return Op("Addmm", {}, (other, *product.inputs), op.result)
    return None


# Factors and summands of convolutions


def _affine_after(ops: _Ops, op: Op) -> Op | None:
    """Return a convolution that takes in the numbers its result is multiplied by, or added to."""
    for before in filter(None, (ops.source(x, "PrepackedConvolution") for x in op.inputs)):
        layer = before.attributes["layer"]
        filters, bias = layer.prepacked.weight, layer.prepacked.bias
        affine = _affine(ops, op, filters.ndim)
        if layer.activation is not None or affine is None:
            return None
        scale, shift = affine[1]
        if scale.size not in (1, filters.shape[0]):
            return None
        weight = filters * scale.reshape(-1, *(1,) * (filters.ndim - 1))
        offsets = shift if bias is None else bias * scale + shift
        return _with_weights(layer, weight, offsets, before.inputs, op)
    return None


def _affine_before(ops: _Ops, op: Op) -> Op | None:
    """Return a convolution that takes in the numbers its input is multiplied by, or added to."""
    if op.name != "PrepackedConvolution":
        return None
    layer = op.attributes["layer"]
    filters, bias, groups = layer.prepacked.weight, layer.prepacked.bias, layer.steps["groups"]
    before = ops.source(op.inputs[0], *_AFFINE)
    affine = None if before is None else _affine(ops, before, filters.ndim)
    if affine is None:
        return None
    x, (scale, shift) = affine
    channels = filters.shape[1] * groups
    if scale.size not in (1, channels) or (shift.any() and _pads(layer.steps["padding"])):
        return None
    scale, shift = (_by_filter(each, filters, groups) for each in (scale, shift))
    offsets = (filters * shift).reshape(len(filters), -1).sum(1)
    offsets = offsets if bias is None else bias + offsets
    return _with_weights(layer, filters * scale, offsets, (x,), op)


def _by_filter(numbers: Array, filters: Array, groups: int) -> Array:
    """Return numbers of an input channel for each filter: (C_out, C_in/G, 1, ...)."""
    o, c = filters.shape[:2]
    of_groups = np.broadcast_to(numbers, c * groups).reshape(groups, c)
    return np.repeat(of_groups, o // groups, 0).reshape(o, c, *(1,) * (filters.ndim - 2))


def _pads(padding: Any) -> bool:
    """Return whether a convolution may pad zeros."""
    return padding != "valid" and (isinstance(padding, str) or bool(np.any(padding)))


def _with_weights(
    layer: PrepackedConv | ConvPart, weight: Array, bias: Array, inputs: tuple[Operand, ...], op: Op
) -> Op:
    """Return a convolution with other weights in place of an op."""
    dtype = layer.prepacked.weight.dtype
    offsets = np.broadcast_to(bias, len(weight)).astype(dtype)
    conv = PrepackedConv(
        channels_last(weight.astype(dtype)), offsets, layer.steps, layer.activation
    )
    return Op("PrepackedConvolution", {"layer": conv}, inputs, op.result)


_AFFINE = ("Add", "Div", "Mul", "Sub")


def _affine(ops: _Ops, op: Op, rank: int = 0) -> tuple[Operand, Affine] | None:
    """Return what an op multiplies by, or adds to, a constant number a channel; and the numbers.

    rank : of the result, if numbers may differ from channel to channel.
    """
    if op.name not in _AFFINE:
        return None
    for k, other in enumerate(op.inputs):
        x = op.inputs[1 - k]
        if not ops.is_computed(x) or ops.is_computed(other):
            continue
        numbers = _numbers(op, other, rank)
        if numbers is None:
            return None
        one, zero = np.ones_like(numbers), np.zeros_like(numbers)
        match op.name, k:
            case "Mul", _:
                return x, (numbers, zero)
            case "Add", _:
                return x, (one, numbers)
            case "Sub", 1:
                return x, (one, -numbers)
            case "Sub", 0:
                return x, (-one, numbers)
            case "Div", 1 if numbers.all():
                return x, (1 / numbers, zero)
    return None


def _numbers(op: Op, constant: Operand, rank: int) -> Array | None:
    """Return a constant operand as numbers of a channel, (C,) or (1,), in float64."""
    if constant is None:
        number = op.attributes.get("number")
        return np.array([number], "f8") if isinstance(number, int | float) else None
    assert isinstance(constant, Tensor)
    array = constant._array
    if array.dtype != FLOAT:
        return None
    if array.size == 1 and array.ndim <= max(rank, 1):
        return array.reshape(1).astype("f8")
    of_channels = (array.size, *(1,) * (rank - 2))
    if rank < 3 or array.shape not in (of_channels, (1, *of_channels)):
        return None
    return array.reshape(-1).astype("f8")
