"""Statistics of a tensor's elements, by name."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.layers.norm.moments import moments
from convcore.engine.runtime.errstate import quiet

NAMES = ("mean", "std", "min", "max", "zeros", "nan", "histogram")
_DEFAULT = frozenset(NAMES[:-1])
_BINS = 64


def chosen(stats: Any) -> frozenset[str]:
    """Return the names of statistics that an argument stands for.

    Raises
    ------
    TypeError, ValueError
        One is not known.
    """
    if stats is True:
        return _DEFAULT
    names: Collection[str] = (stats,) if isinstance(stats, str) else (stats or ())
    if not isinstance(names, Collection):
        raise TypeError(f"stats must be True, or names of statistics, got {stats!r:.99}")
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
        array = quiet(np.abs, array)
    found = moments(array)
    chosen_ones: dict[str, Any] = {
        "mean": found.mean,
        "std": math.sqrt(found.variance),
        "min": found.least,
        "max": found.largest,
        "zeros": found.zeros / found.size if found.size else math.nan,
        "nan": found.nan,
    }
    if names == _DEFAULT:
        return chosen_ones
    chosen_ones = {name: value for name, value in chosen_ones.items() if name in names}
    if "histogram" in names:
        chosen_ones["histogram"] = quiet(_histogram, array)
    return chosen_ones


def _histogram(array: np.ndarray) -> tuple[list[int], list[float]]:
    """Return counts and edges of bins between the least and the largest finite element."""
    finite = np.isfinite(array)
    counts, edges = np.histogram(array if finite.all() else array[finite], _BINS)
    return counts.tolist(), edges.tolist()
