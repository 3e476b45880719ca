"""Backends that are not there: switches that may be set, read and restored, and change nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from convcore.engine.runtime.restoring import Calls, restoring


def absent() -> bool:
    """Return False."""
    return False


def no_version() -> None:
    """Return None: there is no such library."""


def flags_of(module: str) -> Callable[..., AbstractContextManager[None]]:
    """Return a module's ``flags``: a context that sets its switches and restores them."""

    @restoring
    def flags(*args: Any, **switches: Any) -> Iterator[Calls]:
        """Set switches of this module until the end of a ``with`` block; they change nothing."""
        names = vars(sys.modules[module])
        yield ((names.update, ({name: names[name] for name in switches if name in names},)),)
        names.update(switches)

    return flags
