"""What will be done: from geometry, dtype and memory format to algorithm, block sizes and memory.

A plan never depends on the number of threads, so neither do the bits of a result.  Sizes are in
elements and pixels; engine/jobs.py hands them to the kernels.

The constants were chosen by hand on 2 cores with AVX-512 and 1 MiB of L2 each; `convcore bench`
shows what they come to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from convcore.engine.checks import check_dtype
from convcore.engine.geometry import Axis, Geometry, shown
from convcore.engine.phases import axis_phases
from convcore.kernels._depthwise import MOST_TAPS, WIDTH

# Patches of one part of a block: half a 1 MiB L2, the other half being BLAS's own packed copy.
PART_BYTES = 512 << 10
# Pixels of a block.  A gemm packs its weights anew for each block, at about 1/BLOCK of its work.
BLOCK = 256
# The weight gradient's blocks may be this many times as long.
MOST_SUMMED_BLOCKS = 8
# Fewer items than this are cut finer, along the output channels, to leave work for many threads.
ITEMS = 8
# Narrower blocks of output channels than this lose more in the gemm than the cut brings.
LEAST_O_BLOCK = 128
# The gathering input gradient makes C_in/G channels at a time; a gemm that narrow wastes its width.
LEAST_GATHERED_CHANNELS = 16
# Gathering also multiplies by the zeros around grad_output; scattering does not.  Where that makes
# more work than this factor (5x5 kernels on 8x8 maps: 2.25), adding up columns is the lesser cost.
MOST_GATHERED_WORK = 1.5
# Phases (stride**rank) beyond which the many small gemms lose to one gemm and col2im.
MOST_PHASES = 16
# Partial weight gradients: at most this many, and at most this many bytes in all.
MOST_PARTIALS = 16
PARTIAL_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class MapPlan:
    """How one of the three maps is computed.

    ``block`` pixels by ``o_block`` output channels are done at a time, a part of K after another,
    in ``items`` independent pieces of work.  ``patches`` of the ``scratch`` elements that each
    thread needs hold patches; ``shared`` elements serve all threads (packed weights, partial sums).
    """

    algorithm: str
    reason: str
    itemsize: int
    block: int
    o_block: int
    part_taps: int
    part_channels: int
    items: int
    patches: int
    scratch: int
    shared: int = 0
    partials: int = 1
    tile: int = 0

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that each thread needs."""
        return self.scratch * self.itemsize

    @property
    def shared_bytes(self) -> int:
        """Bytes that all threads need together."""
        return self.shared * self.itemsize


@dataclass(frozen=True, slots=True)
class Plan:
    """The plans of a convolution's three maps."""

    forward: MapPlan
    input_grad: MapPlan
    weight_grad: MapPlan


def plan_conv(geometry: Geometry, dtype: np.dtype | str, channels_last: bool = False) -> Plan:
    """Return how a convolution of dense arrays and its two gradients are computed.

    Parameters
    ----------
    geometry : Geometry
    dtype : float32, float64, complex64 or complex128
    channels_last : bool
        The memory format of the arrays and of the result.

    Returns
    -------
    Plan
        One MapPlan a map: blocks in pixels and channels, memory in elements and in bytes.

    Raises
    ------
    TypeError
        geometry is no Geometry, or dtype none of the above.

    Examples
    --------
    >>> from convcore.engine import make_geometry
    >>> geometry = make_geometry((8, 64, 56, 56), (64, 64, 3, 3), padding=1)
    >>> plan_conv(geometry, "float32").forward.algorithm
    'im2col'
    """
    if not isinstance(geometry, Geometry):
        raise TypeError(f"geometry must be a Geometry, got {shown(geometry)}")
    check_dtype("dtype", np.dtype(dtype))
    itemsize = np.dtype(dtype).itemsize
    if channels_last and is_depthwise(geometry):
        forward = plan_depthwise(geometry, itemsize, [(geometry.pixels, geometry.taps)])
    else:
        forward = plan_forward(geometry, itemsize, channels_last, matrix=True, pack=False)
    if channels_last and is_depthwise(geometry) and has_few_phases(geometry):
        input_grad = plan_depthwise(geometry, itemsize, phase_shapes(geometry))
    else:
        input_grad = plan_input_grad(
            geometry, itemsize, channels_last, matrix=True, pack=geometry.taps > 1
        )
    if is_depthwise(geometry):
        weight_grad = plan_depthwise_weight(geometry, itemsize)
    else:
        weight_grad = plan_weight_grad(
            geometry, itemsize, channels_last, direct_x=is_pointwise(geometry), direct_gy=True
        )
    return Plan(forward, input_grad, weight_grad)


