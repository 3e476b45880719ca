"""Input gradient by gemm and col2im, for few input channels or kernels that do not overlap.

    columns[(c, t), q] = sum over o of  w[o, c, t] * gy[n, o, q],   then col2im

The method of _im2col_gemm.pyx gathers patches of grad_output and computes the C_in channels of a
group at a time; with three channels most of a gemm's width would be wasted.  Work items are (image,
group, tile): a tile is a range of input indices on the outermost axis with more than one output, so
the outputs that touch it are one contiguous range.  The item owns its tile of gx and computes every
column that touches it; columns across two tiles are computed twice and added once in each.
"""

from cython.parallel cimport prange, threadid

from convcore.engine.conv.im2col._im2col cimport (
    Line,
    KBlock,
    Window,
    gather_nchw,
    gather_nhwc,
    scatter_nchw,
    scatter_nhwc,
)
from convcore.engine.conv._kernel cimport AnyEpilogue, AnyKernel, Compute
from convcore.engine.runtime._gemm cimport check_sizes, gemm
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._types cimport number

use_team()

cdef struct Job:
    Window gx                    # the inputs that an output pixel reads
    Window gy                    # its gradient, as one tap without pads
    bint channels_last           # rows, not columns
    bint channels_outer          # w is (o, c, t), not (o, t, c)
    bint direct_gy               # gy itself is the matrix
    Py_ssize_t groups
    Py_ssize_t c                 # input and output channels of one group
    Py_ssize_t o
    Py_ssize_t axis              # index of the tiled axis
    Py_ssize_t tile              # input indices of one tile
    Py_ssize_t tiles
    Py_ssize_t block             # maximum output pixels at a time
    Py_ssize_t part_taps
    Py_ssize_t part_channels
    Py_ssize_t patches           # elements of scratch for columns; the rest packs gy
    Py_ssize_t scratch           # elements of scratch per thread
    Py_ssize_t items


cdef void clear(
    const Job *job, const Py_ssize_t *bounds, number *gx
) noexcept nogil:
    """Zero gx inside the bounds, for the channels of one group of one image."""
    cdef Py_ssize_t c, d, h, w
    cdef number *line
    for c in range(job.c):
        for d in range(bounds[0], bounds[1]):
            for h in range(bounds[2], bounds[3]):
                line = gx + c * job.gx.s_c + d * job.gx.s[0] + h * job.gx.s[1]
                for w in range(bounds[4], bounds[5]):
                    line[w * job.gx.s[2]] = 0


cdef void scatter_block(
    const Job *job, KBlock part, Py_ssize_t group, Py_ssize_t q0, Py_ssize_t q1,
    const Py_ssize_t *bounds, const number *gy, Py_ssize_t ldg, const number *w, number *gx,
    number *columns,
) noexcept nogil:
    """Add the columns of pixels [q0, q1), one part of K, to gx inside the input slice."""
    cdef Py_ssize_t K = job.gx.taps * job.c, count = q1 - q0
    cdef Py_ssize_t k = (part.t1 - part.t0) * (part.c1 - part.c0)
    cdef number one = 1, nought = 0
    w += group * job.o * K
    w += part.c0 * job.gx.taps + part.t0 if job.channels_outer else part.t0 * job.c + part.c0
    if job.channels_last:
        # (count, k) = (count, o) @ (o, k)
        gemm(False, False, count, k, job.o, one, gy, ldg, w, K, nought, columns, k)
        scatter_nhwc(columns, &job.gx, part, q0, q1, bounds, gx)
    else:
        # (k, count) = (o, k)^T @ (o, count)
        gemm(True, False, k, count, job.o, one, w, K, gy, ldg, nought, columns, count)
        scatter_nchw(columns, &job.gx, part, job.channels_outer, q0, q1, bounds, gx)


