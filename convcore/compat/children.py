"""Child processes that do not inherit `torch`: those that are spawned, or come from a fork server.

Before such a child imports the parent's main module it reads what the parent prepared for it
(`multiprocessing.spawn.get_preparation_data`).  One more value there opens the door as it is read.
"""

from __future__ import annotations

import multiprocessing.spawn as spawn
from collections.abc import Callable
from typing import Any

_prepared = spawn.get_preparation_data


class _Opening:
    """What calls a function where it is unpickled."""

    def __init__(self, function: Callable[[], Any]):
        self.function = function

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return self.function, ()


def follow(function: Callable[[], Any]) -> None:
    """Call a function in all processes that are started from here on, before anything else."""

    def prepared(name: str) -> dict[str, Any]:
        return {"convcore": _Opening(function), **_prepared(name)}

    spawn.get_preparation_data = prepared


def leave() -> None:
    """Undo it."""
    spawn.get_preparation_data = _prepared
