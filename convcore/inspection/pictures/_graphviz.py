"""A net's graph in Graphviz's language, and what Graphviz draws of it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from convcore.inspection.reporting._boxes import boxes_of, edges_of
from convcore.inspection.reporting._calls import Call
from convcore.inspection.reporting._text import shape, shapes

_PATIENCE = 60  # seconds that Graphviz may take
_COLOURS = {"block": "#e3ecfa", "costly": "#fdf0d5", "plain": "#f6f8fa"}


def source_of(calls: Sequence[Call], number: int, times: Mapping[str, float], depth: int) -> str:
    """Return a graph in Graphviz's language."""
    boxes = boxes_of(calls, number, depth)
    lines = [
        "digraph {",
        'node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=11]',
        f"0 [label={_quoted(f'input {shapes(calls[number].given)}'.strip())} style=rounded]",
    ]
    for place, box in enumerate(boxes, 1):
        title = f"{box.name(calls, number)}  {box.type(calls)}".strip()
        label = f"{title}\n{'  '.join(box.facts(calls, times))}"
        lines.append(f'{place} [label={_quoted(label)} fillcolor="{_COLOURS[box.kind(calls)]}"]')
    result = f"result {shape(calls[number].output)}"
    lines.append(f"{len(boxes) + 1} [label={_quoted(result)} style=rounded]")
    lines += [f"{start} -> {end}" for start, end in sorted(edges_of(calls, boxes))]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def drawn(program: str, source: str, kind: str) -> bytes:
    """Return what Graphviz makes of a graph."""
    command = [program, f"-T{kind}"]
    try:
        done = subprocess.run(
            command, input=source.encode(), capture_output=True, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"Graphviz has drawn nothing in {_PATIENCE} seconds") from None
    if done.returncode:
        raise RuntimeError(f"Graphviz: {done.stderr.decode('utf-8', 'replace').strip():.500}")
    return done.stdout
