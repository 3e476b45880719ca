"""Operators on strings, in NumPy's arrays of objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, value_of


@operator("StringNormalizer")
def string_normalizer(
    x: Value,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: list[str] | None = None,
) -> Value:
    """Return strings without stop words, in lower or upper case."""
    stop = set(stopwords or [])
    fold = (lambda s: s) if is_case_sensitive else str.lower
    stop = stop if is_case_sensitive else {each.lower() for each in stop}
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(case_change_action, str)
    rows = [[change(s) for s in map(str, row) if fold(s) not in stop] for row in np.atleast_2d(x)]
    rows = [row or [""] for row in rows]
    return np.array(rows if x.ndim == 2 else rows[0], object)


@operator("StringConcat")
def string_concat(a: Value, b: Value) -> Value:
    """Return strings joined, element by element."""
    return np.asarray(np.asarray(a, object) + np.asarray(b, object), object)


@operator("StringSplit")
def string_split(x: Value, *, delimiter: str | None = None, maxsplit: int | None = None) -> Any:
    """Return the parts of each string, filled up with empty ones, and how many there are."""
    limit = -1 if maxsplit is None else maxsplit
    parts = [str(s).split(delimiter or None, limit) for s in np.ravel(x)]
    most = max(map(len, parts), default=0)
    rows = np.array([row + [""] * (most - len(row)) for row in parts], object)
    counts = np.array([len(row) for row in parts], np.int64).reshape(np.shape(x))
    return rows.reshape(*np.shape(x), most), value_of(counts)
