"""If, Loop and Scan, run in Python; calls of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import convcore
from convcore.onnx.values import Value, array_of, axis_of, value_of

Body = Callable[..., list[Value]]
# The dtype and sizes that a graph says an output has; a size that it leaves open is 0.
Kind = tuple[np.dtype, tuple[int, ...]]


def _wanted(results: list[Value], outputs: int) -> Any:
    return results[0] if outputs == 1 else tuple(results[:outputs])


def _is_true(value: Value) -> bool:
    return bool(array_of(value).reshape(()))


def call(*inputs: Value, body: Body, outputs: int) -> Any:
    """Return what a function's body computes."""
    return _wanted(body(*inputs), outputs)


def if_(condition: Value, *, then_branch: Body, else_branch: Body, outputs: int) -> Any:
    """Return what one of two graphs computes."""
    return _wanted((then_branch if _is_true(condition) else else_branch)(), outputs)


def loop(
    limit: Value = None,
    condition: Value = None,
    *states: Value,
    body: Body,
    kinds: list[Kind],
    outputs: int,
) -> Any:
    """Run a graph a number of times, or while a condition holds: return states, stacked outputs."""
    most = None if limit is None else int(array_of(limit).reshape(-1)[0])
    goes_on = condition is None or _is_true(condition)
    kept, scans, step = list(states), [], 0
    while goes_on and (most is None or step < most):
        result = body(convcore.tensor(step), value_of(np.asarray(True)), *kept)
        goes_on = _is_true(result[0])
        kept = result[1 : 1 + len(states)]
        scans.append(result[1 + len(states) :])
        step += 1
    of_scans = kinds[1 + len(states) :]
    stacked = [
        _stacked([row[k] for row in scans], of_scans[k]) for k in range(outputs - len(states))
    ]
    return _wanted([*kept, *stacked], outputs)


def _stacked(values: list[Value], kind: Kind, axis: int = 0) -> Value:
    if values:
        return convcore.stack(values, axis)
    dtype, sizes = kind
    place = axis_of(axis, len(sizes) + 1)
    return value_of(np.zeros((*sizes[:place], 0, *sizes[place:]), dtype))


def scan(
    *inputs: Value,
    body: Body,
    kinds: list[Kind],
    outputs: int,
    num_scan_inputs: int,
    scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None,
    scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
) -> Any:
    """Run a graph over the slices of tensors: return states and stacked outputs."""
    count = len(inputs) - num_scan_inputs
    kept, sources = list(inputs[:count]), inputs[count:]
    axes = scan_input_axes or [0] * num_scan_inputs
    backwards = scan_input_directions or [0] * num_scan_inputs
    slices = [
        list(x.unbind(axis))[:: -1 if back else 1]
        for x, axis, back in zip(sources, axes, backwards, strict=True)
    ]
    rows = []
    for each in zip(*slices, strict=True):
        result = body(*kept, *each)
        kept = result[:count]
        rows.append(result[count:])
    out_axes = scan_output_axes or [0] * (outputs - count)
    out_back = scan_output_directions or [0] * (outputs - count)
    stacked = [
        _stacked(
            [row[k] for row in rows][:: -1 if out_back[k] else 1], kinds[count + k], out_axes[k]
        )
        for k in range(outputs - count)
    ]
    return _wanted([*kept, *stacked], outputs)


def sequence_map(first: list[Value], *others: Value, body: Body, outputs: int) -> Any:
    """Return sequences of what a graph computes for each tensor of a sequence, or of several."""
    rows = [
        body(each, *(other[k] if isinstance(other, list) else other for other in others))
        for k, each in enumerate(first)
    ]
    return _wanted([[row[k] for row in rows] for k in range(outputs)], outputs)


CONTROL_FLOW: dict[str, Callable[..., Any]] = {
    "If": if_,
    "Loop": loop,
    "Scan": scan,
    "SequenceMap": sequence_map,
}
