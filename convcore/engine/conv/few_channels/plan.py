"""Plan convolutions of few input channels (first layers): output tiles over a packed halo tile.

A gemm would have one short side, and its matrix of patches many times the size of the input.  Here
the input of a few output rows is packed once and read in place under every tap; for the input
gradient, the products of each tap are added to such a tile straight from the registers.
"""

from __future__ import annotations

import math
from typing import Any

from convcore.engine.conv.blocks import ITEMS, MOST_PARTIALS, lines, partials, share, up
from convcore.engine.conv.few_channels._few_channels import FewChannels, microkernel_sizes
from convcore.engine.conv.few_channels._few_channels_input import FewChannelsInput
from convcore.engine.conv.few_channels._few_channels_weight import FewChannelsWeight
from convcore.engine.conv.problem import (
    FORWARD,
    INPUT_GRAD,
    PASSES,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
)
from convcore.engine.conv.struct_fields import Fields, forward_lines, three, window
from convcore.engine.geometry import Axis
from convcore.engine.runtime.layout import Layout

_NAME = "few_channels"

# Maximum input channels for which this is the best choice; from 16 on Winograd may be better.
MOST_CHANNELS = 15
# Maximum input channels for which this is the best choice for any number of output channels.
FEWEST_CHANNELS = 6
# Columns of a tile: enough that few taps cross its edges, and halo rows stay short.
COLUMNS = 512
# Pixels of a tile, of outputs or of inputs.  Outputs over the edge between two tiles of inputs are
# loaded once for each, and a sum over vectors of pixels ends with a sum over lanes: there longer
# tiles pay.
PIXELS = {FORWARD: 1024, INPUT_GRAD: 4096, WEIGHT_GRAD: 2048}
# Maximum products per output.  They are added one after another, so the rounding error of terms of
# one sign grows with them: 32 eps for 4,608 (python benchmarks/numerics.py).
LONGEST_SUM = 1024
# Inputs of a patch, for kernels that do not overlap, from which a gemm is the better choice.
LEAST_PATCH = 256
# Floats of a halo tile ("halo") that leaves space for the weights in a 1 MiB L2, and the maximum
# number of floats.
HALO_FLOATS = 64 << 10
MOST_HALO_FLOATS = 1 << 20
# Bytes of an output too large to stay in a cache until it is read.
STREAMED = 16 << 20
# Pixels that the microkernel of the weight gradient sums at a time: FEW_PIXELS of few_channels.c.
SUMMED_AT_ONCE = 128


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if problem.dtype.char != "f":
        return "it computes in float32 only"
    if g.groups > 1:
        return "it knows one group only"
    if g.n * g.pixels == 0 or 0 in g.input_shape:
        return "nothing to multiply"
    outputs = _outputs(problem)
    if not _by_pixel(problem) and outputs.shape[4] > 1 and outputs.strides[4] != 1:
        return "neither channels nor pixels of grad_output lie side by side in memory"
    if problem.pass_name == FORWARD and g.columns > LONGEST_SUM:
        return f"{g.columns} products in one sum: errors of numbers of one sign add up"
    if (halo := _Tiles(problem).halo) > MOST_HALO_FLOATS:
        return f"a row of outputs looks at {halo * 4 >> 10} KiB of input"
    return None


def _unprofitable(problem: Problem) -> str | None:
    lanes, by_pixel, g = microkernel_sizes()["lanes"], _by_pixel(problem), problem.geometry
    forward, o = problem.pass_name == FORWARD, problem.o
    if problem.c > MOST_CHANNELS:
        return f"{problem.c} input channels: a product of matrices is wide enough"
    apart = all(a.kernel <= a.stride for a in g.axes)
    if problem.pass_name == INPUT_GRAD and apart and g.columns >= LEAST_PATCH:
        return f"{g.columns} inputs under an output alone: a product, and nothing is added twice"
    if g.taps == 1 and not (forward and by_pixel):
        return "one tap: the input is the patches, and nothing is gained by staging it"
    # Vectors of channels: filled up with zeros, and so are the weights.
    if by_pixel and forward and 4 * o < lanes:
        return f"{o} output channels: vectors of {lanes} would be mostly empty"
    if problem.pass_name == WEIGHT_GRAD:
        few = not by_pixel and 3 * o < 2 * lanes and problem.c > FEWEST_CHANNELS
        return f"{o} output channels: not worth turning them side by side" if few else None
    # Vectors of pixels: of gradients in either format, of outputs in contiguous memory.
    width = _outputs(problem).shape[4]
    least = 2 if by_pixel else 1.5 if forward else 3
    if o > lanes and not (forward and by_pixel) and least * width < lanes:
        return f"rows of {width} outputs: vectors of {lanes} would be mostly empty"
    return None


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    if problem.pass_name == FORWARD:
        return _forward(problem)
    return (
        _input_gradient(problem) if problem.pass_name == INPUT_GRAD else _weight_gradient(problem)
    )


