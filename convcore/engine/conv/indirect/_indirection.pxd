"""Where the pixels under each tap of a block's outputs lie: pointers, and lines packed for them.

A block is a run [q0, q1) of output pixels of the whole batch.  Their last axis may be `classes`
interleaved runs of outputs, as the phases of an input gradient are: output w is number w // classes
of class w % classes, and each class has its own taps.

The pointers of a class are a table (taps, pixels) whose lines are `pitch` apart.  They point into
the input itself where channels lie side by side in it, as a product can read them, else into a copy
that does: the lines that the block sees, of some of the channels, each pixel filled up with zeros
to whole vectors.
"""

from convcore.engine.conv.im2col._im2col cimport Line, Window

cdef enum:
    MOST_CLASSES = 16

cdef struct Rows:
    Window window                # of class 0; line[2].count is all classes' outputs
    Py_ssize_t classes
    Line[MOST_CLASSES] columns   # how each class looks at the last axis
    bint packed                  # through a copy
    bint bfloat16                # of words of bfloat16.c: blocks of channels
    bint narrow                  # the input is bfloat16, channels side by side
    Py_ssize_t[2] keep           # of the last two axes, every how manieth line or column is copied
    Py_ssize_t pixel             # floats of one copied pixel
    Py_ssize_t pitch
    Py_ssize_t size              # floats that the input spans; 0 if not known

cdef void pack_pixels(
    const Rows *r, const float *x, Py_ssize_t channels, const float *end, Py_ssize_t q0,
    Py_ssize_t q1, float *copy,
) noexcept nogil

cdef void point(
    const Rows *r, const float *x, Py_ssize_t q0, Py_ssize_t q1, const float *copy,
    const float *zeros, const float **table,
) noexcept nogil
