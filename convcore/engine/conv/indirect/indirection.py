"""Fields of the indirection buffer: which pixel lies under each tap of a block's outputs.

The struct is in _indirection.pxd.
"""

from __future__ import annotations

import math

from convcore.engine.conv.blocks import Blocks, share, up
from convcore.engine.conv.struct_fields import Fields, line, window
from convcore.engine.runtime import _isa
from convcore.engine.runtime.layout import Layout

# The kernels' bounds: classes of outputs, and bytes of a pointer.
MOST_CLASSES = 16
POINTER = 8
# Rows that the products keep in registers: blocks are whole numbers of them where they can be.
ROWS = _isa.rows()
# Pixels of a block, and fewer where there are so many taps that their pointers fill a cache.
BLOCK = 192
LEAST_BLOCK = 24
POINTER_BYTES = 96 << 10
# Packed inputs of a block: as many channels at a time as fit the first, at least FEWEST of them,
# which must fit the second.
PACKED_BYTES = 1 << 20
MOST_PACKED_BYTES = 2 << 20
FEWEST = 16


def most_pixels(taps: int, most: int = BLOCK) -> int:
    """Return the most pixels of a block whose pointers fit a cache."""
    fit = POINTER_BYTES // (POINTER * max(taps, 1))
    return max(LEAST_BLOCK, min(most, fit // ROWS * ROWS))


def too_many_taps(taps: int) -> str | None:
    """Return a reason where even the smallest block has too many pointers."""
    if taps * POINTER * LEAST_BLOCK > POINTER_BYTES:
        return f"{taps} taps: too many pointers"
    return None


def too_many_pixels(seen: int) -> str | None:
    """Return a reason where a block sees more pixels than can be packed."""
    if 4 * seen * FEWEST > MOST_PACKED_BYTES:
        return f"{seen} pixels under the taps of a block: too many to turn"
    return None


def most_channels(seen: int) -> int:
    """Return the most channels of so many pixels that are packed at a time."""
    return max(FEWEST, PACKED_BYTES // (4 * max(seen, 1)) // FEWEST * FEWEST)


def cut_pixels(total: int, most: int) -> Blocks:
    """Cut outputs into blocks of ``most``, but for what is left at the end."""
    size = min(most, total)
    count = -(-total // size) if size else 0
    return Blocks(total, size, count, count)


def cut_lines(n: int, counts: list[int], most: int) -> Blocks:
    """Cut outputs into blocks of about ``most``: whole planes or lines, or pieces of long lines.

    So a block sees few lines twice that another one sees too.
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
    """Return the outputs of each axis."""
    return [axis["count"] for axis in lines]


def rows(lines: list[Fields], columns: list[Fields], array: Layout, packed: bool) -> Fields:
    """Return the fields of Rows over an array, but for ``bfloat16``, ``pitch`` and ``pixel``.

    ``narrow`` is false: the array is float32.

    ``columns`` has one line a class; ``lines[2]`` is that of the first class, with all outputs.
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
    """Return the step from one input that outputs see to the next."""
    return axis["stride"] if axis["taps"] <= 1 else math.gcd(axis["stride"], axis["step"])


def span(array: Layout) -> int:
    """Return the number of elements that an array spans; 0 if a stride is negative."""
    if any(s < 0 for s in array.strides):
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))


def seen_pixels(rows: Fields, blocks: Blocks) -> int:
    """Return a bound of the input pixels that one block sees, each counted once a tap of depth."""
    if blocks.count == 0:
        return 0
    depth, height, width = rows["window"]["line"]
    keep, columns = rows["keep"], rows["columns"][: rows["classes"]]
    pieces = blocks.size < blocks.unit == width["count"]
    if pieces:
        seen = planes = 1
        across = max(_seen(c, -(-blocks.size // len(columns)) + 1, keep[1]) for c in columns)
        # The classes' first inputs differ.
        across += max(c["first"] for c in columns) - min(c["first"] for c in columns)
    else:
        seen = -(-blocks.size // width["count"])
        planes = 1 if seen == 1 else (seen - 2) // height["count"] + 2
        across = -(-columns[0]["size"] // keep[1])
    down = seen * height["stride"] // keep[0] + planes * (_seen(height, 1, keep[0]) + 1)
    down = min(down, planes * -(-height["size"] // keep[0]))
    return max(0, depth["taps"] * down * across)


def _seen(axis: Fields, outputs: int, keep: int) -> int:
    """Return the inputs of an axis that some neighbouring outputs see: none without a tap."""
    if axis["taps"] == 0:
        return 0
    reach = (outputs - 1) * axis["stride"] + (axis["taps"] - 1) * axis["step"] + 1
    return min(-(-axis["size"] // keep), -(-reach // keep) + 1)
