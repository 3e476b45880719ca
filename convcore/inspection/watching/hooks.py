"""Hooks that stay with one net: a copy of it, or a file, gets hooks that do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _nothing(*args: Any) -> None:
    """Do nothing."""


class Hook:
    """A hook that calls a function; copied or pickled, one that does nothing.

    Who copies a net inside a block that watches it, to average its weights, say, would else copy
    what watches, and all that it keeps.

    Parameters
    ----------
    call : callable
    fused : object, optional
        What hears of the module if it runs fused with others; see `nn.modules._hooks`.
    planned : object, optional
        What hears of it in plans of `optimize_for_inference`; see `inference.points.Watch`.
    """

    __slots__ = ("_call", "fused", "planned")

    def __init__(self, call: Callable = _nothing, fused: Any = None, planned: Any = None) -> None:
        self._call = call
        self.fused, self.planned = fused, planned

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        return self._call(*args)

    def __deepcopy__(self, memo: dict) -> Hook:
        return Hook()

    def __reduce__(self) -> tuple:
        return Hook, ()