cdef void touching(
    const Line *line, Py_ssize_t low, Py_ssize_t high, Py_ssize_t *begin, Py_ssize_t *end
) noexcept nogil:
    """Compute the range [begin, end) of outputs that read any of the inputs [low, high)."""
    cdef Py_ssize_t a = low - line.first - (line.taps - 1) * line.step
    cdef Py_ssize_t b = high - 1 - line.first
    begin[0] = (a + line.stride - 1) // line.stride if a > 0 else 0
    end[0] = min(b // line.stride + 1, line.count) if b >= 0 else 0


cdef void tile_item(
    const Job *job, Py_ssize_t item, const number *grad, const number *w, number *gx,
    number *scratch,
) noexcept nogil:
    """Compute one tile of one group of one image."""
    cdef const Window *v = &job.gx
    cdef Py_ssize_t[6] bounds = [0, v.line[0].size, 0, v.line[1].size, 0, v.line[2].size]
    cdef Py_ssize_t tile = item % job.tiles, group = item // job.tiles % job.groups
    cdef Py_ssize_t n = item // job.tiles // job.groups, begin, end, inner, q0, q1, ldg
    cdef KBlock part
    cdef KBlock outputs = KBlock(0, 1, 0, job.o)
    cdef const number *gy
    cdef number *packed
    bounds[2 * job.axis] = tile * job.tile
    bounds[2 * job.axis + 1] = min(v.line[job.axis].size, (tile + 1) * job.tile)
    touching(&v.line[job.axis], bounds[2 * job.axis], bounds[2 * job.axis + 1], &begin, &end)
    inner = v.pixels // v.line[job.axis].count
    q0, end = n * v.pixels + begin * inner, n * v.pixels + end * inner
    scratch += threadid() * job.scratch
    packed = scratch + job.patches
    grad += group * job.o * job.gy.s_c
    gx += group * job.c * v.s_c
    clear(job, bounds, gx + n * v.s_n)
    while q0 < end:
        q1 = min(q0 + job.block, end)
        gy = packed
        if job.channels_last and job.direct_gy:
            gy = grad + q0 * job.gy.s[2]
            ldg = job.gy.s[2]
        elif job.channels_last:
            gather_nhwc(grad, &job.gy, outputs, q0, q1, packed)
            ldg = job.o
        elif job.direct_gy:
            gy = grad + n * job.gy.s_n + (q0 - n * v.pixels)
            ldg = job.gy.s_c
        else:
            gather_nchw(grad, &job.gy, outputs, True, q0, q1, packed)
            ldg = q1 - q0
        part.t1 = 0
        while part.t1 < v.taps:
            part.t0, part.t1 = part.t1, min(part.t1 + job.part_taps, v.taps)
            part.c1 = 0
            while part.c1 < job.c:
                part.c0, part.c1 = part.c1, min(part.c1 + job.part_channels, job.c)
                scatter_block(job, part, group, q0, q1, bounds, gy, ldg, w, gx, scratch)
        q0 = q1


cdef void input_gradient(
    const Job *job, const number *gy, const void *weight, void *out, void *workspace,
    const AnyEpilogue *epilogue, int threads,
) noexcept nogil:
    """Run all items."""
    cdef const number *w = <const number *>weight
    cdef number *gx = <number *>out
    cdef number *scratch = <number *>workspace
    cdef Py_ssize_t i
    # A thread owns whole tiles of gx, and its own slice of the scratch.
    for i in prange(job.items, schedule="dynamic", num_threads=threads):
        tile_item(job, i, gy, w, gx, scratch)


cdef class GemmCol2im(AnyKernel):
    """Kernel of gemm_col2im.py; w is contiguous (C_out, K).

    largest: the largest size or leading dimension of any gemm.
    """

    cdef Job job

    def __cinit__(self, dict job, str kind, Py_ssize_t largest):
        check_sizes(largest)
        self.job = job
        self.set_compute(
            kind, &self.job, <Compute>input_gradient[float], <Compute>input_gradient[double],
            <Compute>input_gradient[floatcomplex], <Compute>input_gradient[doublecomplex],
        )
