"""Plan depthwise convolutions: one channel per group, multiplied without a gemm.

float32 arrays that are dense in the result's memory format are read by microkernels, once and in
memory order (_depthwise_float.pyx).  Other arrays with contiguous channels use a general kernel
(_depthwise.pyx).
"""

from __future__ import annotations

from typing import Any

from convcore.engine.conv.blocks import ITEMS, lines, partials, share, up
from convcore.engine.conv.depthwise._depthwise import MOST_TAPS, WIDTH, DepthwiseWeight
from convcore.engine.conv.depthwise._depthwise_float import DepthwiseCorrelation, DepthwiseGradient
from convcore.engine.conv.direct import (
    cannot_read,
    channel_floats,
    direct_fields,
    halo_slices,
    is_dense,
    phase_rows,
    plane_floats,
)
from convcore.engine.conv.im2col.gemm import correlation, too_many_phases
from convcore.engine.conv.problem import (
    FORWARD,
    INPUT_GRAD,
    PASSES,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
)
from convcore.engine.conv.struct_fields import Fields, forward_lines, output_lines, window
from convcore.engine.runtime import _isa
from convcore.engine.runtime.layout import dense

_NAME = "depthwise"
_REASON = "one channel a group: multiplied channel by channel, without a gemm"

# Outputs of one item: about 5 us of work.
OUTPUTS = 32 << 10
# Channels of one item in channels_last: whole rows of most nets, whose weights stay in L1.
CHANNELS = 256
# Rows of a halo tile: a multiple of the rows that the microkernels compute at a time (4 or 7).
HALO_ROWS = 28
# Multiply-adds that take as long as one tap (its operands come from memory, used once).  With 4 the
# NCHW weight gradients of 200,000 taps take 1.3 to 1.7 times as long, most others within 5 %:
# benchmarks/sweep.py --busy --all --threads 2 --constant depthwise.TAP_WORK --values 4,16
# --layer 1,128,14,14,128,3,1,1,1,128 --layer 1,32,28,28,32,3,1,1,1,32
TAP_WORK = 8
# Floats of a halo tile that should stay in L1; and the maximum.
HALO_FLOATS = 8 << 10
MOST_HALO_FLOATS = 1 << 20
# Pixels whose products are added one after another before their sum is added to a total.
PIECE = 512
# Floats of the sums of one item of the weight gradient.
SUMS = 8 << 10


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if not g.groups == g.c_in == g.c_out > 1:
        return "more than one channel a group" if g.c_in > 1 else "only one channel"
    if _by_microkernels(problem):
        return None
    if g.taps > MOST_TAPS:
        return f"{g.taps} taps, more than {MOST_TAPS}"
    if problem.pass_name == WEIGHT_GRAD:
        return None
    if not problem.channels_last or problem.left.strides[1] != 1:
        return "its channels do not lie side by side in memory"
    return too_many_phases(g) if problem.pass_name == INPUT_GRAD else None


def _by_microkernels(problem: Problem) -> bool:
    if cannot_read(problem) is not None:
        return False
    if problem.pass_name != WEIGHT_GRAD and not is_dense(
        problem.right, dense(problem.right.shape, False)
    ):
        return False
    return _Cut(problem).halo_floats <= MOST_HALO_FLOATS


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    weight = problem.pass_name == WEIGHT_GRAD
    if _by_microkernels(problem):
        return _float_gradient(problem) if weight else _float_correlation(problem)
    if weight:
        return _weight_gradient(problem)
    return correlation(problem, _NAME, _REASON, by_channel=True)


