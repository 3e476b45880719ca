"""Depthwise: each channel has a kernel of its own, and no gemm is worth its name.

float32 arrays that are dense in the result's memory format go to the leaves, which read them in
their own order, once; others have a general kernel where their channels lie side by side.
"""

from __future__ import annotations

from typing import Any

from convcore.engine.conv.algorithms.blocks import ITEMS, MOST_PARTIALS, lines, share
from convcore.engine.conv.algorithms.direct import (
    cannot_read,
    channel_floats,
    direct_fields,
    is_dense,
    phase_rows,
    plane_floats,
    up,
)
from convcore.engine.conv.algorithms.gemm import correlation, too_many_phases
from convcore.engine.conv.algorithms.problem import (
    INPUT_GRAD,
    PASSES,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
)
from convcore.engine.conv.struct_fields import Fields, forward_lines, output_lines, window
from convcore.engine.runtime.layout import dense
from convcore.kernels.conv._depthwise import MOST_TAPS, WIDTH, DepthwiseWeight
from convcore.kernels.conv._depthwise_float import DepthwiseCorrelation, DepthwiseGradient
from convcore.kernels.runtime import _isa

_NAME = "depthwise"
_REASON = "one channel a group: multiplied channel by channel, without a gemm"

# Outputs of one item: some 5 us of work.
OUTPUTS = 32 << 10
# Channels of one item in channels_last: whole rows of most nets, whose weights stay in L1.
CHANNELS = 256
# Rows of a band: a multiple of those that the leaves make at a time, four or seven.
BAND = 28
# Multiply-adds that a tap takes as long as: its operands come from memory, used once. By hand.
TAP_WORK = 4
# Floats of a band, which should stay in L1; and the most there may be.
BAND_FLOATS = 8 << 10
MOST_BAND_FLOATS = 1 << 20
# Pixels whose products are added one after another before their sum joins a total.
PIECE = 512
# Floats of the sums of one item of the weight gradient.
SUMS = 8 << 10


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if not g.groups == g.c_in == g.c_out > 1:
        return "more than one channel a group" if g.c_in > 1 else "only one channel"
    if _by_leaves(problem):
        return None
    if g.taps > MOST_TAPS:
        return f"{g.taps} taps, more than {MOST_TAPS}"
    if problem.pass_name == WEIGHT_GRAD:
        return None
    if not problem.channels_last or problem.left.strides[1] != 1:
        return "its channels do not lie side by side in memory"
    return too_many_phases(g) if problem.pass_name == INPUT_GRAD else None


def _by_leaves(problem: Problem) -> bool:
    if cannot_read(problem) is not None:
        return False
    if problem.pass_name != WEIGHT_GRAD and not is_dense(
        problem.right, dense(problem.right.shape, False)
    ):
        return False
    return _Cut(problem).band_floats <= MOST_BAND_FLOATS


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    weight = problem.pass_name == WEIGHT_GRAD
    if _by_leaves(problem):
        return _leaf_gradient(problem) if weight else _leaf_correlation(problem)
    if weight:
        return _weight_gradient(problem)
    return correlation(problem, _NAME, _REASON, by_channel=True)


