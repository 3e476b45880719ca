"""Moments of an array: mean, squared deviations, limits, and how many zeros and NaN, in one pass.

Runs are joined in index order, as T. F. Chan, G. H. Golub and R. J. LeVeque do it in "Updating
formulae and a pairwise algorithm for computing sample variances", 1979: the bits do not depend on
the number of threads.
"""

from cython.parallel cimport parallel, prange

from convcore.kernels.runtime._buffers cimport Buffers
from convcore.kernels.runtime._threads cimport thread_count

cdef extern from "layers/moments.h":
    ctypedef struct moments:
        double count, mean, squares, least, largest, zeros, nan
    void moments_of_float(const float *v, Py_ssize_t count, moments *found) noexcept nogil
    void moments_of_double(const double *v, Py_ssize_t count, moments *found) noexcept nogil
    void join_moments(moments *all, const moments *one) noexcept nogil

cdef enum:
    CHUNK = 1 << 12      # elements of one run
    FIELDS = 7


cdef void all_moments(
    const char *v, Py_ssize_t count, bint wide, moments *runs, int threads
) noexcept nogil:
    cdef Py_ssize_t i, items = (count + CHUNK - 1) // CHUNK
    with parallel(num_threads=threads):
        # A thread owns whole runs.
        for i in prange(items, schedule="static"):
            if wide:
                moments_of_double(
                    <const double *>v + i * CHUNK, min(CHUNK, count - i * CHUNK), runs + i
                )
            else:
                moments_of_float(
                    <const float *>v + i * CHUNK, min(CHUNK, count - i * CHUNK), runs + i
                )
    for i in range(1, items):
        join_moments(runs, runs + i)


def n_partials(Py_ssize_t count):
    """Return how many float64 numbers `moments_of` needs for that many elements."""
    return (count + CHUNK - 1) // CHUNK * FIELDS


def moments_of(v, partials):
    """Return count, mean, sum of squared deviations, least, largest, zeros and NaN.

    v : dense array of float32 or float64, with an element at least
    partials : contiguous array of `n_partials` float64
    """
    cdef Buffers arrays = Buffers()
    cdef char *v_ptr = <char *>arrays.borrow(v, False)
    cdef moments *runs = <moments *>arrays.borrow(partials, True)
    cdef Py_ssize_t size = arrays.views[0].itemsize, count = arrays.views[0].len // size
    cdef int threads = thread_count((count + CHUNK - 1) // CHUNK, 3.0 * count)
    with nogil:
        all_moments(v_ptr, count, size == 8, runs, threads)
    found = runs[0]
    return (
        found.count, found.mean, found.squares, found.least, found.largest, found.zeros, found.nan
    )
