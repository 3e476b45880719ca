"""Depthwise convolution in float32, all passes, on dense arrays in either memory format.

    y[n, c, q] = sum over t of x[n, c, under tap t of q] * w[c, t]

A unit is one channel, or, in channels_last, a block of as many channels as a vector has lanes; the
last block ends at the last channel and may overlap the block before it.
"""

from cython.parallel cimport prange, threadid

from convcore.engine.conv._kernel cimport FloatCorrelation, FloatWeightGradient
from convcore.engine.conv._partials cimport chunk_begin
from convcore.engine.runtime._isa cimport MAX_PHASES, MAX_TAPS, Direct, Epilogue, microkernels
from convcore.engine.runtime._threads cimport use_team
from convcore.engine.runtime._vectors cimport add, copy, zero

use_team()

# Limits for engine/conv/direct.py.
KERNEL = MAX_TAPS
PHASES = MAX_PHASES

cdef struct Job:
    Direct direct
    Py_ssize_t units
    Py_ssize_t unit_block        # units of one item
    Py_ssize_t unit_blocks
    Py_ssize_t rows              # rows of outputs of one phase
    Py_ssize_t row_block         # of one item
    Py_ssize_t row_blocks
    Py_ssize_t shared            # floats of the workspace that all threads share, which come first
    Py_ssize_t scratch           # floats of one thread
    Py_ssize_t items


cdef inline Py_ssize_t first_channel(const Job *job, Py_ssize_t unit) noexcept nogil:
    """Return the first channel of a unit."""
    cdef Py_ssize_t lanes = microkernels().lanes
    if not job.direct.channels_last:
        return unit
    return max(0, min(unit * lanes, job.direct.channels - lanes))


cdef void pack_unit(
    const Job *job, bint rotate, Py_ssize_t unit, const float *w, float *packed
) noexcept nogil:
    """Compute packed[unit, t, lane] = w[channel, t], last tap first if `rotate`; pad with zeros."""
    cdef Py_ssize_t lanes = microkernels().lanes, c = first_channel(job, unit), t, tap
    cdef Py_ssize_t taps = job.direct.taps, count = min(lanes, job.direct.channels - c)
    packed += unit * taps * lanes
    for t in range(taps):
        tap = taps - 1 - t if rotate else t
        copy(w + c * taps + tap, taps, count, packed + t * lanes)
        zero(packed + t * lanes + count, lanes - count)


cdef void correlate_item(
    const Job *job, Py_ssize_t item, const float *x, const float *w, float *y,
    const Epilogue *epilogue, float *scratch,
) noexcept nogil:
    """Compute a range of output rows of a range of channels of one slice."""
    # Neighbouring slices read the same inputs: consecutive items find them in the cache.
    cdef Py_ssize_t slices = job.direct.depth.out, rest = item // slices
    cdef Py_ssize_t c = rest % job.unit_blocks * job.unit_block, j
    rest //= job.unit_blocks
    j = rest % job.row_blocks * job.row_block
    microkernels().depthwise.outputs(
        &job.direct, rest // job.row_blocks * slices + item % slices,
        c, min(c + job.unit_block, job.units), j, min(j + job.row_block, job.rows), x, w, y,
        epilogue, scratch + threadid() * job.scratch,
    )


cdef class DepthwiseCorrelation(FloatCorrelation):
    """Forward pass or input gradient, planned in plan.py.

    rotate: whether the taps of a channels_last job are numbered in reverse (rotated kernel).
    """

    cdef Job job
    cdef bint rotate

    def __cinit__(self, dict job, bint rotate):
        self.job = job
        self.rotate = rotate

    cdef void pack_weights(self, const float *w, float *prepacked) noexcept:
        """Pack the weights of a channels_last job into vectors."""
        cdef Py_ssize_t i
        for i in range(self.job.units):
            pack_unit(&self.job, self.rotate, i, w, prepacked)

    cdef void compute(
        self, const float *x, const float *w, const float *prepacked, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil:
        """Pack the weights if they are not prepacked, then run every item."""
        cdef const Job *job = &self.job
        cdef bint rotate = self.rotate
        cdef bint packs = job.direct.channels_last and prepacked == NULL
        cdef Py_ssize_t i, packed = job.units if packs else 0
        cdef const float *weights = w if prepacked == NULL else prepacked
        if packed:
            weights = workspace
        # A thread owns whole units of the packed weights.
        for i in prange(packed, schedule="static", num_threads=threads):
            pack_unit(job, rotate, i, w, workspace)
        # A thread owns whole rows of whole channels of y, and its own slice of the scratch.
        for i in prange(job.items, schedule="dynamic", num_threads=threads):
            correlate_item(job, i, x, weights, y, epilogue, workspace + job.shared)


# ---- the weight gradient ----

cdef struct GradJob:
    Job job
    Py_ssize_t slices
    Py_ssize_t partials          # chunks of row blocks, each with its own partial gradient
    Py_ssize_t sums              # floats of the sums of one item, which come first in the scratch


cdef void put_sums(
    const Job *job, Py_ssize_t unit, const float *sums, float *gw
) noexcept nogil:
    """Write gw[c, t] of the channels of one block, from sums (taps, lanes)."""
    cdef Py_ssize_t lanes = microkernels().lanes, taps = job.direct.taps, t, c
    cdef Py_ssize_t first = first_channel(job, unit)
    for t in range(taps):
        for c in range(min(lanes, job.direct.channels - first)):
            gw[(first + c) * taps + t] = sums[t * lanes + c]


cdef void gradient_item(
    const GradJob *grad, Py_ssize_t item, const float *x, const float *gy, float *partials,
    float *scratch,
) noexcept nogil:
    """Sum one chunk of row blocks for a range of units into partials[partial].

    Each block is summed separately, then added to the total: this bounds the rounding error.
    """
    cdef const Job *job = &grad.job
    cdef Py_ssize_t partial = item % grad.partials, i, j
    cdef Py_ssize_t c0 = item // grad.partials * job.unit_block
    cdef Py_ssize_t c1 = min(c0 + job.unit_block, job.units), pieces = grad.slices * job.row_blocks
    cdef Py_ssize_t taps = job.direct.taps, lanes = microkernels().lanes
    cdef Py_ssize_t count = (c1 - c0) * taps * lanes
    cdef float *sums = scratch
    cdef float *total = sums + grad.sums
    zero(total, count)
    for i in range(
        chunk_begin(partial, grad.partials, pieces), chunk_begin(partial + 1, grad.partials, pieces)
    ):
        j = i % job.row_blocks * job.row_block
        zero(sums, count)
        microkernels().depthwise.gradient(
            &job.direct, i // job.row_blocks, c0, c1, j, min(j + job.row_block, job.rows), x, gy,
            sums, total + grad.sums,
        )
        add(sums, count, total, 1)
    partials += partial * job.direct.channels * taps
    if not job.direct.channels_last:
        microkernels().depthwise.sum_lanes(total, (c1 - c0) * taps, partials + c0 * taps)
        return
    for i in range(c1 - c0):
        put_sums(job, c0 + i, total + i * taps * lanes, partials)


cdef class DepthwiseGradient(FloatWeightGradient):
    """Weight gradient, planned in plan.py."""

    cdef GradJob job

    def __cinit__(self, dict job):
        self.job = job

    cdef void item(
        self, Py_ssize_t i, const float *x, const float *gy, float *sums, float *scratch
    ) noexcept nogil:
        gradient_item(&self.job, i, x, gy, sums, scratch)