class _Cut:
    """How a problem is cut into items: rows of units, which are channels or vectors of them."""

    def __init__(self, problem: Problem) -> None:
        self.geometry = g = problem.geometry
        self.last = problem.channels_last
        # Packed weights are turned by half for the input gradient, so that all taps run forwards.
        self.rotate = self.last and problem.pass_name == INPUT_GRAD
        self.fields = direct_fields(problem, self.rotate, BAND)
        self.lanes = _isa.lanes()
        self.units = -(-g.c_in // self.lanes) if self.last else g.c_in
        self.rows = phase_rows(self.fields["row"])
        # Outputs of one unit on one row of each phase.
        row, column = self.fields["row"], self.fields["column"]
        self.row_outputs = row["phases"] * column["out"] * (self.lanes if self.last else 1)
        self.unit_block = share(self.units, max(1, CHANNELS // self.lanes))
        self.band_floats = 0
        if not self._in_place(problem.pass_name):
            self._set_band()

    def _in_place(self, map: str) -> bool:
        """Return whether the leaves read the pixels where they are: depthwise_pixels.h."""
        form = self.fields["form"]
        if not self.last or self.geometry.c_in < self.lanes:
            return False
        return form != 0 and not (form == 71 and map == WEIGHT_GRAD)

    def _set_band(self) -> None:
        """Choose the rows of a band, and in channels_last its channels, so that it stays in L1."""
        band = min(BAND, self.rows)
        while self.last and self.unit_block > 1 and self._floats(4) > BAND_FLOATS:
            self.unit_block = -(-self.unit_block // 2)
        while band > 4 and self._floats(band) > BAND_FLOATS:
            band -= 1
        self.fields["band"] = band
        self.band_floats = self._floats(band)

    def _floats(self, rows: int) -> int:
        rows = min(rows, self.rows)
        if self.last:
            return channel_floats(self.fields, rows, self.unit_block * self.lanes)
        return plane_floats(self.fields, rows)

    def job(self, unit_block: int, row_block: int, shared: int, scratch: int) -> Fields:
        """Return the fields of a Job, but for its items."""
        return {
            "direct": self.fields,
            "units": self.units,
            "unit_block": unit_block,
            "unit_blocks": -(-self.units // unit_block),
            "rows": self.rows,
            "row_block": row_block,
            "row_blocks": -(-self.rows // row_block),
            "shared": shared,
            "scratch": scratch,
            "work": TAP_WORK * float(self.geometry.multiply_adds),
        }


def _leaf_correlation(problem: Problem) -> tuple[DepthwiseCorrelation, PassPlan]:
    g, cut = problem.geometry, _Cut(problem)
    if cut.last:
        unit_block = cut.unit_block
        rows = max(4, OUTPUTS // (cut.row_outputs * unit_block) // 4 * 4)
    else:
        plane = cut.row_outputs * cut.rows
        unit_block = share(cut.units, max(1, OUTPUTS // plane))
        pieces = g.n * -(-cut.units // unit_block)
        rows = up(-(-cut.rows * pieces // ITEMS), BAND) if pieces < ITEMS else cut.rows
    packed = cut.units * g.taps * cut.lanes if cut.last else 0
    kept = packed if problem.kept else 0
    shared = lines(packed - kept)
    job = cut.job(unit_block, min(rows, cut.rows), shared, lines(cut.band_floats))
    job["items"] = g.n * job["unit_blocks"] * job["row_blocks"]
    return DepthwiseCorrelation(job, cut.rotate), _plan(problem, job, kept=kept)


def _leaf_gradient(problem: Problem) -> tuple[DepthwiseGradient, PassPlan]:
    g, cut = problem.geometry, _Cut(problem)
    unit = g.taps * cut.lanes
    most = max(1, SUMS // unit)
    if cut.last:
        unit_block = share(cut.units, min(most, cut.unit_block))
        rows = max(2, PIECE // cut.fields["column"]["out"] // 2 * 2)
    else:
        unit_block = share(cut.units, min(most, -(-cut.units // (2 * ITEMS))))
        vectors = -(-cut.fields["column"]["out"] // cut.lanes)
        rows = max(BAND // 4, PIECE // vectors // BAND * BAND)
    rows = min(rows, cut.rows)
    blocks = -(-cut.units // unit_block)
    runs = min(-(-2 * ITEMS // blocks), MOST_PARTIALS, g.n * -(-cut.rows // rows))
    sums = lines(unit_block * unit)
    shared = lines(runs * g.c_in * g.taps) if runs > 1 else 0
    job = cut.job(unit_block, rows, shared, 2 * sums + lines(cut.band_floats))
    job["items"] = runs * blocks
    kernel = DepthwiseGradient({"job": job, "n": g.n, "runs": runs, "sums": sums})
    return kernel, _plan(problem, job, runs)


def _plan(problem: Problem, job: Fields, runs: int = 1, kept: int = 0) -> PassPlan:
    g, column = problem.geometry, job["direct"]["column"]
    width = _isa.lanes() if problem.channels_last else 1
    return PassPlan(
        algorithm=_NAME,
        reason=_REASON,
        itemsize=problem.itemsize,
        items=job["items"],
        scratch=job["scratch"],
        shared=job["shared"],
        kept=kept,
        block=job["row_block"] * job["direct"]["row"]["phases"] * column["out"],
        o_block=min(g.c_out, job["unit_block"] * width),
        part_taps=g.taps,
        part_channels=1,
        partials=runs,
        multiply_adds=g.multiply_adds,
    )


# ---- the general kernel ----


def _weight_gradient(problem: Problem) -> tuple[DepthwiseWeight, PassPlan]:
    """Return the kernel and its plan, summed in as many runs as there must be items."""
    g = problem.geometry
    chunks = -(-g.c_out // WIDTH)
    partials = max(1, min(-(-ITEMS // chunks), MOST_PARTIALS, g.n * g.pixels))
    plan = PassPlan(
        algorithm=_NAME,
        reason=_REASON,
        itemsize=problem.itemsize,
        items=chunks * partials,
        scratch=0,
        shared=lines(partials * g.c_out * g.taps),
        block=-(-g.n * g.pixels // partials),
        o_block=min(g.c_out, WIDTH),
        part_taps=g.taps,
        part_channels=1,
        partials=partials,
        multiply_adds=g.multiply_adds,
    )
    fields = {
        "x": window(forward_lines(g), problem.left),
        "gy": window(output_lines(g), problem.right),
        "n": g.n,
        "channels": g.c_out,
        "partials": plan.partials,
        "items": plan.items,
        "work": float(g.multiply_adds),
    }
    return DepthwiseWeight(problem.dtype.char, fields), plan


DEPTHWISE = Algorithm(_NAME, PASSES, _prepare, _impossible)
