"""Softmax and its logarithm along one axis, and their gradients, in one pass on all threads.

An array is (outer, count, inner) in memory, and the axis its middle one.  Where inner is 1 its
vectors are rows, else they are columns that lie side by side.
"""

from cython.parallel cimport parallel, prange

from convcore.kernels._buffers cimport Buffers
from convcore.kernels._isa cimport COLUMNS, Softmax, layers
from convcore.kernels._threads cimport team

cdef enum:
    ITEM = 1 << 13       # elements of the rows of one item

cdef struct Job:
    Py_ssize_t outer
    Py_ssize_t count
    Py_ssize_t inner
    Py_ssize_t size              # bytes of an element
    Py_ssize_t rows              # of an item
    Py_ssize_t blocks            # of columns
    int log


cdef void run_rows(
    const Job *job, const Softmax *leaf, Py_ssize_t item, const char *x, const char *gy, char *out,
) noexcept nogil:
    cdef Py_ssize_t first = item * job.rows, rows = min(job.rows, job.outer - first)
    cdef Py_ssize_t at = first * job.count * job.size
    if gy == NULL:
        leaf.rows(x + at, rows, job.count, job.log, out + at)
    else:
        leaf.rows_gradient(gy + at, x + at, rows, job.count, job.log, out + at)


cdef void run_columns(
    const Job *job, const Softmax *leaf, Py_ssize_t item, const char *x, const char *gy, char *out,
) noexcept nogil:
    cdef Py_ssize_t first = item % job.blocks * COLUMNS
    cdef Py_ssize_t columns = min(COLUMNS, job.inner - first)
    cdef Py_ssize_t at = (item // job.blocks * job.count * job.inner + first) * job.size
    if gy == NULL:
        leaf.columns(x + at, columns, job.count, job.inner, job.log, out + at)
    else:
        leaf.columns_gradient(gy + at, x + at, columns, job.count, job.inner, job.log, out + at)


cdef void run_all(
    const Job *job, Py_ssize_t items, const char *x, const char *gy, char *out, int threads,
) noexcept nogil:
    cdef const Softmax *leaf = &layers().softmax[job.size == 8]
    cdef Py_ssize_t i
    with parallel(num_threads=threads):
        # A thread owns whole rows, or whole columns, of out.
        for i in prange(items, schedule="static"):
            if job.inner == 1:
                run_rows(job, leaf, i, x, gy, out)
            else:
                run_columns(job, leaf, i, x, gy, out)


def apply(
    x, gy, out, Py_ssize_t outer, Py_ssize_t count, Py_ssize_t inner, bint log, double work,
):
    """Write out = softmax(x), or its logarithm, or the gradient of what x is then the result of.

    Parameters
    ----------
    x, gy, out : (outer, count, inner) of float32 or float64, of one dtype, in this order in memory
        gy is None, or the result's gradient.
    outer, count, inner : int, none of them 0
    log : bool
    work : multiply-adds that an element takes as long as
    """
    cdef Buffers arrays = Buffers()
    cdef char *x_ptr = <char *>arrays.borrow(x, False)
    cdef char *g_ptr = NULL if gy is None else <char *>arrays.borrow(gy, False)
    cdef char *o_ptr = <char *>arrays.borrow(out, True)
    cdef Job job
    cdef Py_ssize_t items
    job.outer, job.count, job.inner, job.log = outer, count, inner, log
    job.size = arrays.views[0].itemsize
    job.rows = max(1, ITEM // count)
    job.blocks = (inner + COLUMNS - 1) // COLUMNS
    items = (outer + job.rows - 1) // job.rows if inner == 1 else outer * job.blocks
    cdef int threads = team(items, work * outer * count * inner)
    with nogil:
        run_all(&job, items, x_ptr, g_ptr, o_ptr, threads)