def _outputs(problem: Problem) -> Layout:
    """Return the memory layout of the outputs (or of their gradients)."""
    if problem.pass_name == FORWARD:
        return problem.output
    return problem.left if problem.pass_name == INPUT_GRAD else problem.right


def _by_pixel(problem: Problem) -> bool:
    """Return whether the outputs' channels, not their columns, are contiguous in memory."""
    outputs = _outputs(problem)
    if outputs.shape[4] > 1 and outputs.strides[4] == 1:
        return False
    return outputs.shape[1] > 1 and outputs.strides[1] == 1


class _Tiles:
    """Tiles of a problem: the sizes of the struct HaloTiling in _few_channels.pxd."""

    def __init__(self, problem: Problem) -> None:
        g = self.geometry = problem.geometry
        self.axes = three(g.axes)
        self.inputs = problem.pass_name == INPUT_GRAD
        self.interleaved = not self.inputs and _by_pixel(problem)
        self.lengths = [a.size if self.inputs else a.out for a in self.axes]
        pixels = PIXELS[problem.pass_name]
        least = 8 * max(self.axes[2].extent, 1) if self.inputs else 0
        self.columns = share(self.lengths[2], max(COLUMNS, least))
        rows = share(self.lengths[1], max(1, pixels // self.columns))
        # Small batches of small images: finer tiles, so that several threads have work.
        others = g.n * self.lengths[0] * -(-self.lengths[2] // self.columns)
        rows = min(rows, share(self.lengths[1], -(-self.lengths[1] * others // ITEMS)))
        self.set_rows(max(rows, 1))
        while self.halo > HALO_FLOATS and self.rows > 1:
            self.set_rows(self.rows // 2)

    def set_rows(self, rows: int) -> None:
        """Set the rows of a tile, and the size of its halo tile."""
        self.rows = rows
        high, wide = self.axes[1:]
        lanes = microkernel_sizes()["lanes"]
        self.halo_rows = max(self._outputs(high, rows) - 1, 0) * high.stride + high.extent
        outputs = self._outputs(wide, self.columns)
        self.phases = wide.stride if self.inputs else min(wide.stride, wide.extent)
        # Whole vectors are read, starting at a row's last pixels.
        reach = up(outputs, lanes) + (wide.extent - 1) // wide.stride
        self.pitch = up(reach, lanes)
        self.row_size = self.phases * self.pitch
        channels = self.geometry.c_in
        if self.interleaved:
            self.row_size = (max(outputs - 1, 0) * wide.stride + wide.extent) * channels
            channels = 1
        depths = 1 if self.inputs else self.axes[0].kernel
        self.halo = lines(channels * depths * self.halo_rows * self.row_size)

    def _outputs(self, axis: Axis, size: int) -> int:
        """Return the maximum outputs along an axis for a tile of `size`."""
        if self.inputs:
            size = (size - 1 + axis.extent - 1) // axis.stride + 1
        return min(size, max(axis.out, 0))

    def fields(self, array: Layout, scratch: int, shared: int) -> Fields:
        """Return the fields of a HaloTiling over the input array."""
        g = self.geometry
        tiles = [
            self.lengths[0],
            -(-self.lengths[1] // self.rows),
            -(-self.lengths[2] // max(self.columns, 1)),
        ]
        return {
            "window": window(forward_lines(g), array),
            "interleaved": self.interleaved,
            "c": g.c_in,
            "o": g.c_out,
            "terms": g.columns,
            "rows": self.rows,
            "columns": self.columns,
            "tiles": tiles,
            "items": g.n * tiles[0] * tiles[1] * tiles[2],
            "halo_rows": self.halo_rows,
            "phases": self.phases,
            "pitch": self.pitch,
            "row_size": self.row_size,
            "halo": self.halo,
            "scratch": scratch,
            "shared": shared,
        }

    def terms(self, weight: Layout) -> tuple[list[int], list[int], list[int]]:
        """Return each term's offset in the halo tile, its halo row, and its offset in the weights.

        Depth taps vary slowest and rows fastest, so that adjacent terms seldom add to the same
        floats of the halo tile.
        """
        deep, high, wide = self.axes
        order = [
            (d, x, c, y)
            for d in range(deep.kernel)
            for x in range(wide.kernel)
            for c in range(self.geometry.c_in)
            for y in range(high.kernel)
        ]
        offset = [self._offset(d, x * wide.dilation, c, y * high.dilation) for d, x, c, y in order]
        row = [y * high.dilation for _, _, _, y in order]
        _, s_c, s_d, s_y, s_x = weight.strides
        place = [c * s_c + d * s_d + y * s_y + x * s_x for d, x, c, y in order]
        return offset, row, place

    def _offset(self, d: int, x: int, c: int, y: int) -> int:
        """Return the offset in the halo tile of an element of the first output's patch."""
        if self.interleaved:
            return (d * self.halo_rows + y) * self.row_size + x * self.geometry.c_in + c
        if self.inputs:
            row = c * self.halo_rows + y
        else:
            row = (c * self.axes[0].kernel + d) * self.halo_rows + y
        stride = self.axes[2].stride
        return row * self.row_size + x % stride * self.pitch + x // stride

    def plan(self, problem: Problem, fields: Fields) -> PassPlan:
        """Return the plan of a kernel with the given fields."""
        plural = "s" * (problem.c > 1)
        return PassPlan(
            algorithm=_NAME,
            reason=f"{problem.c} input channel{plural}: read in place under every tap",
            itemsize=problem.itemsize,
            items=fields["items"],
            scratch=fields["scratch"],
            shared=fields["shared"],
            block=self.rows * self.columns,
            o_block=problem.o,
            part_taps=self.geometry.taps,
            part_channels=problem.c,
            multiply_adds=self.geometry.multiply_adds,
        )


def _forward(problem: Problem) -> tuple[FewChannels, PassPlan]:
    tiles = _Tiles(problem)
    x, w, y = problem.left, problem.right, problem.output
    lanes = microkernel_sizes()["lanes"]
    o = up(problem.o, lanes) if tiles.interleaved else problem.o
    packed = tiles.geometry.columns * o
    prepacked = packed if problem.prepacked else 0
    made = lines(tiles.rows * tiles.columns * problem.o) if problem.narrow_output else 0
    fields = tiles.fields(x, tiles.halo + made, lines(packed - prepacked))
    plan = tiles.plan(problem, fields)._replace(prepacked=prepacked)
    job = problem.job(plan) | _strides("y", y)
    job |= {"tiling": fields, "stream": _streamed(y, tiles, lanes), "w_o": w.strides[0]}
    return FewChannels(job, tiles.terms(w)), plan


def _input_gradient(problem: Problem) -> tuple[FewChannelsInput, PassPlan]:
    tiles = _Tiles(problem)
    gy, w, gx = problem.left, problem.right, problem.output
    sizes = microkernel_sizes()
    # A panel of gy; afterwards, lines of gx.
    panel = max(problem.o * sizes["panel"], problem.c * (tiles.columns + 2 * tiles.phases))
    panel = lines(panel)
    # The table of the terms that a panel needs has 8 bytes a term.
    table = lines(2 * tiles.geometry.columns)
    shared = lines(tiles.geometry.columns * problem.o)
    fields = tiles.fields(gx, tiles.halo + panel + table, shared)
    plan = tiles.plan(problem, fields)
    job = problem.job(plan) | _strides("gy", gy)
    job |= {"tiling": fields, "panel": panel, "w_o": w.strides[0]}
    return FewChannelsInput(job, tiles.terms(w)), plan


def _weight_gradient(problem: Problem) -> tuple[FewChannelsWeight, PassPlan]:
    tiles = _Tiles(problem)
    x, gy, gw = problem.left, problem.right, problem.output
    sizes = microkernel_sizes()
    chunk = max(SUMMED_AT_ONCE, tiles.columns) * sizes["wide"]
    row = up(problem.o, sizes["lanes"])
    size = tiles.geometry.columns * row
    fields = tiles.fields(x, tiles.halo + lines(chunk), 0)
    runs = partials(1, fields["items"], size * problem.itemsize, items=MOST_PARTIALS)
    fields["shared"] = lines(runs * size)
    plan = tiles.plan(problem, fields)._replace(items=runs, partials=runs)
    job = problem.job(plan) | _strides("gy", gy)
    job |= {"tiling": fields, "size": size, "row": row, "gw_o": gw.strides[0]}
    return FewChannelsWeight(job, tiles.terms(gw)), plan


def _streamed(y: Layout, tiles: _Tiles, lanes: int) -> bool:
    """Return whether y is large and consists of aligned whole vectors (use streaming stores)."""
    run = y.shape[1] if tiles.interleaved else tiles.columns
    whole = all(size % lanes == 0 for size in (run, *y.strides) if size > 1)
    return whole and 4 * math.prod(y.shape) >= STREAMED


def _strides(name: str, array: Layout) -> Fields:
    """Return an array's strides by the names of the kernels' fields."""
    n, channel, d, row, pixel = array.strides
    return {
        f"{name}_n": n,
        f"{name}_d": d,
        f"{name}_row": row,
        f"{name}_pixel": pixel if array.shape[4] > 1 else 1,
        f"{name}_channel": channel,
    }


def _not_narrow(problem: Problem) -> str | None:
    if problem.narrow_left or problem.pass_name != FORWARD:
        return "it reads float32"
    return None if _by_pixel(problem) else "its channels do not lie side by side in memory"


FEW_CHANNELS = Algorithm(
    *(_NAME, PASSES, _prepare, _impossible, _unprofitable), not_narrow=_not_narrow
)
