"""Blocks of the pixels of a batch, which engine/conv/blocks.py cuts."""

cdef struct Blocks:
    Py_ssize_t unit       # pixels that a block may not cross the edge of: one image's, or all
    Py_ssize_t size       # most pixels in a block
    Py_ssize_t per_unit
    Py_ssize_t count      # blocks in all


cdef inline Py_ssize_t block_begin(const Blocks *blocks, Py_ssize_t i) noexcept nogil:
    """First pixel of block i."""
    return i // blocks.per_unit * blocks.unit + i % blocks.per_unit * blocks.size


cdef inline Py_ssize_t block_end(const Blocks *blocks, Py_ssize_t i) noexcept nogil:
    """One past the last pixel of block i."""
    cdef Py_ssize_t begin = i // blocks.per_unit * blocks.unit
    return begin + min(blocks.unit, (i % blocks.per_unit + 1) * blocks.size)
