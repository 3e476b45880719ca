"""Layer norm: each row by its own mean and variance, with a weight and a bias an element."""

from cython.parallel cimport parallel, prange
from libc.math cimport isfinite, sqrt

from convcore.kernels.runtime._buffers cimport Buffers
from convcore.kernels.runtime._isa cimport NormRows, layer_microkernels
from convcore.kernels.runtime._threads cimport thread_count
from convcore.kernels.runtime._vectors cimport add, zero

ctypedef fused real:
    float
    double

cdef enum:
    COLUMNS = 64                 # sums of items that are added as one

cdef struct Job:
    Py_ssize_t rows
    Py_ssize_t length
    Py_ssize_t block             # rows of one item
    double eps
    double work                  # in multiply-adds

# Terms are (2, length): weight and bias.  Statistics are (2, rows): mean and variance.

cdef void take_moments(
    const Job *job, Py_ssize_t row, const real *x, double *statistics
) noexcept nogil:
    """Write a row's mean and variance; sums are taken about its first element."""
    cdef double[2] sums
    cdef double shift = x[0] if isfinite(x[0]) else 0
    sums[0] = sums[1] = 0
    layer_microkernels().norm_runs[sizeof(real) == 8].moments(x, job.length, 1, 0, shift, sums)
    sums[0] /= job.length
    sums[1] = sums[1] / job.length - sums[0] * sums[0]
    statistics[row] = shift + sums[0]
    statistics[job.rows + row] = 0 if sums[1] < 0 else sums[1]


cdef void forward_item(
    const Job *job, Py_ssize_t item, const real *x, real *y, const real *terms, double *statistics
) noexcept nogil:
    """Some rows."""
    cdef const NormRows *leaf = &layer_microkernels().norm_rows[sizeof(real) == 8]
    cdef Py_ssize_t row, at
    for row in range(item * job.block, min((item + 1) * job.block, job.rows)):
        at = row * job.length
        take_moments(job, row, x + at, statistics)
        leaf.forward(
            x + at, job.length, statistics[row], 1 / sqrt(statistics[job.rows + row] + job.eps),
            terms, y + at,
        )


cdef void forward_all(
    const Job *job, const real *x, void *y, void *terms, double *statistics, int threads
) noexcept nogil:
    cdef Py_ssize_t i
    with parallel(num_threads=threads):
        # A thread owns whole rows of y and of the statistics.
        for i in prange((job.rows + job.block - 1) // job.block, schedule="dynamic"):
            forward_item(job, i, x, <real *>y, <const real *>terms, statistics)


def forward(dict fields, x, y, terms, statistics):
    """Write y = (x - mean) / sqrt(variance + eps) * weight + bias, and means and variances.

    Parameters
    ----------
    fields : dict with the fields of Job
    x, y : (rows, length), one dtype, contiguous
    terms : (2, length), the same dtype
        Weight and bias.
    statistics : (2, rows), float64
        Written.
    """
    cdef Job job = fields
    cdef Buffers arrays = Buffers()
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef void *y_ptr = arrays.borrow(y, True)
    cdef void *t_ptr = arrays.borrow(terms, False)
    cdef double *s_ptr = <double *>arrays.borrow(statistics, True)
    cdef int threads = thread_count((job.rows + job.block - 1) // job.block, job.work)
    cdef bint double_ = arrays.views[0].itemsize == 8
    with nogil:
        if double_:
            forward_all(&job, <double *>x_ptr, y_ptr, t_ptr, s_ptr, threads)
        else:
            forward_all(&job, <float *>x_ptr, y_ptr, t_ptr, s_ptr, threads)


cdef void backward_item(
    const Job *job, Py_ssize_t item, const real *gy, const real *x, real *gx, const real *terms,
    const double *statistics, double *partials,
) noexcept nogil:
    """Some rows, and their share of the weight's and the bias's gradients."""
    cdef const NormRows *leaf = &layer_microkernels().norm_rows[sizeof(real) == 8]
    cdef Py_ssize_t row, at
    cdef double *sums = partials + item * 2 * job.length
    zero(sums, 2 * job.length)
    for row in range(item * job.block, min((item + 1) * job.block, job.rows)):
        at = row * job.length
        leaf.gradient(
            gy + at, x + at, job.length, statistics[row],
            1 / sqrt(statistics[job.rows + row] + job.eps), terms, gx + at, sums,
        )


cdef void add_items(
    const Job *job, Py_ssize_t block, const double *partials, double *sums
) noexcept nogil:
    """Add up some columns of all items' sums, in order."""
    cdef Py_ssize_t width = 2 * job.length, first = block * COLUMNS, i
    cdef Py_ssize_t count = min(COLUMNS, width - first)
    zero(sums + first, count)
    for i in range((job.rows + job.block - 1) // job.block):
        add(partials + i * width + first, count, sums + first, 1)


cdef void backward_all(
    const Job *job, const real *gy, const void *x, void *gx, void *terms,
    const double *statistics, double *sums, double *workspace, int threads,
) noexcept nogil:
    cdef Py_ssize_t i
    with parallel(num_threads=threads):
        # A thread owns whole rows of gx, and the sums of its items.
        for i in prange((job.rows + job.block - 1) // job.block, schedule="dynamic"):
            backward_item(
                job, i, gy, <const real *>x, <real *>gx, <const real *>terms, statistics, workspace
            )
        # A thread owns whole columns of the sums.
        for i in prange((2 * job.length + COLUMNS - 1) // COLUMNS, schedule="static"):
            add_items(job, i, workspace, sums)


def backward(dict fields, gy, x, gx, terms, statistics, sums, workspace):
    """Write gx and the gradients of weight and bias.

    Parameters
    ----------
    fields : dict with the fields of Job
    gy, x, gx : (rows, length), one dtype, contiguous
    terms : (2, length), the same dtype
        The first row is the weight.
    statistics : (2, rows), float64
    sums : (2, length), float64
        Written.
    workspace : (items, 2, length), float64
    """
    cdef Job job = fields
    cdef Buffers arrays = Buffers()
    cdef void *g_ptr = arrays.borrow(gy, False)
    cdef void *x_ptr = arrays.borrow(x, False)
    cdef void *gx_ptr = arrays.borrow(gx, True)
    cdef void *t_ptr = arrays.borrow(terms, False)
    cdef double *st_ptr = <double *>arrays.borrow(statistics, False)
    cdef double *s_ptr = <double *>arrays.borrow(sums, True)
    cdef double *w_ptr = <double *>arrays.borrow(workspace, True)
    cdef int threads = thread_count((job.rows + job.block - 1) // job.block, job.work)
    cdef bint double_ = arrays.views[0].itemsize == 8
    with nogil:
        if double_:
            backward_all(
                &job, <double *>g_ptr, x_ptr, gx_ptr, t_ptr, st_ptr, s_ptr, w_ptr, threads
            )
        else:
            backward_all(
                &job, <float *>g_ptr, x_ptr, gx_ptr, t_ptr, st_ptr, s_ptr, w_ptr, threads
            )
