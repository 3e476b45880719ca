"""The dtype that functions cast their operands to, in each thread: what `amp.autocast` sets."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from convcore._tensor import dtypes
from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime._swapping import SwappedCode

# For each device type of PyTorch's that has a default of its own.
_DEFAULTS: Mapping[str, Any] = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}


class Here(threading.local):
    """The state of autocast in a thread; it is off at its start."""

    def __init__(self) -> None:
        self.token = object()  # what holds the exchange where there is no context

    enabled = False  # on the CPU; for other devices it never is
    dtypes: Mapping[str, Any] = _DEFAULTS  # device type -> what its products are cast to
    caching = True
    cache: dict[int, tuple] | None = None  # parameters in the lower dtype, while contexts are open
    nesting = 0
    inside = False  # a listed function runs: what it calls casts nothing


here = Here()
# The listed functions cast while somebody holds this.
exchange = SwappedCode()


def state() -> dict[str, Any]:
    """Return what holds in this thread, beyond the cache."""
    return {"enabled": here.enabled, "dtypes": here.dtypes, "caching": here.caching}


class Casting(Restoring):
    """A context in which a state holds, such as that of another time.

    Parameters
    ----------
    wanted : dict
        As `state` returns it.
    """

    def __init__(self, wanted: dict[str, Any]):
        self._wanted = wanted

    def _back(self) -> tuple:
        self._token = object()
        names = ("enabled", "dtypes", "caching", "cache", "nesting", "inside")
        values = [(here.__setattr__, (name, getattr(here, name))) for name in names]
        return (*values, (exchange.give_back, (self._token,)))

    def _enter(self) -> Casting:
        exchange.hold(self._token)
        for name, value in self._wanted.items():
            setattr(here, name, value)
        if here.cache is None:
            here.cache = {}
        here.nesting += 1
        here.inside = False
        return self
