"""Plan forward passes and input gradients by indirect convolution; kernel: _indirect.pyx."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from typing import NamedTuple

from convcore.engine.conv.blocks import Blocks, lines, share, up
from convcore.engine.conv.indirect._indirect import IndirectCorrelation
from convcore.engine.conv.indirect.indirection import (
    BLOCK,
    LEAST_BLOCK,
    MOST_CLASSES,
    POINTER,
    counts_of,
    cut_lines,
    cut_pixels,
    most_channels,
    most_pixels,
    rows,
    seen_pixels,
    span,
)
from convcore.engine.conv.problem import FORWARD, PassPlan, Problem
from convcore.engine.conv.stride_phases import Phase, axis_phases
from convcore.engine.conv.struct_fields import Fields, forward_lines, line, three
from convcore.engine.geometry import Axis
from convcore.engine.runtime import _isa

# Pixels of a block whose packed inputs and outputs fit in a 1 MiB L2.
PACKED_BLOCK = 96
# Maximum output channels of one item, so that few items read the same pixels; fewer if there would
# be fewer items than the second constant.  With 8 where nothing is packed, passes take as long on 2
# threads, and 1.2 to 2 times as long on 16; where pixels are packed, more items pack the same ones.
O_BLOCK = 1024
ITEMS = 16
PACKED_ITEMS = 8
# With at most this many pixels an item computes all of them for one panel of output channels, whose
# weights it packs itself so that they never leave the cache; if their pointers fit there too.
FEW_PIXELS = 800
FEW_POINTERS = 32 << 10
LEAST_PANELS = 4
# Weights of one panel that are multiplied at a time: every few rows they are read again from L2.
PART_BYTES = 512 << 10
FEW_PART_BYTES = 256 << 10
# Bytes of bfloat16 weights summed before the rest of the channels: half the bytes of float32.  To
# try others, on a CPU with the bfloat16 instruction: benchmarks/sweep.py --precision bf16
# --constant indirect_correlation.BFLOAT16_PART --values 1024,16384
# --layer 8,2048,7,7,512,1,1,0,1,1
BFLOAT16_PART = 4096
# Parts are whole chunks of summed channels, as _indirect.pyx packs them.
CHUNK = 16

# A tap of the kernel: its index on each axis.
Tap = tuple[int, ...]


class RowPhase(NamedTuple):
    """The forward pass, or the phases of an input gradient that differ only in the last axis.

    ``taps`` has, for each class of columns, the kernel's taps in the order of the pointers.
    """

    lines: list[Fields]
    columns: list[Fields]
    taps: list[list[Tap]]
    out_first: list[int]
    out_step: list[int]

    @property
    def multiplied(self) -> int:
        """Return the products of an image for a pair of channels: outputs times their taps."""
        depth, height, _ = counts_of(self.lines)
        pairs = zip(self.columns, self.taps, strict=True)
        return depth * height * sum(c["count"] * len(taps) for c, taps in pairs)


def row_phases_of(problem: Problem) -> list[RowPhase]:
    """Return the row phases: one if forward, else one per stride phase of all axes but the last."""
    axes = three(problem.geometry.axes)
    if problem.pass_name == FORWARD:
        lines_of = forward_lines(problem.geometry)
        taps = list(product(*(range(a.kernel) for a in axes)))
        return [RowPhase(lines_of, [lines_of[2]], [taps], [0, 0, 0], [1, 1, 1])]
    along = [axis_phases(a) for a in axes]
    if not all(along):
        return []
    columns = [_line(axes[2], phase) for phase in along[2]]
    last = columns[0] | {"count": axes[2].size}
    return [
        RowPhase(
            [_line(axes[0], d), _line(axes[1], h), last],
            columns,
            [list(product(_taps(d), _taps(h), _taps(w))) for w in along[2]],
            [d.start, h.start, 0],
            [d.stride, h.stride, 1],
        )
        for d, h in product(*along[:2])
    ]


def _line(axis: Axis, phase: Phase) -> Fields:
    return line(axis.out, phase.outs, 1, phase.taps, phase.first, phase.step)


def _taps(phase: Phase) -> range:
    return range(phase.tap, phase.tap - phase.taps * phase.period, -phase.period)


def words(channels: int, bfloat16: bool) -> int:
    """Return the packed words (floats, or units of bfloat16.c) of `channels` channels."""
    if not bfloat16:
        return channels
    return -(-channels // _isa.BFLOAT16_TERMS) * _isa.bfloat16_words()


def packs_input(problem: Problem) -> bool:
    """Return whether pixels are packed: channels are not contiguous, or bfloat16."""
    if problem.narrow_left:
        return True
    return problem.left.strides[1] != 1 and problem.left.shape[1] > 1


def _packs(problem: Problem, bfloat16: bool) -> bool:
    """Return whether pixels are packed for products in ``bfloat16``, or in float32."""
    if not bfloat16:
        return packs_input(problem)
    words = problem.narrow_left and 2 * _isa.bfloat16_words() == _isa.BFLOAT16_TERMS
    whole = problem.reduction_channels % _isa.BFLOAT16_TERMS == 0
    return not (words and whole and problem.left.strides[1] == 1)


def most_seen(problem: Problem, bfloat16: bool = False) -> int:
    """Return an upper bound of the pixels that a block reads if they are packed, else 0."""
    if not (bfloat16 or packs_input(problem)):
        return 0
    row_phases = row_phases_of(problem)
    views = [rows(p.lines, p.columns, problem.left, True) for p in row_phases]
    most = most_pixels(problem.geometry.taps, PACKED_BLOCK)
    blocks = [cut_lines(problem.geometry.n, counts_of(p.lines), most) for p in row_phases]
    return max(map(seen_pixels, views, blocks), default=0)


class _Sizes(NamedTuple):
    """Summed and output channels, and the block sizes of channels and pixels."""

    c: int
    o: int
    o_full: int
    o_block: int
    part: int
    blocks: list[Blocks]
    items: int
    seen: int
    packs: bool
    bfloat16: bool
    narrow_output: bool

    @property
    def by_tile(self) -> bool:
        """Return whether each tile is rounded when summed: one part has all channels."""
        return self.narrow_output and self.part >= self.c

    def words(self, channels: int) -> int:
        """Return the floats of `channels` channels of a pixel, or the rows of packed weights."""
        return words(channels, self.bfloat16)

    @property
    def block(self) -> int:
        return max((b.size for b in self.blocks), default=0)


def _is_alone(problem: Problem, row_phases: list[RowPhase], o: int) -> bool:
    """Return whether each item is one panel of output channels of all pixels.

    The item packs that panel's weights itself, unless they are prepacked.
    """
    g = problem.geometry
    if len(row_phases) != 1 or len(row_phases[0].columns) != 1:
        return False
    pixels = g.n * math.prod(counts_of(row_phases[0].lines))
    return (
        0 < pixels <= FEW_PIXELS
        and pixels * g.taps <= FEW_POINTERS
        and g.groups * -(-o // _isa.panel()) >= LEAST_PANELS
        and (g.taps > 1 or not packs_input(problem))
    )


def _cuts(
    problem: Problem, row_phases: list[RowPhase], o: int, input_packed: bool
) -> tuple[int, list[Blocks]]:
    """Return the output channels and the pixel blocks of items; smaller where items are few."""
    g, panel = problem.geometry, _isa.panel()
    o_block = up(share(o, O_BLOCK), panel)
    most = most_pixels(g.taps, PACKED_BLOCK if input_packed else BLOCK)
    counts = [counts_of(p.lines) for p in row_phases]
    # Outputs of one tap share no pixels: blocks are whole tiles of rows, and the remainder is small
    # and last, so that threads end together.  Two lines of 14 would be four tiles of 6, one of 4.
    whole_lines = input_packed or g.taps > 1
    enough = PACKED_ITEMS if input_packed else ITEMS
    while True:
        if whole_lines:
            blocks = [cut_lines(g.n, c, most) for c in counts]
        else:
            blocks = [cut_pixels(g.n * math.prod(c), most) for c in counts]
        items = g.groups * -(-o // o_block) * sum(b.count for b in blocks)
        if o_block > panel and 0 < items < enough:
            o_block = up(o_block // 2, panel)
        elif most > LEAST_BLOCK and 0 < items < enough:
            most = max(most // 2, LEAST_BLOCK)
        else:
            return o_block, blocks


def _sizes(
    problem: Problem,
    row_phases: list[RowPhase],
    views: list[Fields],
    input_packed: bool,
    bfloat16: bool,
) -> _Sizes:
    g, panel = problem.geometry, _isa.panel()
    c, o = problem.reduction_channels, problem.output_channels
    alone = _is_alone(problem, row_phases, o)
    if alone:
        pixels = g.n * math.prod(counts_of(row_phases[0].lines))
        o_block, blocks = panel, [Blocks(pixels, pixels, 1, 1)]
    else:
        o_block, blocks = _cuts(problem, row_phases, o, input_packed)
    taps = max((len(t) for p in row_phases for t in p.taps), default=0)
    seen = max(map(seen_pixels, views, blocks), default=0) if input_packed else 0
    fit = (FEW_PART_BYTES if alone else PART_BYTES) // (problem.itemsize * panel * max(taps, 1))
    fit, chunk = min(max(fit // CHUNK * CHUNK, CHUNK), most_channels(seen)), CHUNK
    if bfloat16:
        chunk = _isa.BFLOAT16_TERMS
        fit = _part_of_bfloat16(problem, taps)
    return _Sizes(
        c=c,
        o=o,
        o_full=up(o, _isa.lanes()),
        o_block=o_block,
        part=up(share(c, fit), chunk),
        blocks=blocks,
        items=g.groups * -(-o // o_block) * sum(b.count for b in blocks),
        seen=seen,
        packs=alone and not problem.prepacked,
        bfloat16=bfloat16,
        narrow_output=problem.narrow_output,
    )


def _part_of_bfloat16(problem: Problem, taps: int) -> int:
    """Return the maximum channels of a part, which depends on the shapes alone.

    It fixes the order of a sum's additions, so bits are the same on all instruction sets.
    """
    most = min(BFLOAT16_PART // max(taps, 1), 2 * most_channels(most_seen(problem, True)))
    return max(most // _isa.BFLOAT16_TERMS, 1) * _isa.BFLOAT16_TERMS


def _packed(
    problem: Problem, row_phases: list[RowPhase], size: int
) -> tuple[list[list[int]], list[Fields]]:
    """Return where each class's packed weights begin, and the fields of Tap for all taps.

    size: packed weights of a tap.
    """
    firsts: list[list[int]] = []
    found: dict[Tap, Fields] = {}
    packed = 0
    for p in row_phases:
        firsts.append([])
        for taps in p.taps:
            firsts[-1].append(packed)
            for index, tap in enumerate(taps):
                found[tap] = {"packed": packed, "taps": len(taps), "index": index}
            packed += len(taps) * size
    unseen = {"packed": 0, "taps": 0, "index": 0}
    steps = problem.right.strides[2:]
    fields = [
        {"offset": sum(i * s for i, s in zip(tap, steps, strict=True)), **found.get(tap, unseen)}
        for tap in product(*(range(a.kernel) for a in three(problem.geometry.axes)))
    ]
    return firsts, fields


def _memory(
    problem: Problem, sizes: _Sizes, views: list[Fields], input_packed: bool, direct: bool
) -> Fields:
    """Return the offsets of the sections of a thread's scratch."""
    lanes, block = _isa.lanes(), sizes.block
    summed = sizes.words(min(sizes.part, sizes.c))
    pixel, row = up(summed, lanes), min(sizes.o_block, sizes.o_full)
    classes = max((v["classes"] for v in views), default=1)
    zeros = lines(pixel if input_packed else sizes.c)
    pointers = zeros + lines(1)
    tables = problem.geometry.taps + classes * (2 if sizes.by_tile else 1)
    inputs = pointers + lines(tables * block * POINTER // problem.itemsize)
    outputs = inputs + lines(sizes.seen * pixel)
    made = _isa.TALLEST_TILE if sizes.by_tile else block
    weights = outputs + (0 if direct else lines(made * row))
    packed = problem.geometry.taps * summed * row if sizes.packs else 0
    return {
        "row": row,
        "zeros": zeros,
        "noted": zeros,
        "pointers": pointers,
        "inputs": inputs,
        "outputs": outputs,
        "weights": weights,
        "scratch": weights + lines(packed),
    }


def _records(
    row_phases: list[RowPhase],
    views: list[Fields],
    sizes: _Sizes,
    firsts: list[list[int]],
    each: int,
) -> Iterator[Fields]:
    """Yield the fields of each Phase; `each`: items per block of pixels."""
    items = 0
    for p, view, blocks, packed in zip(row_phases, views, sizes.blocks, firsts, strict=True):
        missing = [0] * (MOST_CLASSES - len(packed))
        yield {
            "rows": view,
            "blocks": asdict(blocks),
            "out_first": p.out_first,
            "out_step": p.out_step,
            "taps": [*map(len, p.taps), *missing],
            "packed": [*packed, *missing],
            "first_item": items,
        }
        items += blocks.count * each


def correlation(
    problem: Problem, name: str, bfloat16: bool = False
) -> tuple[IndirectCorrelation, PassPlan]:
    """Return the kernel and its plan; bfloat16: whether factors are rounded to bfloat16."""
    g, x, w, y = problem.geometry, problem.left, problem.right, problem.output
    w_o, w_c = w.strides[:2] if problem.pass_name == FORWARD else w.strides[1::-1]
    input_packed = _packs(problem, bfloat16)
    direct = problem.channels_last and not problem.narrow_output
    row_phases = row_phases_of(problem)
    views = [rows(p.lines, p.columns, x, input_packed) for p in row_phases]
    sizes = _sizes(problem, row_phases, views, input_packed, bfloat16)
    pixel = up(sizes.words(min(sizes.part, sizes.c)), _isa.lanes())
    for view in views:
        view.update(bfloat16=bfloat16, pitch=sizes.block, pixel=pixel, narrow=problem.narrow_left)
    panels = g.groups * sizes.words(sizes.c) * sizes.o_full
    firsts, taps = _packed(problem, row_phases, panels)
    o_blocks = -(-sizes.o // sizes.o_block)
    memory = _memory(problem, sizes, views, input_packed, direct)
    packed = panels * sum(len(t) for p in row_phases for t in p.taps)
    shared = 0 if sizes.packs or problem.prepacked else lines(packed)
    how = "after lines are turned, once for all taps" if input_packed else "where they lie"
    if bfloat16:
        how = "rounded once for all taps" if input_packed else "where they lie"
        how = f"in bfloat16 ({_isa.bfloat16_name()}), {how}"
    plan = PassPlan(
        algorithm=name,
        reason=f"pixels are multiplied {how}; no patches are copied",
        itemsize=problem.itemsize,
        items=sizes.items,
        scratch=memory["scratch"],
        shared=shared,
        prepacked=packed if problem.prepacked else 0,
        supports_epilogue=True,
        supports_accumulate=problem.channels_last,
        block=sizes.block,
        o_block=min(sizes.o_block, sizes.o),
        part_taps=max((len(t) for p in row_phases for t in p.taps), default=0),
        part_channels=min(sizes.part, sizes.c),
        multiply_adds=g.n * sum(p.multiplied for p in row_phases) * g.groups * sizes.c * sizes.o,
    )
    forwards = span(w) > 0
    runs = forwards and w_o != 1
    job = problem.job(plan) | memory
    job |= {
        "bfloat16": bfloat16,
        "direct_y": direct,
        "by_tile": sizes.by_tile,
        "packs": sizes.packs,
        "joined": all(len(p.columns) == 1 and p.out_step == [1, 1, 1] for p in row_phases),
        "tap_runs": runs
        and len(taps) > 1
        and all(tap["offset"] == i and tap["taps"] > 0 for i, tap in enumerate(taps)),
        "channel_runs": runs and w_c == 1,
        "c": sizes.c,
        "o": sizes.o,
        "o_full": sizes.o_full,
        "o_block": sizes.o_block,
        "o_blocks": o_blocks,
        "part": sizes.part,
        "kernel": len(taps),
        "w_group": problem.o * w.strides[0],
        "w_o": w_o,
        "w_c": w_c,
        "w_size": span(w),
        "y_n": y.strides[0],
        "y_c": y.strides[1],
        "y_s": list(y.strides[2:]),
        "phases": len(row_phases),
    }
    records = list(_records(row_phases, views, sizes, firsts, g.groups * o_blocks))
    return IndirectCorrelation(job, records, taps), plan
