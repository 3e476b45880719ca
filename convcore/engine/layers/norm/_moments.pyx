"""Moments of an array: mean, squared deviations, minimum, maximum, zero and NaN counts.

Partial moments are merged in index order, as in T. F. Chan, G. H. Golub and R. J. LeVeque,
"Updating formulae and a pairwise algorithm for computing sample variances", 1979: the bits do not
depend on the number of threads.
"""

from cython.parallel cimport prange

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._isa cimport Moments, layer_microkernels
from convcore.engine.runtime._threads cimport thread_count, use_team

use_team()

cdef enum:
    CHUNK = 1 << 13      # elements of one run
    FIELDS = 7


cdef void join(Moments *all, const Moments *one) noexcept nogil:
    """Merge the moments of a run into the total."""
    cdef double count = all.count + one.count, step = one.mean - all.mean
    all.mean += step * (one.count / count)
    all.squares += one.squares + step * step * (all.count * one.count / count)
    all.least = min(all.least, one.least)
    all.largest = max(all.largest, one.largest)
    all.zeros += one.zeros
    all.nan += one.nan
    all.count = count


cdef void all_moments(
    const char *v, Py_ssize_t count, bint wide, Moments *runs, int threads
) noexcept nogil:
    cdef Py_ssize_t i, items = (count + CHUNK - 1) // CHUNK, size = 8 if wide else 4
    # A thread owns whole runs.
    for i in prange(items, schedule="static", num_threads=threads):
        layer_microkernels().moments[wide](
            v + i * CHUNK * size, min(CHUNK, count - i * CHUNK), runs + i
        )
    for i in range(1, items):
        join(runs, runs + i)


def n_partials(Py_ssize_t count):
    """Return the number of float64 elements that `moments_of` needs for `count` elements."""
    return (count + CHUNK - 1) // CHUNK * FIELDS


def moments_of(v, partials):
    """Return count, mean, sum of squared deviations, minimum, maximum, zero count and NaN count.

    v : dense array of float32 or float64, not empty
    partials : contiguous array of `n_partials` float64
    """
    cdef Buffers arrays = Buffers()
    cdef char *v_ptr = <char *>arrays.borrow(v, False)
    cdef Moments *runs = <Moments *>arrays.borrow(partials, True)
    cdef Py_ssize_t size = arrays.views[0].itemsize, count = arrays.views[0].len // size
    cdef int threads = thread_count((count + CHUNK - 1) // CHUNK, 3.0 * count)
    with nogil:
        all_moments(v_ptr, count, size == 8, runs, threads)
    found = runs[0]
    return (
        found.count, found.mean, found.squares, found.least, found.largest, found.zeros, found.nan
    )
