"""Partial sums of a weight gradient: the range of work that each covers, and their addition.

Where a gradient has too few blocks to share among threads, the reduction is cut into chunks, each
with its own partial gradient.  Their number is fixed by shape (`blocks.partials`), and they are
added in index order, so the bits never depend on the number of threads.
"""

from convcore.engine.runtime._types cimport number
from convcore.engine.runtime._vectors cimport add, zero


cdef inline Py_ssize_t chunk_begin(
    Py_ssize_t partial, Py_ssize_t partials, Py_ssize_t count
) noexcept nogil:
    """Return the first of `count` work units in a chunk; it ends where the next chunk begins."""
    return partial * count // partials


cdef inline void add_partials(
    const number *sums, Py_ssize_t partials, Py_ssize_t size, Py_ssize_t begin, Py_ssize_t count,
    number *out,
) noexcept nogil:
    """out[:count] = sum of [begin:begin+count] over partial gradients of `size` elements each.

    out may be that slice of the first partial gradient (in-place sum).
    """
    cdef Py_ssize_t i, first = 1
    if out != sums + begin:
        zero(out, count)
        first = 0
    for i in range(first, partials):
        add(sums + i * size + begin, count, out, 1)
