"""Plan grouped convolutions with few channels per group; kernel: _grouped.pyx.

Their gemms would have too few rows and columns: outputs are summed pixel by pixel instead.
"""

from __future__ import annotations

from typing import Any

from convcore.engine.conv.blocks import ITEMS, lines, partials, share, up
from convcore.engine.conv.direct import (
    cannot_read,
    direct_fields,
    halo_slices,
    phase_rows,
    places,
    segment_floats,
)
from convcore.engine.conv.grouped._grouped import GroupedCorrelation, GroupedGradient
from convcore.engine.conv.problem import (
    INPUT_GRAD,
    PASSES,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
)
from convcore.engine.conv.struct_fields import Fields
from convcore.engine.runtime import _isa

_NAME = "grouped"

# Maximum channels per group for which this is the best choice: 16 fill the vectors of indirect,
# which takes 0.5 to 0.65 of the time for 14 x 14 pixels, and equal time for 56 x 56.  Also the
# maximum products of input and output channels for the weight gradient, which loads and stores all
# its sums for each halo tile.
MOST_CHANNELS = 15
MOST_SHORT_CHANNELS = 8
MOST_PAIRS = 64
MOST_SHORT_PAIRS = 16
# Multiply-adds of one item: about 10 us of work.
WORK = 1 << 20
# Rows of a halo tile: a multiple of the rows that are summed at a time.
HALO_ROWS = 28
# Floats of a halo tile and its lines that stay in L1, and the maximum.
HALO_FLOATS = 10 << 10
MOST_HALO_FLOATS = 1 << 20
# Maximum terms of a sum, which are added one after another.
MOST_TERMS = 1024
# Vectors whose products are added one after another before their sums are added to a total.
PIECE = 512
# Floats of the sums of one item of the weight gradient.
MOST_SUMS = 128 << 10


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if g.groups == 1:
        return "one group"
    if reason := cannot_read(problem):
        return reason
    if problem.c * g.taps > MOST_TERMS or problem.o * g.taps > MOST_TERMS:
        return f"sums of more than {MOST_TERMS} terms"
    cut = _Cut(problem)
    if cut.floats(cut.fields["rows"]) > MOST_HALO_FLOATS:
        return "a band of it is too long for a cache"
    if problem.pass_name == WEIGHT_GRAD and cut.sums > MOST_SUMS:
        return "its sums are too many for a cache"
    return None


def _unprofitable(problem: Problem) -> str | None:
    g, lanes = problem.geometry, _isa.lanes()
    weight = problem.pass_name == WEIGHT_GRAD
    width = g.axes[-1].out
    if g.taps == 1 and (weight or not problem.channels_last):
        return "one tap: a gemm needs no patches"
    short = width < lanes if weight else 2 * width <= lanes
    most = MOST_SHORT_CHANNELS if short else MOST_CHANNELS
    if max(problem.c, problem.o) > most:
        return f"more than {most} channels a group: a gemm is wide enough"
    pairs = MOST_SHORT_PAIRS if short else MOST_PAIRS
    if weight and (problem.c * problem.o > pairs or 2 * width <= lanes):
        return "many sums for few pixels: a gemm keeps them in registers"
    return None


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    return _gradient(problem) if problem.pass_name == WEIGHT_GRAD else _correlation(problem)


