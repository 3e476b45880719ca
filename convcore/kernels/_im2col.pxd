"""Windows: how the outputs of a convolution look at its input, and the copies they ask for."""

from convcore.kernels._types cimport number

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

cdef struct Part:
    # The columns of a block: taps [t0, t1) of channels [c0, c1).
    Py_ssize_t t0
    Py_ssize_t t1
    Py_ssize_t c0
    Py_ssize_t c1

cdef void gather_rows(
    const number *x, const Window *v, Part part, Py_ssize_t q0, Py_ssize_t q1, number *rows,
) noexcept nogil

cdef void gather_columns(
    const number *x, const Window *v, Part part, bint channels_outer,
    Py_ssize_t q0, Py_ssize_t q1, number *columns,
) noexcept nogil

cdef void scatter_rows(
    const number *rows, const Window *v, Part part, Py_ssize_t q0, Py_ssize_t q1,
    const Py_ssize_t *box, number *x,
) noexcept nogil

cdef void scatter_columns(
    const number *columns, const Window *v, Part part, bint channels_outer,
    Py_ssize_t q0, Py_ssize_t q1, const Py_ssize_t *box, number *x,
) noexcept nogil
