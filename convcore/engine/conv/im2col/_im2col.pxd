"""Structs for im2col and col2im: they map an output pixel and a tap to the input under it."""

from convcore.engine.runtime._types cimport number

cdef struct Line:
    # One axis, in elements of that axis.  Tap t of output j reads input j*stride + first + t*step.
    Py_ssize_t size      # of the input
    Py_ssize_t count     # of outputs
    Py_ssize_t stride
    Py_ssize_t taps
    Py_ssize_t first     # negative inside the padding
    Py_ssize_t step

cdef struct Window:
    Line line[3]         # depth, height, width
    Py_ssize_t s_n       # strides of the input in elements: image, channel, the three axes
    Py_ssize_t s_c
    Py_ssize_t s[3]
    Py_ssize_t taps      # the product of the lines'
    Py_ssize_t pixels    # outputs of one image

cdef struct KBlock:
    # A range of the reduction index K: taps [t0, t1) of channels [c0, c1).
    Py_ssize_t t0
    Py_ssize_t t1
    Py_ssize_t c0
    Py_ssize_t c1

# Position in a block: the image and the output coordinates of its next pixel.
cdef struct Place:
    Py_ssize_t n
    Py_ssize_t d
    Py_ssize_t h
    Py_ssize_t w


cdef inline Place locate(const Window *v, Py_ssize_t q) noexcept nogil:
    """Return the position of output pixel q."""
    cdef Place at
    at.n = q // v.pixels
    q -= at.n * v.pixels
    at.d = q // (v.line[1].count * v.line[2].count)
    q -= at.d * v.line[1].count * v.line[2].count
    at.h = q // v.line[2].count
    at.w = q - at.h * v.line[2].count
    return at


cdef inline void next_line(const Window *v, Place *at) noexcept nogil:
    """Move to the start of the next line of outputs."""
    at.w = 0
    at.h += 1
    if at.h == v.line[1].count:
        at.h = 0
        at.d += 1
        if at.d == v.line[0].count:
            at.d = 0
            at.n += 1


cdef inline void next_pixel(const Window *v, Place *at) noexcept nogil:
    """Move to the next output."""
    at.w += 1
    if at.w == v.line[2].count:
        next_line(v, at)


cdef inline Py_ssize_t source(const Line *line, Py_ssize_t j, Py_ssize_t t) noexcept nogil:
    """Return the input index under tap t of output j; it is outside [0, size) in the padding."""
    return j * line.stride + line.first + t * line.step


cdef inline void clip(
    const Line *line, Py_ssize_t t, Py_ssize_t low, Py_ssize_t high, Py_ssize_t *begin,
    Py_ssize_t *end,
) noexcept nogil:
    """Clip the output range [begin, end) to outputs whose tap t reads an input in [low, high)."""
    cdef Py_ssize_t shift = line.first + t * line.step
    cdef Py_ssize_t a = low - shift
    cdef Py_ssize_t b = high - 1 - shift
    # C's division truncates; a < 0 bounds nothing below, b < 0 leaves nothing.
    a = (a + line.stride - 1) // line.stride if a > 0 else 0
    b = b // line.stride + 1 if b >= 0 else 0
    if a > begin[0]:
        begin[0] = a
    if b < end[0]:
        end[0] = b
    if begin[0] > end[0]:
        begin[0] = end[0]


cdef void gather_nhwc(
    const number *x, const Window *v, KBlock part, Py_ssize_t q0, Py_ssize_t q1, number *rows,
) noexcept nogil

cdef void gather_nchw(
    const number *x, const Window *v, KBlock part, bint channels_outer,
    Py_ssize_t q0, Py_ssize_t q1, number *columns,
) noexcept nogil

cdef void scatter_nhwc(
    const number *rows, const Window *v, KBlock part, Py_ssize_t q0, Py_ssize_t q1,
    const Py_ssize_t *bounds, number *x,
) noexcept nogil

cdef void scatter_nchw(
    const number *columns, const Window *v, KBlock part, bint channels_outer,
    Py_ssize_t q0, Py_ssize_t q1, const Py_ssize_t *bounds, number *x,
) noexcept nogil
