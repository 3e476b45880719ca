"""Sizes of layers: one number for all axes, or one number an axis.

PyTorch's names, because programs that define their own layers import these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["_ntuple", "_pair", "_quadruple", "_single", "_triple"]


def _ntuple(n: int) -> Callable[[Any], tuple]:
    """Return the function that makes a tuple of an iterable, or of n times anything else."""

    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    return parse


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)
