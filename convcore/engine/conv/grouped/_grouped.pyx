"""Grouped convolution with few channels per group, float32: dense arrays in either memory format.

    y[n, (g, o), q] = sum over c, t of x[n, (g, c), under tap t of q] * w[(g, o), c, t]

Work items are ranges of rows of ranges of groups of one slice; see grouped.c.
"""

from cython.parallel cimport prange, threadid

from convcore.engine.conv._kernel cimport FloatCorrelation, FloatWeightGradient
from convcore.engine.conv._partials cimport add_partials, chunk_begin
from convcore.engine.runtime._isa cimport Direct, DirectAxis, Epilogue, Grouped, microkernels
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._vectors cimport add, zero

use_team()

cdef enum:
    CHANNELS = 4                 # output channels that are summed at a time: grouped.c

cdef struct Job:
    Grouped grouped
    Py_ssize_t group_block       # groups of one item
    Py_ssize_t group_blocks
    Py_ssize_t rows              # rows of outputs of one phase
    Py_ssize_t row_block         # of one item
    Py_ssize_t row_blocks
    Py_ssize_t w_group           # strides of w, or of gw: of a group, of channels made and read,
    Py_ssize_t w_o
    Py_ssize_t w_c
    Py_ssize_t w_slice           # of taps
    Py_ssize_t w_row
    Py_ssize_t w_column
    Py_ssize_t shared            # floats of the workspace that all threads share, which come first
    Py_ssize_t scratch           # floats of one thread
    Py_ssize_t items


cdef inline Py_ssize_t n_taps(const DirectAxis *axis, Py_ssize_t phase) noexcept nogil:
    return axis.begin[phase + 1] - axis.begin[phase]


cdef inline Py_ssize_t tap_of(
    const DirectAxis *axis, Py_ssize_t phase, Py_ssize_t i
) noexcept nogil:
    return axis.tap[phase] + i * axis.tap_step


cdef void pack_phase(
    const Job *job, Py_ssize_t phase_slice, Py_ssize_t phase, Py_ssize_t phase_column,
    const float *w, float *packed,
) noexcept nogil:
    """packed[block of o, c, t of the phase, o within the block] = w[o, c, t], of one group."""
    cdef const DirectAxis *depth = &job.grouped.direct.depth
    cdef const DirectAxis *row = &job.grouped.direct.row
    cdef const DirectAxis *column = &job.grouped.direct.column
    cdef Py_ssize_t o0 = 0, o, c, t, i, j, count
    cdef const float *tap
    while o0 < job.grouped.o:
        count = min(CHANNELS, job.grouped.o - o0)
        for c in range(job.grouped.c):
            for t in range(n_taps(depth, phase_slice)):
                for i in range(n_taps(row, phase)):
                    for j in range(n_taps(column, phase_column)):
                        tap = (
                            w + o0 * job.w_o + c * job.w_c
                            + tap_of(depth, phase_slice, t) * job.w_slice
                            + tap_of(row, phase, i) * job.w_row
                            + tap_of(column, phase_column, j) * job.w_column
                        )
                        for o in range(count):
                            packed[o] = tap[o * job.w_o]
                        packed += count
        o0 += count


cdef void pack_group(
    const Job *job, Py_ssize_t group, const float *w, float *packed
) noexcept nogil:
    """Pack the weights of one group in the order in which they are read, phase by phase."""
    cdef const Direct *d = &job.grouped.direct
    cdef Py_ssize_t z, a, b, channels = job.grouped.o * job.grouped.c
    packed += group * channels * d.taps
    for z in range(d.depth.phases):
        for a in range(d.row.phases):
            for b in range(d.column.phases):
                pack_phase(job, z, a, b, w + group * job.w_group, packed)
                packed += (
                    channels * n_taps(&d.depth, z) * n_taps(&d.row, a) * n_taps(&d.column, b)
                )


cdef void correlate_item(
    const Job *job, Py_ssize_t item, const float *x, const float *w, float *y,
    const Epilogue *epilogue, float *scratch,
) noexcept nogil:
    """Compute a range of rows of a range of groups of one slice."""
    cdef Py_ssize_t g = item % job.group_blocks * job.group_block, rest = item // job.group_blocks
    cdef Py_ssize_t j = rest % job.row_blocks * job.row_block
    microkernels().grouped.outputs(
        &job.grouped, rest // job.row_blocks, g, min(g + job.group_block, job.grouped.groups), j,
        min(j + job.row_block, job.rows), x, w, y, epilogue, scratch + threadid() * job.scratch,
    )


