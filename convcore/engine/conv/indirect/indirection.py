"""Fields of the indirection buffer: pointers to the pixels under each tap of a block's outputs.

The struct is in _indirection.pxd.
"""

from __future__ import annotations

import math

from convcore.engine.conv.blocks import Blocks, share, up
from convcore.engine.conv.struct_fields import Fields, line, window
from convcore.engine.runtime import _isa
from convcore.engine.runtime.layout import Layout

# Limits of the kernels: classes of outputs, and bytes of a pointer.
MOST_CLASSES = 16
POINTER = 8
# Rows that the products hold in registers: blocks are multiples of it where possible.
ROWS = _isa.rows()
# Pixels of a block, and the minimum when there are so many taps that pointers fill a cache.
BLOCK = 192
LEAST_BLOCK = 24
POINTER_BYTES = 96 << 10
# Packed inputs of a block: as many channels at a time as fit the first constant, at least FEWEST,
# which must fit the second.
PACKED_BYTES = 1 << 20
MOST_PACKED_BYTES = 2 << 20
FEWEST = 16


def most_pixels(taps: int, most: int = BLOCK) -> int:
    """Return the maximum pixels of a block whose pointers fit in the cache."""
    fit = POINTER_BYTES // (POINTER * max(taps, 1))
    return max(LEAST_BLOCK, min(most, fit // ROWS * ROWS))


def too_many_taps(taps: int) -> str | None:
    """Return a reason if even the smallest block has too many pointers, else None."""
    if taps * POINTER * LEAST_BLOCK > POINTER_BYTES:
        return f"{taps} taps: too many pointers"
    return None


def too_many_pixels(seen: int) -> str | None:
    """Return a reason if a block reads more pixels than can be packed, else None."""
    if 4 * seen * FEWEST > MOST_PACKED_BYTES:
        return f"{seen} pixels under the taps of a block: too many to turn"
    return None


def most_channels(seen: int) -> int:
    """Return the maximum channels of `seen` pixels that are packed at a time."""
    return max(FEWEST, PACKED_BYTES // (4 * max(seen, 1)) // FEWEST * FEWEST)


def cut_pixels(total: int, most: int) -> Blocks:
    """Cut outputs into blocks of ``most``; the last one may be smaller."""
    size = min(most, total)
    count = -(-total // size) if size else 0
    return Blocks(total, size, count, count)


def cut_lines(n: int, counts: list[int], most: int) -> Blocks:
    """Cut outputs into blocks of about ``most``: whole planes or lines, or parts of long lines.

    This way few input lines are read by more than one block.
    """
    depth, height, width = counts
    total = n * depth * height * width
    if total == 0:
        return Blocks(0, 0, 0, 0)
    if width > most:
        size = up(share(width, most), ROWS)
        each = -(-width // size)
        return Blocks(width, size, each, total // width * each)
    plane = height * width
    if plane <= most:
        size = round(most / plane) * plane
    else:
        size = share(height, round(most / width)) * width
    return cut_pixels(total, size)


def counts_of(lines: list[Fields]) -> list[int]:
    """Return the number of outputs of each axis."""
    return [axis["count"] for axis in lines]


def rows(lines: list[Fields], columns: list[Fields], array: Layout, packed: bool) -> Fields:
    """Return the fields of Rows over an array, except ``bfloat16``, ``pitch`` and ``pixel``.

    ``narrow`` is false: the array is float32.

    ``columns`` has one Line per class; ``lines[2]`` is the first class's, with all outputs.
    """
    missing = [line(0, 0, 1, 0, 0, 1)] * (MOST_CLASSES - len(columns))
    return {
        "window": window(lines, array),
        "classes": len(columns),
        "columns": [*columns, *missing],
        "packed": packed,
        "narrow": False,
        "keep": [_step_between(lines[1]), _step_between(columns[0]) if len(columns) == 1 else 1],
        "size": span(array),
    }


def _step_between(axis: Fields) -> int:
    """Return the greatest step such that all inputs read by outputs are multiples of it."""
    return axis["stride"] if axis["taps"] <= 1 else math.gcd(axis["stride"], axis["step"])


def span(array: Layout) -> int:
    """Return the number of elements that an array spans; 0 if a stride is negative."""
    if any(s < 0 for s in array.strides):
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))


def seen_pixels(rows: Fields, blocks: Blocks) -> int:
    """Return an upper bound of the input pixels of one block, counted once per tap of depth."""
    if blocks.count == 0:
        return 0
    depth, height, width = rows["window"]["line"]
    keep, columns = rows["keep"], rows["columns"][: rows["classes"]]
    pieces = blocks.size < blocks.unit == width["count"]
    if pieces:
        seen = planes = 1
        across = max(_seen(c, -(-blocks.size // len(columns)) + 1, keep[1]) for c in columns)
        # The first inputs of the classes differ.
        across += max(c["first"] for c in columns) - min(c["first"] for c in columns)
    else:
        seen = -(-blocks.size // width["count"])
        planes = 1 if seen == 1 else (seen - 2) // height["count"] + 2
        across = -(-columns[0]["size"] // keep[1])
    down = seen * height["stride"] // keep[0] + planes * (_seen(height, 1, keep[0]) + 1)
    down = min(down, planes * -(-height["size"] // keep[0]))
    return max(0, depth["taps"] * down * across)


def _seen(axis: Fields, outputs: int, keep: int) -> int:
    """Return the number of inputs of an axis read by `outputs` adjacent outputs; 0 without taps."""
    if axis["taps"] == 0:
        return 0
    reach = (outputs - 1) * axis["stride"] + (axis["taps"] - 1) * axis["step"] + 1
    return min(-(-axis["size"] // keep), -(-reach // keep) + 1)
