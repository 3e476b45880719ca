"""Normalisations of contiguous arrays: batch, group and instance norm, forward and backward.

A unit is what one mean and variance are of: `runs` runs of `length` elements that touch.  Of a
batch norm it is a channel, with a run an image; of a group norm, a group of channels of one image,
with a run a channel.  A line is what shares a weight and a bias: a unit, or each run of its own.

One thread makes all of a unit, so that what it reads twice is still in cache.
"""

from cython.parallel cimport parallel, prange
from libc.math cimport isfinite, sqrt

from convcore.kernels.runtime._buffers cimport Buffers
from convcore.kernels.runtime._isa cimport (
    FROM_INPUT,
    FROM_RESULT,
    LINEAR,
    NormRuns,
    NormTerms,
    layer_microkernels,
)
from convcore.kernels.runtime._threads cimport thread_count

ctypedef fused real:
    float
    double

cdef struct Job:
    Py_ssize_t units
    Py_ssize_t runs
    Py_ssize_t length
    Py_ssize_t unit_step         # elements from a unit's beginning to the next one's
    Py_ssize_t run_step
    Py_ssize_t lines             # of a unit: 1 or `runs`
    Py_ssize_t block             # units of one item
    double eps
    bint moments                 # whether they are taken of the array, or given
    double low                   # of the clamp
    double high
    int activation               # how gradients learn of it; LINEAR: there is none
    double work                  # in multiply-adds

# Terms are (5, units * lines): mean, scale (first the weight), bias, slope and offset.
# Statistics are (2, units): mean and variance.

cdef inline void aim(
    const Job *job, NormTerms *at, Py_ssize_t line, const real *terms
) noexcept nogil:
    """Have a leaf's terms point to those of one line."""
    cdef Py_ssize_t lines = job.units * job.lines
    at.mean = terms + line
    at.scale = terms + lines + line
    at.bias = terms + 2 * lines + line
    at.slope = terms + 3 * lines + line
    at.offset = terms + 4 * lines + line


cdef void take_moments(
    const Job *job, const NormRuns *leaf, Py_ssize_t unit, const real *x, double *statistics
) noexcept nogil:
    """Write a unit's mean and variance."""
    cdef double[2] sums
    cdef double shift = x[unit * job.unit_step], count = <double>job.runs * job.length, mean
    if not isfinite(shift):
        shift = 0
    sums[0] = sums[1] = 0
    leaf.moments(x + unit * job.unit_step, job.length, job.runs, job.run_step, shift, sums)
    mean = sums[0] / count
    sums[1] = sums[1] / count - mean * mean
    statistics[unit] = shift + mean
    statistics[job.units + unit] = 0 if sums[1] < 0 else sums[1]


cdef void make_terms(
    const Job *job, Py_ssize_t unit, const double *statistics, real *terms
) noexcept nogil:
    """Write mean, scale and bias of a unit's lines; what the rounded mean lacks is in the bias."""
    cdef Py_ssize_t lines = job.units * job.lines, i
    cdef double mean = statistics[unit], root = 1 / sqrt(statistics[job.units + unit] + job.eps)
    cdef double scale
    for i in range(unit * job.lines, (unit + 1) * job.lines):
        terms[i] = <real>mean
        scale = root * terms[lines + i]
        terms[lines + i] = <real>scale
        terms[2 * lines + i] = <real>(terms[2 * lines + i] + (terms[i] - mean) * scale)


cdef void forward_item(
    const Job *job, Py_ssize_t item, const real *x, real *residual, real *y, real *terms,
    double *statistics,
) noexcept nogil:
    """All of some units."""
    cdef const NormRuns *leaf = &layer_microkernels().norm_runs[sizeof(real) == 8]
    cdef Py_ssize_t unit, i, at
    cdef NormTerms line
    line.low, line.high, line.activation = job.low, job.high, job.activation
    for unit in range(item * job.block, min((item + 1) * job.block, job.units)):
        if job.moments:
            take_moments(job, leaf, unit, x, statistics)
        make_terms(job, unit, statistics, terms)
        for i in range(job.lines):
            at = unit * job.unit_step + i * job.run_step
            aim(job, &line, unit * job.lines + i, terms)
            leaf.forward(
                x + at, NULL if residual == NULL else residual + at, job.length,
                job.runs // job.lines, job.run_step, &line, y + at,
            )


