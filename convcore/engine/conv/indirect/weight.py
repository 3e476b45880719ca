"""Plan weight gradients by indirect convolution; kernel: _indirect_weight.pyx."""

from __future__ import annotations

from dataclasses import asdict

from convcore.engine.conv.blocks import Blocks, lines, partials, share, up
from convcore.engine.conv.indirect._indirect_weight import IndirectWeightGradient
from convcore.engine.conv.indirect.indirection import (
    POINTER,
    ROWS,
    counts_of,
    cut_lines,
    most_channels,
    most_pixels,
    rows,
    seen_pixels,
)
from convcore.engine.conv.problem import PassPlan, Problem
from convcore.engine.conv.struct_fields import Fields, forward_lines, output_lines
from convcore.engine.runtime import _isa

# Taps of a block of the gradient, and the floats of its sums: half of a 1 MiB L2.
TAPS = 32
SUMS = 128 << 10
# Input channels of a block, over all its taps: whole panels, and then as many o as fit.
CHANNELS = 256


def packs_input(problem: Problem, bfloat16: bool = False) -> bool:
    """Return whether the input is packed, because products read whole vectors of each pixel.

    bfloat16 products read bfloat16 input in place as well as float32.
    """
    if problem.narrow_left and not bfloat16:
        return True
    return problem.left.strides[1] != 1 or problem.c % _isa.lanes() > 0


def _packs_gradients(problem: Problem, bfloat16: bool) -> bool:
    """Return whether grad_output is copied before it is converted to words (if it is converted)."""
    return not bfloat16 or problem.right.strides[1] != 1 or problem.o % _isa.lanes() > 0


def _views(problem: Problem, bfloat16: bool = False) -> tuple[Fields, Fields, Blocks]:
    """Return (Rows of the input, Rows of grad_output, blocks of pixels)."""
    g = problem.geometry
    lines_of, out_lines = forward_lines(g), output_lines(g)
    return (
        rows(lines_of, [lines_of[2]], problem.left, packs_input(problem, bfloat16)),
        rows(out_lines, [out_lines[2]], problem.right, _packs_gradients(problem, bfloat16)),
        cut_lines(g.n, counts_of(lines_of), most_pixels(g.taps)),
    )


def most_seen(problem: Problem, bfloat16: bool = False) -> int:
    """Return an upper bound of a block's packed pixels, or 0; bfloat16 counts as packed."""
    x, _, blocks = _views(problem)
    return seen_pixels(x, blocks) if bfloat16 or packs_input(problem) else 0


def _pieces(problem: Problem, seen: int, bfloat16: bool) -> Fields:
    """Return the gradient's block sizes; for bfloat16 they depend on shapes alone."""
    c, o, taps = problem.c, problem.o, problem.geometry.taps
    panel, lanes, rows_each = (64, 16, 16) if bfloat16 else (_isa.panel(), _isa.lanes(), ROWS)
    tap_block = share(taps, TAPS)
    c_block = min(c, up(share(c, max(CHANNELS // tap_block, 1)), panel), most_channels(seen))
    fit = SUMS // (tap_block * up(c_block, lanes))
    o_block = min(o, up(share(o, max(fit, rows_each)), rows_each))
    return {
        "tap_block": tap_block,
        "tap_blocks": -(-taps // tap_block),
        "c_block": c_block,
        "c_blocks": -(-c // c_block),
        "o_block": o_block,
        "o_blocks": -(-o // o_block),
    }


def weight_gradient(
    problem: Problem, name: str, bfloat16: bool = False
) -> tuple[IndirectWeightGradient, PassPlan]:
    """Return the kernel and its plan; bfloat16: whether factors are rounded to bfloat16."""
    g, lanes, narrow = problem.geometry, _isa.lanes(), problem.narrow_left
    x, gy, blocks = _views(problem, bfloat16)
    most = most_seen(problem, bfloat16)
    seen = most if packs_input(problem, bfloat16) else 0
    cuts = _pieces(problem, most, bfloat16)
    # Pixels are summed in whole blocks of terms, padded with zeros.
    pitch = up(blocks.size, _isa.BFLOAT16_TERMS) if bfloat16 else blocks.size
    pieces = g.groups * cuts["tap_blocks"] * cuts["c_blocks"] * cuts["o_blocks"]
    size = g.c_out * g.columns
    runs = partials(pieces, blocks.count, size * problem.itemsize)
    sum_row, gy_row = up(cuts["c_block"], lanes), up(cuts["o_block"], lanes)
    zeros = lines(max(sum_row, gy_row if bfloat16 else 0))
    inputs = zeros + lines(g.taps * pitch * POINTER // problem.itemsize)
    gradients = inputs + lines(seen * sum_row)
    own = gradients + (lines(pitch * gy_row) if gy["packed"] else 0)
    words = own + (lines(pitch * POINTER // problem.itemsize) if bfloat16 else 0)
    sums = words + (lines(pitch * gy_row) if bfloat16 else 0)
    plan = PassPlan(
        algorithm=name,
        reason=f"{pieces} pieces of the gradient, each summed in {runs} runs of pixels; "
        + (f"in bfloat16 ({_isa.bfloat16_name()})" if bfloat16 else "no patches are copied"),
        itemsize=problem.itemsize,
        items=pieces * runs,
        scratch=sums + lines(cuts["o_block"] * cuts["tap_block"] * sum_row),
        shared=lines(runs * size) if runs > 1 else 0,
        block=blocks.size,
        o_block=cuts["o_block"],
        part_taps=cuts["tap_block"],
        part_channels=cuts["c_block"],
        partials=runs,
        multiply_adds=g.multiply_adds,
    )
    job = problem.job(plan) | cuts
    job |= {
        "bfloat16": bfloat16,
        "x": x | {"bfloat16": False, "narrow": narrow, "pitch": pitch, "pixel": sum_row},
        "gy": gy | {"bfloat16": False, "narrow": narrow, "pitch": pitch, "pixel": gy_row},
        "blocks": asdict(blocks),
        "sum_row": sum_row,
        "pointers": zeros,
        "inputs": inputs,
        "gradients": gradients,
        "own": own,
        "words": words,
        "sums": sums,
    }
    return IndirectWeightGradient(job), plan