cdef class GroupedCorrelation(FloatCorrelation):
    """Forward pass or input gradient, planned in plan.py."""

    cdef Job job

    def __cinit__(self, dict job):
        self.job = job

    cdef void compute(
        self, const float *x, const float *w, const float *prepacked, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil:
        """Pack the weights, then run every item."""
        cdef const Job *job = &self.job
        cdef Py_ssize_t i
        # A thread owns whole groups of the packed weights.
        for i in prange(job.grouped.groups, schedule="static", num_threads=threads):
            pack_group(job, i, w, workspace)
        # A thread owns whole rows of whole channels of y, and its own slice of the scratch.  The
        # schedule is static: rows may still be in the thread's cache from the layer before.
        for i in prange(job.items, schedule="static", num_threads=threads):
            correlate_item(job, i, x, workspace, y, epilogue, workspace + job.shared)


# ---- the weight gradient ----

cdef struct GradJob:
    Job job
    Py_ssize_t slices
    Py_ssize_t partials          # chunks of blocks of rows that are summed apart
    Py_ssize_t sums              # floats of the sums of one item, which come first in the scratch
    Py_ssize_t piece             # vectors that are added up before their sums join the total
    Py_ssize_t row_vectors       # of a row of outputs


cdef void gradient_item(
    const GradJob *grad, Py_ssize_t item, const float *x, const float *gy, float *partials,
    float *scratch,
) noexcept nogil:
    """Sum one chunk of row blocks for a range of groups into partials[partial].

    Parts are summed separately, then added to the total: this bounds the rounding error.
    """
    cdef const Job *job = &grad.job
    cdef Py_ssize_t partial = item % grad.partials, i, j, end
    cdef Py_ssize_t g0 = item // grad.partials * job.group_block
    cdef Py_ssize_t g1 = min(g0 + job.group_block, job.grouped.groups), summed = 0
    cdef Py_ssize_t blocks = grad.slices * job.row_blocks
    cdef Py_ssize_t size = job.grouped.o * job.grouped.c * job.grouped.direct.taps
    cdef Py_ssize_t count = (g1 - g0) * size * microkernels().lanes
    cdef float *sums = scratch
    cdef float *total = sums + grad.sums
    zero(sums, count)
    zero(total, count)
    for i in range(
        chunk_begin(partial, grad.partials, blocks), chunk_begin(partial + 1, grad.partials, blocks)
    ):
        j = i % job.row_blocks * job.row_block
        end = min(j + job.row_block, job.rows)
        if summed + (end - j) * grad.row_vectors > grad.piece:
            add(sums, count, total, 1)
            zero(sums, count)
            summed = 0
        summed += (end - j) * grad.row_vectors
        microkernels().grouped.gradient(
            &job.grouped, i // job.row_blocks, g0, g1, j, end, x, gy, sums, total + grad.sums
        )
    add(sums, count, total, 1)
    microkernels().grouped.sum_lanes(
        total, (g1 - g0) * size, partials + (partial * job.grouped.groups + g0) * size
    )


cdef void put_group(
    const GradJob *grad, Py_ssize_t group, float *partials, float *gw
) noexcept nogil:
    """Write one group of gw: the sum of the partial gradients."""
    cdef const Job *job = &grad.job
    cdef Py_ssize_t taps = job.grouped.direct.taps, size = job.grouped.o * job.grouped.c * taps
    cdef Py_ssize_t columns = job.grouped.direct.kernel_columns, o, c, t
    cdef Py_ssize_t plane = job.grouped.direct.kernel_plane
    cdef float *sums = partials + group * size
    add_partials(
        partials, grad.partials, job.grouped.groups * size, group * size, size, sums
    )
    gw += group * job.w_group
    for o in range(job.grouped.o):
        for c in range(job.grouped.c):
            for t in range(taps):
                gw[
                    o * job.w_o + c * job.w_c + t // plane * job.w_slice
                    + t % plane // columns * job.w_row + t % columns * job.w_column
                ] = sums[(o * job.grouped.c + c) * taps + t]


cdef class GroupedGradient(FloatWeightGradient):
    """Weight gradient, planned in plan.py."""

    cdef GradJob job

    def __cinit__(self, dict job):
        self.job = job

    cdef void item(
        self, Py_ssize_t i, const float *x, const float *gy, float *sums, float *scratch
    ) noexcept nogil:
        gradient_item(&self.job, i, x, gy, sums, scratch)

    cdef void put(self, Py_ssize_t i, float *sums, float *gw) noexcept nogil:
        put_group(&self.job, i, sums, gw)
