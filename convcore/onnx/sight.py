"""Functions that a net keeps under names of its own, as ``self.activation = F.relu``.

A mode sees what is called by a public name.  While a net is recorded, its own names for functions
are taken for those; what is called by yet other names is found by `check_constants`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from convcore import nn
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.overrides import interceptable, prepare


@restoring
def in_sight(net: nn.Module) -> Iterator[Calls]:
    """Have the mode see functions in a net's attributes, and in the files of its classes."""
    prepare()
    changes = [
        (names, name, value, seen)
        for names in _namespaces(net)
        for name, value in list(names.items())
        if (seen := interceptable(value)) is not value
    ]
    yield tuple((names.__setitem__, (name, value)) for names, name, value, _ in changes)
    for names, name, _, seen in changes:
        names[name] = seen


def _namespaces(net: nn.Module) -> Iterator[dict[str, Any]]:
    """Yield the attributes of all layers, and the names in the files of their classes."""
    yield from map(vars, net.modules())
    yield from files_of(net)


def files_of(net: nn.Module) -> Iterator[dict[str, Any]]:
    """Yield the names in the files of a net's classes, but for convcore's own."""
    files = {kind.__module__ for layer in net.modules() for kind in type(layer).__mro__}
    for file in sorted(files):
        if file.partition(".")[0] not in ("convcore", "builtins") and file in sys.modules:
            yield vars(sys.modules[file])
