"""Numbers and sizes as a report writes them, and text made harmless."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import Any


def safe(text: Any) -> str:
    """Return text with what HTML would read as its own escaped."""
    return html.escape(str(text), quote=True)


def number(value: float) -> str:
    """Return a number in three digits."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    shown = f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")
    return shown.replace("-", "\N{MINUS SIGN}") if value else "0"


def count(value: int) -> str:
    """Return a whole number: thousands in words' letters from 10,000 on."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= 10 * size or (unit != "k" and value >= size):
            return f"{value / size:.3g} {unit}"
    return f"{value:,}"


def bytes_of(value: int) -> str:
    """Return bytes in the largest unit that leaves at least 1."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value} B"


def seconds(value: float) -> str:
    """Return a time in milliseconds, or in seconds from 1 on."""
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def shape(output: Any) -> str:
    """Return a nested value of shapes as text: '64 x 56 x 56' of one tensor, with its batch."""
    if isinstance(output, dict):
        return ", ".join(f"{key}: {shape(value)}" for key, value in output.items())
    if isinstance(output, list):
        return " \N{MULTIPLICATION SIGN} ".join(map(str, output)) or "a number"
    if isinstance(output, tuple):
        return ", ".join(f"({shape(value)})" for value in output)
    return "\N{EN DASH}"


def shapes(given: Iterable[list[int]]) -> str:
    """Return the shapes of several tensors as text."""
    return ", ".join(map(shape, given))