def is_pointwise(geometry: Geometry) -> bool:
    """Return whether the input is its own matrix of patches: kernel 1, stride 1, no padding."""
    return all(
        a.kernel == 1 and a.stride == 1 and a.before == 0 and a.after == 0 for a in geometry.axes
    )


def is_depthwise(geometry: Geometry) -> bool:
    """Return whether each channel has a kernel of its own, and no gemm is worth its name."""
    g = geometry
    return g.groups == g.c_in == g.c_out > 1 and g.taps <= MOST_TAPS


@dataclass(frozen=True, slots=True)
class Blocks:
    """How the pixels of a batch are cut: see kernels/_blocks.pxd."""

    unit: int
    size: int
    per_unit: int
    count: int


def cut(n: int, pixels: int, channels_last: bool, most: int = BLOCK) -> Blocks:
    """Cut N * pixels into equal blocks of at most `most`.

    In contiguous memory a block of several images is no matrix in place and must be staged, so
    there blocks stay within an image unless images are smaller than a block.
    """
    unit = n * pixels if channels_last or pixels < BLOCK else pixels
    if unit == 0 or n == 0:
        return Blocks(0, 0, 0, 0)
    size = _share(unit, most)
    per_unit = -(-unit // size)
    return Blocks(unit, size, per_unit, n * pixels // unit * per_unit)


def plan_forward(
    geometry: Geometry, itemsize: int, channels_last: bool, matrix: bool, pack: bool
) -> MapPlan:
    """Plan y = patches @ weights.

    matrix: gemm could take the input in place.  pack: the weights must be copied first.
    """
    g = geometry
    c, o = g.c_in // g.groups, g.c_out // g.groups
    outer = not channels_last and not pack
    shapes = [(g.pixels, g.taps)]
    return _correlation(g, g.groups, itemsize, channels_last, c, o, shapes, matrix, pack, outer)


def plan_input_grad(
    geometry: Geometry, itemsize: int, channels_last: bool, matrix: bool, pack: bool
) -> MapPlan:
    """Plan gx, by gathering grad_output phase by phase or by scattering columns.

    matrix: gemm could take grad_output in place.  pack: the weights must be copied to gather.
    """
    g = geometry
    c, o = g.c_in // g.groups, g.c_out // g.groups
    if c < LEAST_GATHERED_CHANNELS:
        reason = f"{c} input channels a group: too few to gather"
        return _scatter(g, itemsize, channels_last, matrix, reason)
    if not has_few_phases(g):
        reason = "many remainders of the stride: too many small gemms to gather"
        return _scatter(g, itemsize, channels_last, matrix, reason)
    shapes = phase_shapes(g)
    work = sum(pixels * taps for pixels, taps in shapes) / (g.pixels * g.taps)
    if work > MOST_GATHERED_WORK:
        reason = f"gathering would do {work:.2f} times the work, on padding"
        return _scatter(g, itemsize, channels_last, matrix, reason)
    return _correlation(g, g.groups, itemsize, channels_last, o, c, shapes, matrix, pack, False)


def has_few_phases(geometry: Geometry) -> bool:
    """Return whether the input gradient has few enough phases to be gathered one by one."""
    return math.prod(min(a.stride, a.size) for a in geometry.axes) <= MOST_PHASES


def phase_shapes(geometry: Geometry) -> list[tuple[int, int]]:
    """Return (pixels of one image, taps) of every phase of the input gradient."""
    return [
        (math.prod(p.count for p in combined), math.prod(p.taps for p in combined))
        for combined in product(*(axis_phases(a) for a in geometry.axes))
    ]


def plan_depthwise(geometry: Geometry, itemsize: int, phases: Sequence[tuple[int, int]]) -> MapPlan:
    """Plan a depthwise forward map or input gradient, its channels side by side."""
    g = geometry
    plan = _correlation(g, 1, itemsize, True, 1, g.c_out, phases, True, True, False)
    return replace(
        plan,
        algorithm="depthwise",
        reason="one channel a group: multiplied channel by channel, without a gemm",
    )


def plan_depthwise_weight(geometry: Geometry, itemsize: int) -> MapPlan:
    """Plan a depthwise weight gradient, summed in as many runs as there must be items."""
    g = geometry
    chunks = -(-g.c_out // WIDTH)
    partials = max(1, min(-(-ITEMS // chunks), MOST_PARTIALS, g.n * g.pixels))
    return MapPlan(
        algorithm="depthwise",
        reason="one channel a group: multiplied channel by channel, without a gemm",
        itemsize=itemsize,
        block=-(-g.n * g.pixels // partials),
        o_block=min(g.c_out, WIDTH),
        part_taps=g.taps,
        part_channels=1,
        items=chunks * partials,
        patches=0,
        scratch=0,
        shared=lines(partials * g.c_out * g.taps),
        partials=partials,
    )


def _correlation(
    g: Geometry,
    groups: int,
    itemsize: int,
    channels_last: bool,
    c: int,
    o: int,
    phases: Sequence[tuple[int, int]],
    matrix: bool,
    pack: bool,
    channels_outer: bool,
) -> MapPlan:
    """Plan (pixels, c*taps) @ (c*taps, o) for each group and each phase's (pixels, taps)."""
    blocks = [cut(g.n, pixels, channels_last) for pixels, _ in phases]
    taps = max((t for _, t in phases), default=0)
    block = max((b.size for b in blocks), default=0)
    n_blocks = sum(b.count for b in blocks)
    part_taps, part_channels = _parts(taps, c, block * itemsize, channels_outer)
    in_place = all(
        channels_last or g.n == 1 or b.unit == pixels
        for b, (pixels, _) in zip(blocks, phases, strict=True)
    )
    direct = matrix and is_pointwise(g) and in_place
    patches = 0 if direct else block * part_taps * part_channels
    written = len(phases) == 1 and in_place
    o_block = _o_block(o, n_blocks * groups, o if written else most_staged(block, itemsize))
    staged = 0 if written else block * o_block
    if is_pointwise(g):
        algorithm = "pointwise"
        reason = "kernel 1, stride 1, no padding: the input is the matrix of patches"
    elif len(phases) > 1:
        algorithm = "im2col by phases"
        reason = f"{len(phases)} remainders of the stride, each a convolution of stride 1"
    else:
        algorithm = "im2col"
        reason = f"parts of {-(-patches * itemsize >> 10)} KiB of patches, multiplied in cache"
    return MapPlan(
        algorithm=algorithm,
        reason=reason,
        itemsize=itemsize,
        block=block,
        o_block=o_block,
        part_taps=part_taps,
        part_channels=part_channels,
        items=n_blocks * groups * -(-o // o_block),
        patches=patches,
        scratch=lines(patches + staged),
        shared=lines(sum(t for _, t in phases) * groups * c * o) if pack else 0,
    )


def _scatter(g: Geometry, itemsize: int, channels_last: bool, matrix: bool, reason: str) -> MapPlan:
    """Plan columns = gy @ w, then col2im, over tiles of gx."""
    axis = tiled_axis(g)
    c, o = g.c_in // g.groups, g.c_out // g.groups
    # Columns that reach over a tile's edge are made once for each side: keep tiles much longer.
    least = 8 * axis.extent
    tiles = max(1, min(-(-ITEMS // max(g.n * g.groups, 1)), axis.size // least))
    tile = max(1, -(-axis.size // tiles))
    block = min(BLOCK, g.pixels) if matrix else min(BLOCK, g.pixels, most_staged(o, itemsize))
    part_taps, part_channels = _parts(g.taps, c, block * itemsize, not channels_last)
    patches = block * part_taps * part_channels
    return MapPlan(
        algorithm="gemm and col2im",
        reason=reason,
        itemsize=itemsize,
        block=block,
        o_block=o,
        part_taps=part_taps,
        part_channels=part_channels,
        items=g.n * g.groups * -(-axis.size // tile),
        patches=patches,
        scratch=lines(patches + (0 if matrix else block * o)),
        tile=tile,
    )


def weight_blocks(geometry: Geometry, itemsize: int, channels_last: bool) -> Blocks:
    """Return the blocks of the weight gradient: longer where patches are small.

    The block is the side of the gemm that is summed, and gw is read and written once for each.
    """
    fit = PART_BYTES // (BLOCK * geometry.columns * itemsize)
    most = BLOCK * max(1, min(fit, MOST_SUMMED_BLOCKS))
    return cut(geometry.n, geometry.pixels, channels_last, most)


def tiled_axis(geometry: Geometry) -> Axis:
    """Return the outermost axis with more than one output, or the last: scatters are tiled on it.

    All axes before it have one output, so the outputs that touch a tile are one run of pixels.
    """
    return next((a for a in geometry.axes if a.out > 1), geometry.axes[-1])


def plan_weight_grad(
    geometry: Geometry, itemsize: int, channels_last: bool, direct_x: bool, direct_gy: bool
) -> MapPlan:
    """Plan gw = gy @ patches, with the pixels summed in as many runs as there must be items.

    direct_x, direct_gy: the array itself is the matrix that is multiplied.
    """
    g = geometry
    c, o = g.c_in // g.groups, g.c_out // g.groups
    blocks = weight_blocks(g, itemsize, channels_last)
    part_taps, part_channels = _parts(g.taps, c, max(blocks.size, 1) * itemsize, not channels_last)
    in_place = channels_last or g.n == 1 or blocks.unit == g.pixels
    direct_gy = direct_gy and in_place
    o_block = o if direct_gy else _share(o, most_staged(blocks.size, itemsize))
    pieces = g.groups * -(-g.taps // part_taps) * -(-c // part_channels) * -(-o // o_block)
    size = g.c_out * g.columns
    partials = min(
        -(-ITEMS // pieces), MOST_PARTIALS, PARTIAL_BYTES // (size * itemsize), blocks.count
    )
    partials = max(partials, 1)
    patches = 0 if direct_x and in_place else blocks.size * part_taps * part_channels
    staged = 0 if direct_gy else blocks.size * o_block
    return MapPlan(
        algorithm="pointwise" if is_pointwise(g) else "im2col",
        reason=f"{pieces} pieces of the gradient, each summed in {partials} runs of pixels",
        itemsize=itemsize,
        block=blocks.size,
        o_block=o_block,
        part_taps=part_taps,
        part_channels=part_channels,
        items=pieces * partials,
        patches=patches,
        scratch=lines(patches + staged),
        shared=partials * size if partials > 1 else 0,
        partials=partials,
    )


def lines(elements: int) -> int:
    """Round up to whole cache lines, so that no two threads write one."""
    return -(-elements // 64) * 64


def _share(total: int, most: int) -> int:
    """Return the size of the fewest equal shares of ``total`` that are at most ``most``."""
    shares = max(1, -(-total // most))
    return max(1, -(-total // shares))


def _o_block(o: int, items: int, most: int) -> int:
    """Return the output channels of one item: at most `most`, and fewer where items are few."""
    cuts = min(-(-ITEMS // max(items, 1)), o // LEAST_O_BLOCK)
    return _share(o, min(-(-o // max(cuts, 1)), most))


def most_staged(block: int, itemsize: int) -> int:
    """Return how many rows of `block` elements are staged at a time: as many as fit a part."""
    return max(1, PART_BYTES // max(block * itemsize, 1))


def _parts(taps: int, c: int, row_bytes: int, channels_outer: bool) -> tuple[int, int]:
    """Return (taps, channels) of a part of K: whole runs of the inner index, or a run of one."""
    most = max(1, PART_BYTES // max(row_bytes, 1))
    outer, inner = (c, max(taps, 1)) if channels_outer else (max(taps, 1), c)
    if inner <= most:
        part = (_share(outer, most // inner), inner)
    else:
        part = (1, _share(inner, most))
    return (part[1], part[0]) if channels_outer else part
