"""Statistics of a tensor, reduced in blocks that stay in the cache: one pass over the memory.

Means and squared deviations of blocks are combined as in T. F. Chan, G. H. Golub, R. J. LeVeque,
"Updating formulae and a pairwise algorithm for computing sample variances", 1979.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from convcore._tensor import Tensor

NAMES = ("mean", "std", "min", "max", "zeros", "nan", "histogram")
DEFAULT = NAMES[:-1]
_BLOCK = 1 << 14  # elements: 64 KB of float32, with its buffer half of a second-level cache
_BINS = 64


def chosen(stats: Any) -> frozenset[str]:
    """Return the names of statistics that an argument stands for.

    Raises
    ------
    ValueError
        One is not known.
    """
    if stats is True:
        return frozenset(DEFAULT)
    names: Iterable[str] = (stats,) if isinstance(stats, str) else (stats or ())
    for name in names:
        if name not in NAMES:
            raise ValueError(f"stats: {name!r:.99} is none of {', '.join(NAMES)}")
    return frozenset(names)


def statistics(tensor: Tensor, names: frozenset[str]) -> dict[str, Any]:
    """Return the statistics of a tensor's elements by name.

    Parameters
    ----------
    tensor : Tensor
        Of any shape; complex elements by their absolute values.
    names : frozenset of str
        ``mean, std`` (population), ``min, max``; ``zeros``, the share of elements that are 0;
        ``nan``, how many are NaN; ``histogram``, counts and edges of 64 bins between the least and
        the largest finite element. NaN makes NaN of the first four; without elements they are NaN.
    """
    array = tensor._array
    if array.dtype.kind == "c":
        array = np.abs(array)
    elif array.dtype.kind not in "f" or array.dtype.itemsize < 4:
        array = array.astype(np.float64 if array.dtype.kind in "iu" else np.float32)
    flat = array.ravel("K")
    found = _Reduction(names)
    with np.errstate(all="ignore"):  # infinite elements make infinite or NaN statistics
        for first in range(0, flat.size, _BLOCK):
            found.add(flat[first : first + _BLOCK])
        return found.result(flat)


class _Reduction:
    """The statistics of the blocks so far."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.moments = bool({"mean", "std"} & names)
        self.limits = bool({"min", "max", "nan"} & names)
        self.size = self.zeros = self.nan = 0
        self.mean = self.squares = 0.0
        self.least, self.largest = math.inf, -math.inf
        self.buffer: Any = None

    def add(self, block: np.ndarray) -> None:
        if self.limits:
            least = float(block.min())
            if math.isnan(least):
                self.nan += int(np.count_nonzero(np.isnan(block)))
                self.least = self.largest = math.nan
            elif self.nan == 0:
                self.least = min(self.least, least)
                self.largest = max(self.largest, float(block.max()))
        if "zeros" in self.names:
            self.zeros += int(block.size - np.count_nonzero(block))
        if self.moments:
            self._add_moments(block)
        self.size += block.size

    def _add_moments(self, block: np.ndarray) -> None:
        mean = float(block.mean())
        step = mean - self.mean
        total = self.size + block.size
        self.mean += step * (block.size / total)
        if "std" in self.names:
            if self.buffer is None:
                self.buffer = np.empty_like(block)
            rest = self.buffer[: block.size]
            np.subtract(block, block.dtype.type(mean), out=rest)
            np.multiply(rest, rest, out=rest)
            self.squares += float(rest.sum()) + step * step * (self.size * block.size / total)

    def result(self, flat: np.ndarray) -> dict[str, Any]:
        none = math.nan if self.size == 0 else None
        everything: dict[str, Any] = {
            "mean": self.mean if none is None else none,
            "std": math.sqrt(self.squares / self.size) if none is None else none,
            "min": self.least if none is None else none,
            "max": self.largest if none is None else none,
            "zeros": self.zeros / self.size if none is None else none,
            "nan": self.nan,
        }
        found = {name: everything[name] for name in DEFAULT if name in self.names}
        if "histogram" in self.names:
            finite = flat if np.isfinite(flat).all() else flat[np.isfinite(flat)]
            counts, edges = np.histogram(finite, _BINS)
            found["histogram"] = counts.tolist(), edges.tolist()
        return found
