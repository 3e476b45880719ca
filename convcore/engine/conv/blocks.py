"""Cache blocking: sizes of blocks of pixels, channels and K, and bounds on memory.

Block sizes depend on shapes alone, never on the number of threads; so the bits do not either.

Figures: 2 cores with AVX-512 and 1 MiB of L2 each, mean over the table's layers whose plans
change: benchmarks/sweep.py --constant blocks.BLOCK --values 128,512 (same for other constants).
Bits depend on all of these constants: replace one only by a value that is clearly better.
"""

from __future__ import annotations

from dataclasses import dataclass

# Bytes of one K-block's patches: half of a 1 MiB L2; the other half is for BLAS's packed copy.
# Half of this takes 4 to 8 % longer, twice from 5 % less to 4 % more, on one thread.
PART_BYTES = 512 << 10
# Pixels of a block.  A gemm packs its weights again for each block, at about 1/BLOCK of its work.
# 128 take from 3 % less to 3 % more, 512 5 % longer, on one thread.
BLOCK = 256
# Work of fewer items than this is cut finer, for many threads.  With 8, weight gradients take 5 %
# less on 2 threads, a training step of ResNet-50 up to 1 %; but 1.5 to 1.9 times as long on 16.
ITEMS = 16
# Minimum output channels of a block: smaller ones lose more in the gemm than they gain; no layer
# of the table has another plan with 64 or 256.
LEAST_O_BLOCK = 128
# Blocks are whole tiles of BLAS's kernels: 160 of 960 channels take 8 to 16 % less than 138.
O_TILE = 32
# Partial weight gradients: maximum number, and maximum bytes in all.  8 and 32 are equally fast on
# 2 threads (--busy --passes weight_grad).
MOST_PARTIALS = 16
PARTIAL_BYTES = 32 << 20
# Bounds of every algorithm: bytes of a thread's scratch; packed or transformed weights.
SCRATCH_BYTES = 8 << 20
MOST_WEIGHTS = 4


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of output pixels over the batch: the fields of Blocks in engine/conv/_blocks.pxd."""

    unit: int
    size: int
    per_unit: int
    count: int


def cut(n: int, pixels: int, channels_last: bool, most: int) -> Blocks:
    """Cut N * pixels into equal blocks of at most `most` pixels.

    In contiguous memory a block of several images is not a strided matrix and must be packed, so
    there blocks stay within an image unless images are smaller than a block.
    """
    unit = n * pixels if channels_last or pixels < BLOCK else pixels
    if unit == 0 or n == 0:
        return Blocks(0, 0, 0, 0)
    size = share(unit, most)
    per_unit = -(-unit // size)
    return Blocks(unit, size, per_unit, n * pixels // unit * per_unit)


def up(n: int, unit: int) -> int:
    """Round n up to a multiple of `unit`."""
    return -(-n // unit) * unit


def lines(elements: int) -> int:
    """Round up to whole cache lines, so that no two threads write the same line."""
    return up(elements, 64)


def share(total: int, most: int) -> int:
    """Return the size of the fewest equal shares of ``total`` that are at most ``most``."""
    shares = max(1, -(-total // most))
    return max(1, -(-total // shares))


def channel_block(o: int, items: int, most: int) -> int:
    """Return the output channels of one item: at most `most`, and fewer if there are few items."""
    cuts = min(-(-ITEMS // max(items, 1)), o // LEAST_O_BLOCK)
    return min(share(o, most), up(-(-o // max(cuts, 1)), O_TILE))


def partials(pieces: int, chunks: int, gradient_bytes: int, items: int | None = None) -> int:
    """Return the number of partial sums of a weight gradient, each over its own chunk of the work.

    `pieces` are the blocks of the gradient.  The result is large enough that pieces * partials is
    at least `items` (default ITEMS), but at most `chunks` (the parts that the work can be cut
    into), and bounded in bytes.  engine/conv/_partials.pxd computes the chunks and adds.
    """
    items = ITEMS if items is None else items
    fit = PARTIAL_BYTES // max(gradient_bytes, 1)
    return max(1, min(-(-items // max(pieces, 1)), MOST_PARTIALS, fit, chunks))


def most_packed(block: int, itemsize: int) -> int:
    """Return the number of rows of `block` elements packed at a time: those that fit PART_BYTES."""
    return max(1, PART_BYTES // max(block * itemsize, 1))


def parts(taps: int, c: int, row_bytes: int, channels_outer: bool) -> tuple[int, int]:
    """Return (taps, channels) of a K-block: whole rows of the inner index, or a part of one row."""
    most = max(1, PART_BYTES // max(row_bytes, 1))
    outer, inner = (c, max(taps, 1)) if channels_outer else (max(taps, 1), c)
    if inner <= most:
        part = (share(outer, most // inner), inner)
    else:
        part = (1, share(inner, most))
    return (part[1], part[0]) if channels_outer else part
