"""Weight gradient by im2col and gemm.

    gw[o, c, t] = sum over images n and output pixels q of  gy[n, o, q] * x[n, c, under tap t of q]

is one matrix product, (o, q) @ (q, K), summed over its long side.  Work items are (group, block of
o, part of K, chunk of pixel blocks); see _partials.pxd for the chunks.
"""

from cython.parallel cimport prange, threadid

from convcore.engine.conv._blocks cimport Blocks, block_begin, block_end
from convcore.engine.conv.im2col._im2col cimport KBlock, Window, gather_nchw, gather_nhwc
from convcore.engine.conv._kernel cimport AnyEpilogue, AnyKernel, Compute
from convcore.engine.conv._partials cimport add_partials, chunk_begin
from convcore.engine.runtime._gemm cimport check_sizes, gemm
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._types cimport number
from convcore.engine.runtime._vectors cimport zero

use_team()

cdef struct Job:
    Window x                     # the inputs that an output pixel reads
    Window gy                    # its gradient, as one tap without pads
    Blocks blocks
    bint channels_last           # gather rows, not columns
    bint channels_outer          # gw is (o, c, t), not (o, t, c)
    bint direct_x                # the arrays themselves are the matrices
    bint direct_gy
    Py_ssize_t groups
    Py_ssize_t c                 # input and output channels of one group
    Py_ssize_t o
    Py_ssize_t o_block
    Py_ssize_t o_blocks
    Py_ssize_t part_taps
    Py_ssize_t part_channels
    Py_ssize_t tap_parts
    Py_ssize_t channel_parts
    Py_ssize_t partials
    Py_ssize_t patches           # elements of scratch for patches; the rest packs gy
    Py_ssize_t scratch           # elements of scratch per thread
    Py_ssize_t items


cdef void add_block(
    const Job *job, KBlock part, Py_ssize_t group, Py_ssize_t o0, Py_ssize_t o1, Py_ssize_t q0,
    Py_ssize_t q1, const number *x, const number *gy, number *gw, number *scratch, bint first,
) noexcept nogil:
    """gw[o0:o1, part] = or += gy[o0:o1, q0:q1] @ patches[q0:q1, part]."""
    cdef Py_ssize_t K = job.x.taps * job.c, count = q1 - q0, n = q0 // job.x.pixels
    cdef Py_ssize_t k = (part.t1 - part.t0) * (part.c1 - part.c0), ldx, ldg
    cdef bint one_image = q1 <= (n + 1) * job.x.pixels
    cdef const number *patches = scratch
    cdef const number *g = scratch + job.patches
    cdef KBlock outputs = KBlock(0, 1, o0, o1)
    cdef number one = 1, beta = 0 if first else 1
    x += group * job.c * job.x.s_c
    gy += group * job.o * job.gy.s_c
    if job.channels_last:
        if job.direct_x:
            patches = x + q0 * job.x.s[2] + part.c0
            ldx = job.x.s[2]
        else:
            gather_nhwc(x, &job.x, part, q0, q1, scratch)
            ldx = k
        if job.direct_gy:
            g = gy + q0 * job.gy.s[2] + o0
            ldg = job.gy.s[2]
        else:
            gather_nhwc(gy, &job.gy, outputs, q0, q1, scratch + job.patches)
            ldg = o1 - o0
        # (o1-o0, k) += (count, o1-o0)^T @ (count, k)
        gemm(True, False, o1 - o0, k, count, one, g, ldg, patches, ldx, beta, gw, K)
    else:
        if job.direct_x and one_image:
            patches = x + n * job.x.s_n + part.c0 * job.x.s_c + (q0 - n * job.x.pixels)
            ldx = job.x.s_c
        else:
            gather_nchw(x, &job.x, part, job.channels_outer, q0, q1, scratch)
            ldx = count
        if job.direct_gy and one_image:
            g = gy + n * job.gy.s_n + o0 * job.gy.s_c + (q0 - n * job.x.pixels)
            ldg = job.gy.s_c
        else:
            gather_nchw(gy, &job.gy, outputs, True, q0, q1, scratch + job.patches)
            ldg = count
        # (o1-o0, k) += (o1-o0, count) @ (k, count)^T
        gemm(False, True, o1 - o0, k, count, one, g, ldg, patches, ldx, beta, gw, K)


cdef void weight_item(
    const Job *job, Py_ssize_t item, const number *x, const number *gy, number *sums,
    number *scratch,
) noexcept nogil:
    """Sum one chunk of pixel blocks into one block of a partial matrix."""
    cdef Py_ssize_t K = job.x.taps * job.c, block, partial, tap_part, channel_part, o0, o1, group
    cdef Py_ssize_t begin, end
    cdef KBlock part
    partial, item = item % job.partials, item // job.partials
    channel_part, item = item % job.channel_parts, item // job.channel_parts
    tap_part, item = item % job.tap_parts, item // job.tap_parts
    o0 = item % job.o_blocks * job.o_block
    group = item // job.o_blocks
    o1 = min(job.o, o0 + job.o_block)
    part.t0 = tap_part * job.part_taps
    part.t1 = min(job.x.taps, part.t0 + job.part_taps)
    part.c0 = channel_part * job.part_channels
    part.c1 = min(job.c, part.c0 + job.part_channels)
    begin = chunk_begin(partial, job.partials, job.blocks.count)
    end = chunk_begin(partial + 1, job.partials, job.blocks.count)
    sums += (partial * job.groups + group) * job.o * K + o0 * K
    sums += (
        part.c0 * job.x.taps + part.t0 if job.channels_outer else part.t0 * job.c + part.c0
    )
    scratch += threadid() * job.scratch
    for block in range(begin, end):
        add_block(
            job, part, group, o0, o1, block_begin(&job.blocks, block),
            block_end(&job.blocks, block), x, gy, sums, scratch, block == begin,
        )


cdef void weight_gradient(
    const Job *job, const number *x, const void *grad, void *out, void *workspace,
    const AnyEpilogue *epilogue, int threads,
) noexcept nogil:
    """Run all items, then sum the partial matrices."""
    cdef const number *gy = <const number *>grad
    cdef number *gw = <number *>out
    cdef number *scratch = <number *>workspace
    cdef number *sums = scratch + threads * job.scratch if job.partials > 1 else gw
    cdef Py_ssize_t i, K = job.x.taps * job.c, size = job.groups * job.o * K
    cdef Py_ssize_t rows = job.groups * job.o if job.partials > 1 else 0
    if job.blocks.count == 0:
        zero(gw, size)
        return
    # A thread owns whole pieces of the partial matrices, and its own slice of the scratch.
    for i in prange(job.items, schedule="dynamic", num_threads=threads):
        weight_item(job, i, x, gy, sums, scratch)
    # A thread owns whole rows of gw.
    for i in prange(rows, schedule="static", num_threads=threads):
        add_partials(sums, job.partials, size, i * K, K, gw + i * K)


cdef class WeightGradient(AnyKernel):
    """Kernel of weight.py; gw is contiguous (C_out, K).

    largest: the largest size or leading dimension of any gemm.
    """

    cdef Job job

    def __cinit__(self, dict job, str kind, Py_ssize_t largest):
        check_sizes(largest)
        self.job = job
        self.set_compute(
            kind, &self.job, <Compute>weight_gradient[float], <Compute>weight_gradient[double],
            <Compute>weight_gradient[floatcomplex], <Compute>weight_gradient[doublecomplex],
        )
