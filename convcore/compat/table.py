"""Table of PyTorch's public names: here, different, missing, or out of scope.

    python -m convcore.compat.table

The site has the page, which its build writes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.util import find_spec

from convcore._errors import pytorch, scope
from convcore.compat.differences import DIFFERENCES
from convcore.compat.door import fallback, real

MODULES = (
    *("torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init"),
    *("torch.nn.parameter", "torch.nn.utils", "torch.nn.utils.rnn", "torch.nn.utils.prune"),
    *("torch.nn.utils.parametrize", "torch.nn.utils.parametrizations", "torch.nn.attention"),
    *("torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils.data"),
    *("torch.utils.checkpoint", "torch.autograd", "torch.autograd.functional"),
    *("torch.autograd.graph", "torch.linalg", "torch.special", "torch.distributions"),
    *("torch.func", "torch.amp", "torch.hub", "torch.overrides", "torch.testing"),
)

STATUSES = ("here", "convcore run", "differs", "missing", "out of scope")

_HEAD = f"""\
# PyTorch's names

Each public name of PyTorch {pytorch.VERSION}, module by module: what convcore has, what differs and
how, what is missing and what to use instead, and what is out of scope and why.  Some names are
there for unmodified programs, under `convcore run`, and not in `import convcore as torch`: older
ones, and those that programs only ask about.  Look a name up with the browser's search in the
page.  `python -m convcore.compat.table` prints it.

These differences are not listed name by name.  A call that PyTorch refuses because it lacks a
kernel or formula for a dtype may work here.  convcore may keep other tensors for the backward pass
than PyTorch does, so that a change in place may be refused here and allowed there, or the reverse.
Comparisons in place, as `lt_`, return tensors without a gradient.  Where a call has two faults,
the error may name the other one; tensors without elements are checked like others.

Neither library promises which of equal values `argsort`, `topk`, `kthvalue` or `median` takes, the
gradient where there is no derivative, the strides of results that are not views, how often a tensor
was written while it was made (`_version`), or numbers that are zero, or equal, but for rounding.
Here integers do not wrap around in gradients, and what overflows only on the way is computed.
Of elements that lie several times in memory, as expanded ones, none is changed in place.
"""


def is_here(module: str, name: str) -> bool:
    """Return whether convcore has a name of a module of PyTorch's."""
    if module == "torch.Tensor":
        return hasattr(importlib.import_module("convcore").Tensor, name)
    sources = [importlib.import_module(source) for source in real(module)]
    if any(hasattr(source, name) for source in sources) or real(f"{module}.{name}"):
        return True
    return bool(sources) and fallback(sources, name) is not None


def _is_own(module: str, name: str) -> bool:
    """Return whether a name that is here is in convcore itself, or a module of it."""
    if module == "torch.Tensor":
        return True
    own = importlib.import_module(module.replace("torch", "convcore", 1))
    is_package = hasattr(own, "__path__")
    return hasattr(own, name) or (is_package and bool(find_spec(f"{own.__name__}.{name}")))


def sorted_out(module: str) -> dict[str, list[str]]:
    """Return a module's names by status, of `STATUSES`."""
    found: dict[str, list[str]] = {status: [] for status in STATUSES}
    for name in sorted(pytorch.public()[module]):
        path = f"{module}.{name}"
        if is_here(module, name):
            status = "here" if _is_own(module, name) else "convcore run"
            status = "differs" if path in DIFFERENCES else status
        else:
            status = "out of scope" if scope.reason(path) else "missing"
        found[status].append(name)
    return found


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield from _HEAD.splitlines()
    everything = {module: sorted_out(module) for module in MODULES}
    yield from ("", "| module | here | under `convcore run` | differ | missing | out of scope |")
    yield "| --- | --- | --- | --- | --- | --- |"
    for module, found in everything.items():
        yield f"| `{module}` | {' | '.join(str(len(listed)) for listed in found.values())} |"
    for module, found in everything.items():
        yield from ("", f"## {module}")
        yield from _section(module, found)


def _section(module: str, found: dict[str, list[str]]) -> Iterator[str]:
    if found["here"]:
        yield from ("", f"Here: {_listed(found['here'])}.")
    if found["convcore run"]:
        yield from ("", f"Under `convcore run` alone: {_listed(found['convcore run'])}.")
    if found["differs"]:
        yield from ("", "| differs | how |", "| --- | --- |")
        yield from (f"| `{n}` | {DIFFERENCES[f'{module}.{n}']} |" for n in found["differs"])
    if found["missing"]:
        known = {name: scope.instead(f"{module}.{name}") for name in found["missing"]}
        shown = (f"`{name}`{f' (use `{use}`)' if use else ''}" for name, use in known.items())
        yield from ("", f"Missing: {', '.join(shown)}.")
    reasons: dict[str, list[str]] = {}
    for name in found["out of scope"]:
        reasons.setdefault(scope.reason(f"{module}.{name}"), []).append(name)
    for reason, listed in reasons.items():
        yield from ("", f"Out of scope ({reason}): {_listed(listed)}.")


def _listed(found: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in found)


if __name__ == "__main__":
    print(*page(), sep="\n")
