"""Partial sums of a weight gradient: the chunk of work that each covers, and their addition.

Where a gradient has too few pieces to share among threads, the reduction is cut into chunks, each
with a partial gradient of its own.  Their number is fixed by shape (`blocks.partials`) and they
are added in index order, so the bits never depend on the number of threads.
"""

from convcore.engine.runtime._types cimport number
from convcore.engine.runtime._vectors cimport add, zero


cdef inline Py_ssize_t chunk_begin(
    Py_ssize_t partial, Py_ssize_t partials, Py_ssize_t count
) noexcept nogil:
    """First of a partial's pieces of work, of `count`; its chunk ends where the next begins."""
    return partial * count // partials


cdef inline void add_partials(
    const number *sums, Py_ssize_t partials, Py_ssize_t size, Py_ssize_t begin, Py_ssize_t count,
    number *out,
) noexcept nogil:
    """out[:count] = sum of elements from `begin` on of the partial gradients, each `size` long.

    out may be the place of the first of them.
    """
    cdef Py_ssize_t i, first = 1
    if out != sums + begin:
        zero(out, count)
        first = 0
    for i in range(first, partials):
        add(sums + i * size + begin, count, out, 1)
