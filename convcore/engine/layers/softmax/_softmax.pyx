"""Softmax and log-softmax along an axis, and their gradients.

Arrays are (outer, count, inner) in memory, with the axis in the middle.  If inner is 1 its vectors
are rows, otherwise adjacent columns.
"""

from cython.parallel cimport prange

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport MOST_COLUMNS, Softmax, layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

cdef enum:
    ELEMENTS = 1 << 13           # of the rows of one item

cdef struct Axis:
    Py_ssize_t outer
    Py_ssize_t count
    Py_ssize_t inner
    Py_ssize_t size              # bytes of an element
    Py_ssize_t rows              # of an item
    Py_ssize_t blocks            # of columns
    int log


cdef void softmax_item(
    const Axis *axis, Py_ssize_t item, const char *x, const char *gy, char *out
) noexcept nogil:
    """Compute a range of rows, or of adjacent columns."""
    cdef const Softmax *s = &layer_microkernels().softmax[axis.size == 8]
    cdef Py_ssize_t first, at, n
    if axis.inner == 1:
        first = item * axis.rows
        n, at = min(axis.rows, axis.outer - first), first * axis.count * axis.size
        if gy == NULL:
            s.rows(x + at, n, axis.count, axis.log, out + at)
        else:
            s.rows_gradient(gy + at, x + at, n, axis.count, axis.log, out + at)
        return
    first = item % axis.blocks * MOST_COLUMNS
    n = min(MOST_COLUMNS, axis.inner - first)
    at = (item // axis.blocks * axis.count * axis.inner + first) * axis.size
    if gy == NULL:
        s.columns(x + at, n, axis.count, axis.inner, axis.log, out + at)
    else:
        s.columns_gradient(gy + at, x + at, n, axis.count, axis.inner, axis.log, out + at)


cdef void softmax_all(
    const Axis *axis, Py_ssize_t items, const char *x, const char *gy, char *out, int threads,
) noexcept nogil:
    cdef Py_ssize_t i
    # A thread owns whole rows, or whole columns, of out.
    for i in prange(items, schedule="static", num_threads=threads):
        softmax_item(axis, i, x, gy, out)


def softmax(
    x, gy, out, Py_ssize_t outer, Py_ssize_t count, Py_ssize_t inner, bint log, double work,
):
    """Write out = softmax(x) or log-softmax(x); if gy is given, the gradient (x is the result).

    Parameters
    ----------
    x, gy, out : (outer, count, inner) of float32 or float64, of one dtype, in this order in memory
        gy is None, or the result's gradient.
    outer, count, inner : int, none of them 0
    log : bool
    work : multiply-adds that take as long as one element
    """
    cdef Buffers arrays = Buffers()
    cdef char *x_ptr = <char *>arrays.borrow(x, False)
    cdef char *g_ptr = NULL if gy is None else <char *>arrays.borrow(gy, False)
    cdef char *o_ptr = <char *>arrays.borrow(out, True)
    cdef Axis axis
    cdef Py_ssize_t items
    axis.outer, axis.count, axis.inner, axis.log = outer, count, inner, log
    axis.size = arrays.views[0].itemsize
    axis.rows = max(1, ELEMENTS // count)
    axis.blocks = (inner + MOST_COLUMNS - 1) // MOST_COLUMNS
    items = (outer + axis.rows - 1) // axis.rows if inner == 1 else outer * axis.blocks
    cdef int threads = thread_count(items, work * outer * count * inner)
    with nogil:
        softmax_all(&axis, items, x_ptr, g_ptr, o_ptr, threads)