cdef void forward_all(
    const Job *job, const real *x, const void *residual, void *y, void *terms,
    double *statistics, int threads,
) noexcept nogil:
    cdef Py_ssize_t i
    with parallel(num_threads=threads):
        # A thread owns whole units of y, of the terms and of the statistics.
        for i in prange((job.units + job.block - 1) // job.block, schedule="dynamic"):
            forward_item(job, i, x, <real *>residual, <real *>y, <real *>terms, statistics)


def forward(dict fields, x, residual, y, terms, statistics):
    """Write y = (x - mean) / sqrt(variance + eps) * weight + bias (+ residual), then clamped.

    Parameters
    ----------
    fields : dict with the fields of Job
    x, residual, y : arrays of one dtype and layout; residual may be None
    terms : (5, lines), the same dtype
        Rows 1 and 2 hold weight and bias; all rows are written.
    statistics : (2, units), float64
        Read, or written where `moments` is true.
    """
    cdef Job job = fields
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef void *r_ptr = NULL if residual is None else arrays.borrow(residual, False)
    cdef void *y_ptr = arrays.borrow(y, True)
    cdef void *t_ptr = arrays.borrow(terms, True)
    cdef double *s_ptr = <double *>arrays.borrow(statistics, True)
    cdef int threads = thread_count((job.units + job.block - 1) // job.block, job.work)
    cdef bint double_ = arrays.views[0].itemsize == 8
    with nogil:
        if double_:
            forward_all(&job, <double *>x_ptr, r_ptr, y_ptr, t_ptr, s_ptr, threads)
        else:
            forward_all(&job, <float *>x_ptr, r_ptr, y_ptr, t_ptr, s_ptr, threads)


# ---- backward ----

cdef void sum_unit(
    const Job *job, const NormRuns *leaf, NormTerms *line, Py_ssize_t unit, const real *gy,
    const real *x, real *y, real *kept, const real *terms, double mean, double *sums,
) noexcept nogil:
    """Write the sums of gy, and of gy * (x - mean), of each line of a unit."""
    cdef Py_ssize_t first = unit * job.lines, lines = job.units * job.lines, i, at
    cdef double[2] own
    for i in range(first, first + job.lines):
        at = unit * job.unit_step + (i - first) * job.run_step
        aim(job, line, i, terms)
        own[0] = own[1] = 0
        leaf.gradient_sums(
            gy + at, x + at, NULL if y == NULL else y + at, job.length, job.runs // job.lines,
            job.run_step, line, NULL if kept == NULL else kept + at, own,
        )
        sums[i] = own[0]
        # The leaf has subtracted a rounded mean.
        sums[lines + i] = own[1] + (terms[i] - mean) * own[0]


cdef void make_slopes(
    const Job *job, Py_ssize_t unit, const double *statistics, const double *sums, real *terms
) noexcept nogil:
    """Write slope and offset of a unit's lines: what gx owes to the unit's mean and variance."""
    cdef Py_ssize_t lines = job.units * job.lines, i
    cdef double mean = statistics[unit], variance = statistics[job.units + unit], slope, offset
    cdef double by_mean = 0, by_variance = 0, count = <double>job.runs * job.length
    if job.moments:
        for i in range(unit * job.lines, (unit + 1) * job.lines):
            # The scale is the weight times 1 / sqrt(variance + eps).
            by_mean += terms[lines + i] * sums[i]
            by_variance += terms[lines + i] * sums[lines + i]
    slope = by_variance / count / (variance + job.eps)
    for i in range(unit * job.lines, (unit + 1) * job.lines):
        offset = by_mean / count + (terms[i] - mean) * slope
        terms[3 * lines + i] = <real>slope
        terms[4 * lines + i] = <real>offset


cdef void backward_item(
    const Job *job, Py_ssize_t item, const real *gy, const real *x, real *y, real *kept,
    real *gx, real *terms, const double *statistics, double *sums,
) noexcept nogil:
    """All of some units."""
    cdef const NormRuns *leaf = &layer_microkernels().norm_runs[sizeof(real) == 8]
    cdef const real *grad = gy if kept == NULL else kept
    cdef Py_ssize_t unit, i, at
    cdef NormTerms line
    line.low, line.high = job.low, job.high
    for unit in range(item * job.block, min((item + 1) * job.block, job.units)):
        make_terms(job, unit, statistics, terms)
        line.activation = job.activation
        sum_unit(job, leaf, &line, unit, gy, x, y, kept, terms, statistics[unit], sums)
        if gx == NULL:
            continue
        make_slopes(job, unit, statistics, sums, terms)
        if job.activation == FROM_RESULT:
            line.activation = LINEAR
        for i in range(job.lines):
            at = unit * job.unit_step + i * job.run_step
            aim(job, &line, unit * job.lines + i, terms)
            leaf.gradient(
                grad + at, x + at, job.length, job.runs // job.lines, job.run_step, &line, gx + at
            )


cdef void backward_all(
    const Job *job, const real *gy, const void *x, const void *y, void *kept, void *gx,
    void *terms, const double *statistics, double *sums, int threads,
) noexcept nogil:
    cdef Py_ssize_t i
    with parallel(num_threads=threads):
        # A thread owns whole units of all that is written.
        for i in prange((job.units + job.block - 1) // job.block, schedule="dynamic"):
            backward_item(
                job, i, gy, <const real *>x, <real *>y, <real *>kept, <real *>gx,
                <real *>terms, statistics, sums,
            )


def backward(dict fields, gy, x, y, kept, gx, terms, statistics, sums):
    """Write gx, what the clamp leaves of gy, and the sums that the other gradients are made of.

    Parameters
    ----------
    fields : dict with the fields of Job
    gy, x, y, kept, gx : arrays of one dtype and layout
        y and kept are None unless the activation is FROM_RESULT; gx may be None.
    terms : (5, lines), the same dtype
        Rows 1 and 2 hold weight and bias; all rows are written.
    statistics : (2, units), float64
    sums : (2, lines), float64
        Written: sums of gy and of gy * (x - mean), after the clamp.
    """
    cdef Job job = fields
    cdef Buffers arrays = Buffers()
    cdef void *g_ptr = arrays.borrow(gy, False)
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef void *y_ptr = NULL if y is None else arrays.borrow(y, False)
    cdef void *k_ptr = NULL if kept is None else arrays.borrow(kept, True)
    cdef void *gx_ptr = NULL if gx is None else arrays.borrow(gx, True)
    cdef void *t_ptr = arrays.borrow(terms, True)
    cdef double *st_ptr = <double *>arrays.borrow(statistics, False)
    cdef double *s_ptr = <double *>arrays.borrow(sums, True)
    cdef int threads = thread_count((job.units + job.block - 1) // job.block, job.work)
    cdef bint double_ = arrays.views[0].itemsize == 8
    with nogil:
        if double_:
            backward_all(
                &job, <double *>g_ptr, x_ptr, y_ptr, k_ptr, gx_ptr, t_ptr, st_ptr, s_ptr, threads
            )
        else:
            backward_all(
                &job, <float *>g_ptr, x_ptr, y_ptr, k_ptr, gx_ptr, t_ptr, st_ptr, s_ptr, threads
            )


ACTIVATIONS = {"linear": LINEAR, "from_input": FROM_INPUT, "from_result": FROM_RESULT}