class _Cut:
    """Work items of a problem: ranges of rows of ranges of groups."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.geometry = g = problem.geometry
        self.c, self.o = problem.reduction_channels, problem.output_channels
        self.fields = direct_fields(problem, False, HALO_ROWS)
        self.rows = phase_rows(self.fields["row"])
        depth = self.fields["depth"]["out"]
        self.slices = g.n * depth
        work = max(1, g.pixels // depth * g.columns * problem.o)
        # channels_last is transposed by whole vectors of channels.
        whole = -(-_isa.lanes() // min(self.c, self.o)) if problem.channels_last else 1
        self.group_block = share(g.groups, max(whole, WORK // work))
        rows = min(HALO_ROWS, self.rows)
        while rows > 4 and self.floats(rows) > HALO_FLOATS * whole:
            rows -= 4
        while self.group_block > whole and self.floats(rows) > HALO_FLOATS * whole:
            self.group_block -= 1
        self.fields["rows"] = rows
        self.sums = lines(self.group_block * self.c * self.o * g.taps * _isa.lanes())

    def floats(self, rows: int) -> int:
        """Return the floats of the halo tiles and output lines of `rows` rows."""
        lanes, row, column = _isa.lanes(), self.fields["row"], self.fields["column"]
        slices = halo_slices(self.problem, self.fields)
        plane = slices * places(row, rows) * segment_floats(column) + lanes
        line = rows * column["phases"] * up(phase_rows(column), lanes) + lanes
        return self.group_block * (self.c * plane + self.o * line)

    def plan(self, row_block: int, items: int, shared: int, scratch: int) -> PassPlan:
        """Return the plan of items of `row_block` rows."""
        problem, g = self.problem, self.geometry
        return PassPlan(
            algorithm=_NAME,
            reason=f"{problem.c} to {problem.o} channels a group: too few for a gemm",
            itemsize=problem.itemsize,
            items=items,
            scratch=scratch,
            shared=shared,
            block=row_block * self.fields["row"]["phases"] * self.fields["column"]["out"],
            o_block=self.group_block * self.o,
            part_taps=g.taps,
            part_channels=self.c,
            multiply_adds=g.multiply_adds,
        )

    def job(self, plan: PassPlan, row_block: int, weight: tuple[int, ...]) -> Fields:
        """Return the fields of the kernel's struct Job; weight: the strides of w or gw."""
        g = self.geometry
        s_o, s_c, s_slice, s_row, s_column = weight
        if self.problem.pass_name == INPUT_GRAD:
            s_o, s_c = s_c, s_o
        return self.problem.job(plan) | {
            "grouped": {"direct": self.fields, "groups": g.groups, "c": self.c, "o": self.o},
            "group_block": self.group_block,
            "group_blocks": -(-g.groups // self.group_block),
            "rows": self.rows,
            "row_block": row_block,
            "row_blocks": -(-self.rows // row_block),
            "w_group": self.problem.o * weight[0],
            "w_o": s_o,
            "w_c": s_c,
            "w_slice": s_slice,
            "w_row": s_row,
            "w_column": s_column,
        }


def _correlation(problem: Problem) -> tuple[GroupedCorrelation, PassPlan]:
    g, cut = problem.geometry, _Cut(problem)
    blocks = -(-g.groups // cut.group_block)
    pieces, height = cut.slices * blocks, cut.fields["rows"]
    rows = up(-(-cut.rows * pieces // ITEMS), height) if pieces < ITEMS else cut.rows
    rows = min(rows, cut.rows)
    items = pieces * -(-cut.rows // rows)
    plan = cut.plan(rows, items, lines(g.c_out * g.columns), lines(cut.floats(height)))
    return GroupedCorrelation(cut.job(plan, rows, problem.right.strides)), plan


def _gradient(problem: Problem) -> tuple[GroupedGradient, PassPlan]:
    g, cut = problem.geometry, _Cut(problem)
    rows, blocks = cut.fields["rows"], -(-g.groups // cut.group_block)
    size = g.c_out * g.columns
    runs = partials(blocks, cut.slices * -(-cut.rows // rows), 4 * size, items=2 * ITEMS)
    scratch = 2 * cut.sums + lines(cut.floats(rows))
    plan = cut.plan(rows, runs * blocks, lines(runs * size), scratch)._replace(partials=runs)
    job = cut.job(plan, rows, problem.output.strides)
    fields = {
        "job": job,
        "row": size // g.groups,
        "slices": cut.slices,
        "sums": cut.sums,
        "piece": PIECE,
        "row_vectors": -(-cut.fields["column"]["out"] // _isa.lanes()),
    }
    return GroupedGradient(job | fields), plan


GROUPED = Algorithm(_NAME, PASSES, _prepare, _impossible, _unprofitable)
