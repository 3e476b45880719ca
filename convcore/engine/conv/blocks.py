"""Cache blocking: the sizes of blocks of pixels, channels and K, and the bounds on memory.

Cuts depend on shapes alone, never on the number of threads, and so neither do a result's bits.

Figures are of 2 cores with AVX-512 and 1 MiB of L2 each, in the mean of the table's layers whose
plans change: benchmarks/sweep.py --constant blocks.BLOCK --values 128,512, and so of the others.
Bits depend on all of them, so one must be clearly better to replace another.
"""

from __future__ import annotations

from dataclasses import dataclass

# Patches of one K-block of a block: half a 1 MiB L2, the other half being BLAS's own packed copy.
# Half as many take 4 to 8 % longer, twice as many from 5 % less to 4 % more, on one thread.
PART_BYTES = 512 << 10
# Pixels of a block.  A gemm packs its weights anew for each block, at about 1/BLOCK of its work.
# 128 take from 3 % less to 3 % more, 512 5 % longer, on one thread.
BLOCK = 256
# Fewer items than this are cut finer, to leave work for many threads.  With 8 weight gradients take
# 5 % less on 2 threads, a training step of ResNet-50 up to 1 %; but 1.5 to 1.9 times as long on 16.
ITEMS = 16
# Narrower blocks of output channels than this lose more in the gemm than the cut brings; no layer
# of the table has another plan with 64 or 256.
LEAST_O_BLOCK = 128
# Blocks are of whole tiles of BLAS's kernels: 160 of 960 channels take 8 to 16 % less than 138.
O_TILE = 32
# Partial weight gradients: at most this many, and at most this many bytes in all.  8 and 32 take as
# long on 2 threads (--busy --passes weight_grad).
MOST_PARTIALS = 16
PARTIAL_BYTES = 32 << 20
# Bounds of every algorithm: a thread's scratch; packed or transformed weights, in weights.
SCRATCH_BYTES = 8 << 20
MOST_WEIGHTS = 4


@dataclass(frozen=True, slots=True)
class Blocks:
    """How the pixels of a batch are cut: see engine/conv/_blocks.pxd."""

    unit: int
    size: int
    per_unit: int
    count: int


def cut(n: int, pixels: int, channels_last: bool, most: int) -> Blocks:
    """Cut N * pixels into equal blocks of at most `most`.

    In contiguous memory a block of several images is no matrix in place and must be packed, so
    there blocks stay within an image unless images are smaller than a block.
    """
    unit = n * pixels if channels_last or pixels < BLOCK else pixels
    if unit == 0 or n == 0:
        return Blocks(0, 0, 0, 0)
    size = share(unit, most)
    per_unit = -(-unit // size)
    return Blocks(unit, size, per_unit, n * pixels // unit * per_unit)


def up(n: int, unit: int) -> int:
    """Round up to a multiple."""
    return -(-n // unit) * unit


def lines(elements: int) -> int:
    """Round up to whole cache lines, so that no two threads write one."""
    return up(elements, 64)


def share(total: int, most: int) -> int:
    """Return the size of the fewest equal shares of ``total`` that are at most ``most``."""
    shares = max(1, -(-total // most))
    return max(1, -(-total // shares))


def channel_block(o: int, items: int, most: int) -> int:
    """Return the output channels of one item: at most `most`, and fewer where items are few."""
    cuts = min(-(-ITEMS // max(items, 1)), o // LEAST_O_BLOCK)
    return min(share(o, most), up(-(-o // max(cuts, 1)), O_TILE))


def partials(pieces: int, chunks: int, gradient_bytes: int, items: int | None = None) -> int:
    """Return the number of partial sums of a weight gradient, each over its own chunk of the work.

    Enough that `pieces` (of the gradient) times partials make `items`, else ITEMS; at most `chunks`
    (all that the work can be cut into), and bounded in bytes.  engine/conv/_partials.pxd cuts and
    adds.
    """
    items = ITEMS if items is None else items
    fit = PARTIAL_BYTES // max(gradient_bytes, 1)
    return max(1, min(-(-items // max(pieces, 1)), MOST_PARTIALS, fit, chunks))


def most_packed(block: int, itemsize: int) -> int:
    """Return how many rows of `block` elements are packed at a time: as many as PART_BYTES."""
    return max(1, PART_BYTES // max(block * itemsize, 1))


def parts(taps: int, c: int, row_bytes: int, channels_outer: bool) -> tuple[int, int]:
    """Return (taps, channels) of a K-block: whole rows of the inner index, or a cut of one."""
    most = max(1, PART_BYTES // max(row_bytes, 1))
    outer, inner = (c, max(taps, 1)) if channels_outer else (max(taps, 1), c)
    if inner <= most:
        part = (share(outer, most // inner), inner)
    else:
        part = (1, share(inner, most))
    return (part[1], part[0]) if channels_outer else part
