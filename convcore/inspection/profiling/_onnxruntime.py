"""The profile that ONNX Runtime writes of the same model, matched with a plan's steps by names.

ONNX Runtime names a node that it has changed or fused after an output, as in "conv1.out_nchwc", or
after the nodes that it was made of; nodes of its own, such as ReorderInput, are of no node of the
file.

References
----------
https://onnxruntime.ai/docs/performance/tune-performance/profiling-tools.html for the file.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from convcore import nn
    from convcore.inspection.profiling._tree import ProfileRow

_SUFFIX = "_kernel_time"


class OtherNode(NamedTuple):
    """A node of ONNX Runtime's graph: name, operator, and seconds of a run."""

    name: str
    type: str
    seconds: float


class Match(NamedTuple):
    """Steps of a plan, and the nodes of ONNX Runtime that compute the same; [] where none does."""

    steps: list[ProfileRow]
    others: list[OtherNode]


def read(path: str | os.PathLike[str]) -> list[OtherNode]:
    """Return the nodes of a profile that a session of ONNX Runtime wrote at its end.

    Of several runs the first is left out, and the mean of the others is taken.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It has no nodes: it is another file, or nothing was run.
    """
    events = json.loads(Path(path).read_text(encoding="utf-8"))
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events if isinstance(events, list) else ():
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith(_SUFFIX):
            key = name.removesuffix(_SUFFIX), str(event["args"].get("op_name", ""))
            taken[key].append(1e-6 * event["dur"])
    if not taken:
        raise ValueError(f"{path} has no nodes of a profile by ONNX Runtime")
    n_runs = sum(event.get("name") == "model_run" for event in events)
    found = []
    for (name, type), seconds in taken.items():
        n_each = max(len(seconds) // max(n_runs, 1), 1)  # of nodes that share a name
        later = seconds[n_each:] or seconds
        found.append(OtherNode(name, type, sum(later) / len(later) * n_each))
    return found


def names_by_output(model: nn.Module) -> dict[str, str]:
    """Return the nodes' names of all ONNX graphs in a net by the names of the nodes' outputs."""
    kind: Any = getattr(sys.modules.get("convcore.onnx.graph"), "Graph", None)
    found: dict[str, str] = {}
    for graph in [] if kind is None else model.modules():
        for step in graph.steps if isinstance(graph, kind) else ():
            name = getattr(graph._modules[step.module], "onnx_name", "") or step.module
            found.update(dict.fromkeys(step.outputs, name))
    return found


def matched(
    steps: Sequence[ProfileRow], others: Iterable[OtherNode], by_output: Mapping[str, str]
) -> list[Match]:
    """Return steps and the nodes of ONNX Runtime that share a node of the file, in their order.

    Steps that share one are together. Nodes that fit no step come last, those of one operator
    together.
    """
    group: dict[str, Match] = {}  # by the names of nodes
    found: list[Match] = []
    for step in steps:
        known = next((group[name] for name in step.layers if name in group), None)
        if known is None:
            known = Match([], [])
            found.append(known)
        known.steps.append(step)
        group.update({name: known for name in step.layers if name not in group})
    alone: dict[str, Match] = {}
    nodes = {**by_output, **{name: name for name in group}}
    for other in others:
        match = next((group[name] for name in _meant(other.name, nodes) if name in group), None)
        (match or alone.setdefault(other.type, Match([], []))).others.append(other)
    return [*found, *alone.values()]


def _meant(name: str, nodes: Mapping[str, str]) -> Iterable[str]:
    """Yield the nodes of the file that a name of ONNX Runtime's may mean, the likeliest first."""
    if name in nodes:
        yield nodes[name]
    plain = re.sub(r"(_nchwc|_token_\d+|_fused)+$", "", name)
    if plain in nodes:
        yield nodes[plain]
    words = set(re.split(r"[\s,;+&|]+", plain))  # a composed name
    yield from (nodes[word] for word in words if word in nodes)
