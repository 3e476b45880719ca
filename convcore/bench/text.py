"""Words and numbers as reports print them."""

from __future__ import annotations

import math

from convcore.bench.pairing import Spread

SHORT = {
    "forward": "forward",
    "input_grad": "input grad",
    "weight_grad": "weight grad",
    "contiguous": "NCHW",
    "channels_last": "NHWC",
}


def short(kind: str) -> str:
    """Return a map's or a format's name as tables have it; anything else as it is."""
    return SHORT.get(kind, kind)


def milliseconds(seconds: float) -> str:
    """Return three significant digits, without an exponent; a dash for none."""
    if not seconds:
        return "-"
    value = 1e3 * seconds
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def whole(value: float) -> str:
    """Return a whole number; a dash for nan."""
    return "-" if math.isnan(value) else f"{value:.0f}"


def quartiles(ratio: Spread) -> str:
    """Return the quartiles, from the lower to the upper."""
    return f"{ratio.low:.2f}-{ratio.high:.2f}"


def mebibytes(count: int | None) -> str:
    """Return bytes in MiB; a dash for none."""
    return "-" if not count else f"{count / 2**20:.0f} MiB"


def counted(threads: int) -> str:
    """Return a number of threads in words."""
    return f"{threads} thread{'' if threads == 1 else 's'}"


def clock(seconds: float) -> str:
    """Return minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
