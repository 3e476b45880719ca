"""Weight gradient by indirect convolution: products with the pixels under each tap, by pointers.

    gw[o, c, t] = sum over images n and output pixels q of  gy[n, o, q] * x[n, c, under tap t of q]

For each tap this is a product of grad_output, transposed to rows of output channels, with the
pixels under that tap, multiplied in place (indirect.c, _indirection.pxd).

In bfloat16, blocks of pixels are padded with zeros to whole blocks of terms of bfloat16.c.

Work items are (group, block of o, block of c, range of taps, chunk of blocks); see _partials.pxd
for the chunks.
"""

from convcore.engine.conv._blocks cimport Blocks, block_begin, block_end
from convcore.engine.conv.indirect._indirection cimport Rows, pack_pixels, point
from convcore.engine.conv._kernel cimport FloatWeightGradient
from convcore.engine.conv._partials cimport chunk_begin
from convcore.engine.runtime._isa cimport BFLOAT16_BLOCK, bfloat16, microkernels
from convcore.engine.runtime._vectors cimport copy, element, zero

cdef struct Job:
    bint bfloat16                # products of words
    Rows x                       # the inputs that an output pixel reads
    Rows gy                      # its gradient, as one tap without pads
    Blocks blocks                # whole lines, or pieces of a line
    bint channels_last           # gw's memory
    Py_ssize_t groups
    Py_ssize_t c                 # input and output channels of one group
    Py_ssize_t o
    Py_ssize_t c_block           # of one item
    Py_ssize_t c_blocks
    Py_ssize_t o_block
    Py_ssize_t o_blocks
    Py_ssize_t tap_block
    Py_ssize_t tap_blocks
    Py_ssize_t partials
    Py_ssize_t sum_row           # floats of a tap's sums: c_block padded to whole vectors
    Py_ssize_t pointers          # where a thread's pointers begin, after the zeros, then inputs,
    Py_ssize_t inputs            # packed gradients, sums
    Py_ssize_t gradients
    Py_ssize_t own               # pointers to the gradients, in bfloat16
    Py_ssize_t words             # of the gradients, in bfloat16
    Py_ssize_t sums


cdef inline void fill_pointers(
    const float **table, Py_ssize_t begin, Py_ssize_t end, const float *zeros
) noexcept nogil:
    """Set entries [begin, end) of a pointer table to zeros."""
    cdef Py_ssize_t i
    for i in range(begin, end):
        table[i] = zeros


cdef void add_block(
    const Job *job, Py_ssize_t o, Py_ssize_t c, Py_ssize_t t0, Py_ssize_t t1, Py_ssize_t q0,
    Py_ssize_t q1, const float *x, const float *x_end, const float *gy, const float *gy_end,
    float *scratch, bint first,
) noexcept nogil:
    """sums[o, t, c] = or += gy[q, o] * x[under tap t of q, c] over the pixels of a block."""
    cdef const float **table = <const float **>(scratch + job.pointers)
    cdef float *sums = scratch + job.sums
    cdef float *inputs = scratch + job.inputs
    cdef float *gradients = scratch + job.gradients
    cdef Py_ssize_t t, row = job.tap_block * job.sum_row, lanes = microkernels().lanes
    cdef Py_ssize_t width = (c + lanes - 1) // lanes * lanes, pixels = q1 - q0, blocks = 0
    cdef const float **own
    point(&job.x, x, q0, q1, inputs, scratch, table)
    if job.x.packed:
        pack_pixels(&job.x, x, c, x_end, q0, q1, inputs)
    if job.gy.packed:
        pack_pixels(&job.gy, gy, o, gy_end, q0, q1, gradients)
    if job.bfloat16:
        blocks = (pixels + BFLOAT16_BLOCK - 1) // BFLOAT16_BLOCK
        own = <const float **>(scratch + job.own)
        point(&job.gy, gy, q0, q1, gradients, scratch, own)
        fill_pointers(own, pixels, blocks * BFLOAT16_BLOCK, scratch)
        bfloat16().words_of_rows(
            own, job.gy.narrow and not job.gy.packed, blocks, (o + lanes - 1) // lanes * lanes,
            scratch + job.words,
        )
    for t in range(t0, t1):
        if job.bfloat16:
            fill_pointers(
                table + t * job.x.pitch, pixels, blocks * BFLOAT16_BLOCK, scratch
            )
            bfloat16().gradient(
                o, width, blocks, scratch + job.words,
                table + t * job.x.pitch, job.x.narrow and not job.x.packed,
                sums + (t - t0) * job.sum_row, row, not first,
            )
            continue
        microkernels().indirect.gradient(
            o, width, pixels, gradients, job.gy.pixel,
            table + t * job.x.pitch, scratch, 0, sums + (t - t0) * job.sum_row, row, not first,
        )


cdef void weight_item(
    const Job *job, Py_ssize_t item, const float *x, const float *gy, float *gw, float *scratch
) noexcept nogil:
    """Sum one chunk of pixel blocks into one block of a partial gradient."""
    cdef Py_ssize_t K = job.x.window.taps * job.c, block, partial, t0, t1, c0, c, o0, o, group, i
    cdef Py_ssize_t begin, end, t
    cdef const float *sums
    partial, item = item % job.partials, item // job.partials
    t0, item = item % job.tap_blocks * job.tap_block, item // job.tap_blocks
    c0, item = item % job.c_blocks * job.c_block, item // job.c_blocks
    o0, group = item % job.o_blocks * job.o_block, item // job.o_blocks
    t1 = min(job.x.window.taps, t0 + job.tap_block)
    c, o = min(job.c_block, job.c - c0), min(job.o_block, job.o - o0)
    begin = chunk_begin(partial, job.partials, job.blocks.count)
    end = chunk_begin(partial + 1, job.partials, job.blocks.count)
    zero(scratch, job.pointers)
    if begin == end:
        zero(scratch + job.sums, job.o_block * job.tap_block * job.sum_row)
    for block in range(begin, end):
        add_block(
            job, o, c, t0, t1, block_begin(&job.blocks, block), block_end(&job.blocks, block),
            element(x, (group * job.c + c0) * job.x.window.s_c, job.x.narrow), x + job.x.size,
            element(gy, (group * job.o + o0) * job.gy.window.s_c, job.gy.narrow),
            gy + job.gy.size, scratch,
            block == begin,
        )
    gw += (partial * job.groups + group) * job.o * K
    for i in range(o):
        sums = scratch + job.sums + i * job.tap_block * job.sum_row
        if job.channels_last:
            for t in range(t0, t1):
                copy(sums + (t - t0) * job.sum_row, 1, c, gw + (o0 + i) * K + t * job.c + c0)
        else:
            microkernels().indirect.nchw_of_nhwc(
                sums, job.sum_row, t1 - t0, gw + (o0 + i) * K + c0 * job.x.window.taps + t0,
                job.x.window.taps, c,
            )


cdef class IndirectWeightGradient(FloatWeightGradient):
    """Kernel of weight.py."""

    cdef Job job

    def __cinit__(self, dict job):
        self.job = job

    cdef void item(
        self, Py_ssize_t i, const float *x, const float *gy, float *sums, float *scratch
    ) noexcept nogil:
        weight_item(&self.job, i, x, gy, sums, scratch)