class _Cut:
    """Work items of a problem: ranges of rows of units (channels, or vectors of channels)."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.geometry = problem, problem.geometry
        g = problem.geometry
        self.last = problem.channels_last
        # The input gradient packs rotated weights, so that all taps run forwards.
        self.rotate = self.last and problem.pass_name == INPUT_GRAD
        self.fields = direct_fields(problem, self.rotate, HALO_ROWS)
        self.lanes = _isa.lanes()
        self.units = -(-g.c_in // self.lanes) if self.last else g.c_in
        self.rows = phase_rows(self.fields["row"])
        self.slices = g.n * self.fields["depth"]["out"]
        self.halo_slices = halo_slices(problem, self.fields)
        # Outputs of one unit on one row of each phase.
        row, column = self.fields["row"], self.fields["column"]
        self.row_outputs = row["phases"] * column["out"] * (self.lanes if self.last else 1)
        self.unit_block = share(self.units, max(1, CHANNELS // self.lanes))
        self.halo_floats = 0
        self.in_place = self._in_place(problem.pass_name)
        if not self.in_place:
            self._set_band()

    def _in_place(self, pass_name: str) -> bool:
        """Return whether microkernels read the pixels in place (depthwise_nhwc.h)."""
        specialisation = self.fields["specialisation"]
        if not self.last or self.geometry.c_in < self.lanes:
            return False
        return specialisation != 0 and not (specialisation == 71 and pass_name == WEIGHT_GRAD)

    def _set_band(self) -> None:
        """Choose the rows and channels_last channels of a halo tile that fits in L1."""
        rows = min(HALO_ROWS, self.rows)
        while self.last and self.unit_block > 1 and self._floats(4) > HALO_FLOATS:
            self.unit_block = -(-self.unit_block // 2)
        while rows > 4 and self._floats(rows) > HALO_FLOATS:
            rows -= 1
        self.fields["rows"] = rows
        self.halo_floats = self._floats(rows)

    def _floats(self, rows: int) -> int:
        rows = min(rows, self.rows)
        if self.last:
            width = self.unit_block * self.lanes
            return channel_floats(self.fields, self.halo_slices, rows, width)
        return plane_floats(self.fields, self.halo_slices, rows)

    def plan(self, unit_block: int, row_block: int, items: int, scratch: int) -> PassPlan:
        """Return the plan of items of `unit_block` units and `row_block` rows."""
        g, row = self.geometry, self.fields["row"]
        return PassPlan(
            algorithm=_NAME,
            reason=_REASON,
            itemsize=4,
            items=items,
            scratch=scratch,
            block=row_block * row["phases"] * self.fields["column"]["out"],
            o_block=min(g.c_out, unit_block * (self.lanes if self.last else 1)),
            part_taps=g.taps,
            part_channels=1,
            multiply_adds=g.multiply_adds,
        )

    def job(self, plan: PassPlan, unit_block: int, row_block: int) -> Fields:
        """Return the fields of the kernel's struct Job."""
        return self.problem.job(plan) | {
            "direct": self.fields,
            "units": self.units,
            "unit_block": unit_block,
            "unit_blocks": -(-self.units // unit_block),
            "rows": self.rows,
            "row_block": row_block,
            "row_blocks": -(-self.rows // row_block),
            "work": TAP_WORK * float(self.geometry.multiply_adds),
        }


def _float_correlation(problem: Problem) -> tuple[DepthwiseCorrelation, PassPlan]:
    g, cut = problem.geometry, _Cut(problem)
    if cut.last:
        unit_block = cut.unit_block
        rows = max(4, OUTPUTS // (cut.row_outputs * unit_block) // 4 * 4)
        if cut.slices == 1 and unit_block == cut.units:
            # Items are parts of a single image: make them equal, so that threads end together.
            rows = up(share(cut.rows, rows), 4)
    else:
        plane = cut.row_outputs * cut.rows
        unit_block = share(cut.units, max(1, OUTPUTS // plane))
        pieces = cut.slices * -(-cut.units // unit_block)
        rows = up(-(-cut.rows * pieces // ITEMS), HALO_ROWS) if pieces < ITEMS else cut.rows
    rows = min(rows, cut.rows)
    items = cut.slices * -(-cut.units // unit_block) * -(-cut.rows // rows)
    packed = cut.units * g.taps * cut.lanes if cut.last else 0
    prepacked = packed if problem.prepacked else 0
    plan = cut.plan(unit_block, rows, items, lines(cut.halo_floats))
    plan = plan._replace(shared=lines(packed - prepacked), prepacked=prepacked)
    return DepthwiseCorrelation(cut.job(plan, unit_block, rows), cut.rotate), plan


def _float_gradient(problem: Problem) -> tuple[DepthwiseGradient, PassPlan]:
    g, cut = problem.geometry, _Cut(problem)
    unit = g.taps * cut.lanes
    most = max(1, SUMS // unit)
    if cut.last:
        unit_block = share(cut.units, min(most, cut.unit_block))
        rows = max(2, PIECE // cut.fields["column"]["out"] // 2 * 2)
    else:
        unit_block = share(cut.units, min(most, -(-cut.units // (2 * ITEMS))))
        vectors = -(-cut.fields["column"]["out"] // cut.lanes)
        rows = max(HALO_ROWS // 4, PIECE // vectors // HALO_ROWS * HALO_ROWS)
    rows = min(rows, cut.rows)
    blocks, size = -(-cut.units // unit_block), g.c_in * g.taps
    runs = partials(blocks, cut.slices * -(-cut.rows // rows), 4 * size, items=2 * ITEMS)
    sums = lines(unit_block * unit)
    plan = cut.plan(unit_block, rows, runs * blocks, 2 * sums + lines(cut.halo_floats))
    plan = plan._replace(shared=lines(runs * size) if runs > 1 else 0, partials=runs)
    job = cut.job(plan, unit_block, rows)
    return DepthwiseGradient(job | {"job": job, "slices": cut.slices, "sums": sums}), plan


# ---- the general kernel ----


def _weight_gradient(problem: Problem) -> tuple[DepthwiseWeight, PassPlan]:
    g, size = problem.geometry, problem.geometry.c_out * problem.geometry.taps
    chunks = -(-g.c_out // WIDTH)
    runs = partials(chunks, g.n * g.pixels, size * problem.itemsize)
    plan = PassPlan(
        algorithm=_NAME,
        reason=_REASON,
        itemsize=problem.itemsize,
        items=chunks * runs,
        scratch=0,
        shared=lines(runs * size),
        block=-(-g.n * g.pixels // runs),
        o_block=min(g.c_out, WIDTH),
        part_taps=g.taps,
        part_channels=1,
        partials=runs,
        multiply_adds=g.multiply_adds,
    )
    job = problem.job(plan) | {
        "x": window(forward_lines(g), problem.left),
        "gy": window(output_lines(g), problem.right),
        "n": g.n,
        "channels": g.c_out,
    }
    return DepthwiseWeight(job, problem.dtype.char), plan


def _not_narrow(problem: Problem) -> str | None:
    if not (problem.narrow_left and problem.narrow_output):
        return "only one of its arrays is bfloat16"
    if problem.pass_name != FORWARD or not _by_microkernels(problem):
        return "it knows no bfloat16 in memory"
    return None if _Cut(problem).in_place else "its pixels are copied to a halo tile"


DEPTHWISE = Algorithm(_NAME, PASSES, _prepare, _impossible, not_narrow=_not_narrow)
