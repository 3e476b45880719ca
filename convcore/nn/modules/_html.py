"""How notebooks show a module: a tree that unfolds, with parameters' shapes and counts."""

from __future__ import annotations

import html
import itertools
from typing import Any

from convcore.nn.parameter import is_lazy

_MOST = 500  # modules of a tree
_DEEPEST = 40
_LONGEST = 200  # characters of what a module says of itself


def module_html(module: Any) -> str:
    """Return the HTML that a notebook shows for a module."""
    return f'<div style="font-family: monospace">{_tree("", module, [_MOST], 0)}</div>'


def _tree(name: str, module: Any, left: list[int], depth: int) -> str:
    """Return a module and those in it; ``left`` is how many may still be shown."""
    left[0] -= 1
    own = [*_lines(module)]
    children = module._modules.items()
    shown = []
    for place, (key, child) in enumerate(children):
        if child is None:
            shown.append(f"<div>{html.escape(key)}: None</div>")
        elif left[0] > 0 and depth < _DEEPEST:
            shown.append(_tree(key, child, left, depth + 1))
        else:
            shown.append(f"<div>... {len(children) - place} more</div>")
            break
    inside = "".join([*own, *shown])
    title = _title(name, module)
    if not inside:
        return f'<div style="margin-left: 1em">{title}</div>'
    opened = " open" if depth == 0 else ""
    return (
        f"<details{opened}><summary>{title}</summary>"
        f'<div style="margin-left: 1.5em">{inside}</div></details>'
    )


def _title(name: str, module: Any) -> str:
    extra = module.extra_repr().replace("\n", ", ")
    extra = extra if len(extra) <= _LONGEST else extra[:_LONGEST] + " ..."
    label = f"{name}: " if name else ""
    title = f"{html.escape(label)}<b>{html.escape(module._get_name())}</b>({html.escape(extra)})"
    count = sum(_count(parameter) for parameter in module.parameters())
    return title + (f", {count:,} parameters" if count else "")


def _lines(module: Any) -> list[str]:
    """Return a line for each parameter and buffer of a module itself."""
    parameters = ((*item, "") for item in module._parameters.items())
    buffers = ((*item, ", buffer") for item in module._buffers.items())
    every = [item for item in (*parameters, *buffers) if item[1] is not None]
    lines = [_line(*item) for item in itertools.islice(every, _MOST)]
    return lines + [f"<div>... {len(every) - _MOST} more</div>"] * (len(every) > _MOST)


def _line(name: str, tensor: Any, kind: str) -> str:
    frozen = "" if kind or tensor.requires_grad else ", not trained"
    size = f"{list(tensor.shape)}, {tensor.dtype}" if not is_lazy(tensor) else "not initialized yet"
    return f"<div>{html.escape(name)}: {html.escape(size)}{frozen}{kind}</div>"


def _count(parameter: Any) -> int:
    return 0 if is_lazy(parameter) else parameter.numel()
