"""Blocks of output pixels over the whole batch, as computed by engine/conv/blocks.py."""

cdef struct Blocks:
    Py_ssize_t unit       # pixels that blocks may span: those of one image, or of the whole batch
    Py_ssize_t size       # maximum number of pixels in a block
    Py_ssize_t per_unit
    Py_ssize_t count      # total number of blocks


cdef inline Py_ssize_t block_begin(const Blocks *blocks, Py_ssize_t i) noexcept nogil:
    """Return the index of the first pixel of block i."""
    return i // blocks.per_unit * blocks.unit + i % blocks.per_unit * blocks.size


cdef inline Py_ssize_t block_end(const Blocks *blocks, Py_ssize_t i) noexcept nogil:
    """Return the index one past the last pixel of block i."""
    cdef Py_ssize_t begin = i // blocks.per_unit * blocks.unit
    return begin + min(blocks.unit, (i % blocks.per_unit + 1) * blocks.size)
