"""Gradient clipping: the sum of squares (for the global norm), and scaling or clamping in place."""

from cython.parallel cimport prange

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

cdef enum:
    CHUNK = 1 << 14      # elements of one item, with its own partial sum


cdef double sum_of_squares(
    const char *v, Py_ssize_t count, bint wide, double *partials, int threads
) noexcept nogil:
    cdef Py_ssize_t i, items = (count + CHUNK - 1) // CHUNK, size = 8 if wide else 4
    cdef double total = 0
    # A thread owns whole partial sums.
    for i in prange(items, schedule="static", num_threads=threads):
        partials[i] = layer_microkernels().clipping[wide].squares(
            v + i * CHUNK * size, min(CHUNK, count - i * CHUNK)
        )
    for i in range(items):
        total += partials[i]
    return total


cdef void change_all(
    char *v, Py_ssize_t count, bint wide, bint clip, double by, int threads
) noexcept nogil:
    cdef Py_ssize_t i, items = (count + CHUNK - 1) // CHUNK, size = 8 if wide else 4
    # A thread owns whole chunks of v.
    for i in prange(items, schedule="static", num_threads=threads):
        if clip:
            layer_microkernels().clipping[wide].clip(
                v + i * CHUNK * size, min(CHUNK, count - i * CHUNK), by
            )
        else:
            layer_microkernels().clipping[wide].scale(
                v + i * CHUNK * size, min(CHUNK, count - i * CHUNK), by
            )


def n_partials(Py_ssize_t count):
    """Return the number of partial sums of `squares`."""
    return (count + CHUNK - 1) // CHUNK


def squares(v, partials):
    """Return the sum of the squares of a dense array of float32 or float64.

    partials : contiguous array of `n_partials` float64
    """
    cdef Buffers arrays = Buffers()
    cdef char *v_ptr = <char *>arrays.borrow(v, False)
    cdef double *p_ptr = <double *>arrays.borrow(partials, True)
    cdef Py_ssize_t size = arrays.views[0].itemsize, count = arrays.views[0].len // size
    cdef int threads = thread_count(n_partials(count), count)
    cdef double total
    with nogil:
        total = sum_of_squares(v_ptr, count, size == 8, p_ptr, threads)
    return total


def change(v, bint clip, double by):
    """Multiply a dense float32 or float64 array by a factor, or clip it to [-by, by], in place."""
    cdef Buffers arrays = Buffers()
    cdef char *v_ptr = <char *>arrays.borrow(v, True)
    cdef Py_ssize_t size = arrays.views[0].itemsize, count = arrays.views[0].len // size
    cdef int threads = thread_count(n_partials(count), 2.0 * count)
    with nogil:
        change_all(v_ptr, count, size == 8, clip, by, threads)
