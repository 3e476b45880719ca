"""Indirection buffers: pointers to the pixels under each tap of a block's outputs.

A block is a range [q0, q1) of output pixels of the whole batch.  Their last axis may consist of
`classes` interleaved sequences of outputs, like the phases of an input gradient: output w is number
w // classes of class w % classes, and each class has its own taps.

The pointers of a class are a table (taps, pixels) whose lines are `pitch` apart.  They point into
the input itself where its channels are contiguous, as a product reads them; otherwise into a packed
copy: the lines that the block reads, of a range of the channels, each pixel padded with zeros to
whole vectors.
"""

from convcore.engine.conv.im2col._im2col cimport Line, Window

cdef enum:
    MOST_CLASSES = 16

cdef struct Rows:
    Window window                # of class 0; line[2].count is the outputs of all classes
    Py_ssize_t classes
    Line[MOST_CLASSES] columns   # the inputs along the last axis that each class reads
    bint packed                  # pixels are read from a packed copy
    bint bfloat16                # of words of bfloat16.c: blocks of channels
    bint narrow                  # the input is bfloat16, channels contiguous
    Py_ssize_t[2] keep           # copy every keep-th row and column of the last two axes
    Py_ssize_t pixel             # floats of one copied pixel
    Py_ssize_t pitch
    Py_ssize_t size              # floats that the input spans; 0 if unknown

cdef void pack_pixels(
    const Rows *r, const float *x, Py_ssize_t channels, const float *end, Py_ssize_t q0,
    Py_ssize_t q1, float *copy,
) noexcept nogil

cdef void point(
    const Rows *r, const float *x, Py_ssize_t q0, Py_ssize_t q1, const float *copy,
    const float *zeros, const float **table,
) noexcept nogil
