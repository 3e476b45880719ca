"""Cut a net's ops at the watched points: keep the markers there and remove all others.

At a point, a plan shows a value, or all that a hook of a module is called with.  Of a convolution
that is fused with what comes after it, it may show a recipe instead: the convolution's input, and
the part of it that computes the value.  Nothing has to be unfused for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from convcore._tensor import Tensor
from convcore.autograd.node import Node
from convcore.inference.layers import ConvPart, Folded
from convcore.inference.op_graph import MARKER, Op, Operand, OpGraph
from convcore.inference.plan_builder import UnplannedError

# What a plan passes to listeners: how to compute a result; the result; a replaceable result;
# the call's arguments as well. Each level includes the ones before it.
RECIPE, VALUE, CHANGE, CALL = range(4)


def cut(ops: OpGraph, selected: Mapping[Node | None, int]) -> OpGraph:
    """Return a net's ops with markers at some of its points alone.

    Parameters
    ----------
    ops : OpGraph
        With markers at all points: see `points.PointRecorder`.
    selected : dict of Node to int
        By the marker, what is to be shown; values are shown where there is no recipe.

    Raises
    ------
    UnplannedError
        A result is the input, or a point has no marker.
    """
    if None in selected:
        raise UnplannedError("values that are not known")
    passed: dict[Operand, Operand] = {}  # what passes a marker that is left out
    recipes: dict[Operand, tuple[Operand, ConvPart]] = {}  # a convolution's input, and its part
    sizes: dict[Operand, int] = {}
    kept: set[Operand] = set()
    remaining = []
    for op in ops.all:
        inputs = tuple([passed.get(one, one) for one in op.inputs])
        point = op.attributes.get("point")
        if point is None:
            remaining.append(replace(op, inputs=inputs))
            if (recipe := _recipe(remaining[-1], recipes)) is not None:
                recipes[op.result] = recipe
            continue
        outputs = [(op.result[0], number) for number in range(point.n_results)]
        for operands in (inputs, outputs):
            sizes.update(zip(operands, point.sizes, strict=False))
        shown = selected.get(op.result[0])
        if shown == RECIPE:
            x, part = recipes.get(inputs[0], (None, None))
            # A recipe retains its input: skip it if the input is larger and not retained already.
            if part is None or (x not in kept and sizes[x] > sizes[inputs[0]]):
                shown = VALUE
        if shown is None or shown == RECIPE:
            passed.update(zip(outputs, inputs, strict=False))
        attributes: dict[str, Any] = {**op.attributes, "shown": shown, "part": None}
        if shown == RECIPE:
            attributes["part"], inputs = part, (x,)
        elif shown != CALL:
            inputs = inputs[: point.n_results]
        if shown is not None:
            kept.update(inputs, outputs)
            remaining.append(Op(op.name, attributes, inputs, op.result))
    results = [passed.get(one, one) for one in ops.results]
    if any(isinstance(one, Tensor) or one is None for one in results):
        raise UnplannedError("a result is the input")
    return OpGraph(ops.input, remaining, cast(Any, results), ops.constants)


def _recipe(
    op: Op, recipes: Mapping[Operand, tuple[Operand, ConvPart]]
) -> tuple[Operand, ConvPart] | None:
    """Return a convolution's input and its `ConvPart` if an activation is fused after it."""
    if op.name == "PrepackedConvolution":
        part = op.attributes["layer"]
        return (op.inputs[0], part) if isinstance(part, ConvPart) else None
    norm = op.attributes.get("folded")
    x, before = recipes.get(op.inputs[0], (None, None)) if norm is not None else (None, None)
    part = None if before is None else before.with_norm(norm)
    return (x, part) if part is not None and part.is_followed else None


def unfused(ops: OpGraph) -> Iterator[Folded]:
    """Yield the folded layers that are not fused because their input is watched."""
    for op in ops.all:
        layer = op.attributes.get("folded")
        before = None if layer is None else ops.of(op.inputs[0])
        name = "" if before is None else before.name
        is_shown = name == "PrepackedConvolution" and ops.only_consumer(op.inputs[0]) is not op
        if layer is not None and (is_shown or name in (MARKER, "NativeBatchNorm")):
            yield layer
