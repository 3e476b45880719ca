"""Loops over one run of elements, inlined into the kernels: copy, zero, add."""

from libc.string cimport memcpy, memset

from convcore.engine.runtime._types cimport number

cdef enum:
    CHUNK = 4     # elements that one or two vector moves carry
    # Rebuilt with other values, python -m timeit of engine.im2col(x, 3, padding=1) in float32 of
    # (1, C, 16, 16) in NHWC and (1, 8, W, W) in NCHW, on one thread.
    LONG = 64     # from here on memcpy is called; 128 takes up to 1.4 times as long (W 56), 32 not
    SHORT = 16    # below this memset is not called; 4 takes up to 1.3 times as long (C 32), 64 not


cdef inline float *element(const float *p, Py_ssize_t i, bint narrow) noexcept nogil:
    """Where element i of an array is: of floats, or of bfloat16 behind the same pointer."""
    return <float *>(<char *>p + i * (2 if narrow else <Py_ssize_t>sizeof(float)))


cdef inline void copy(
    const number *x, Py_ssize_t step, Py_ssize_t count, number *out
) noexcept nogil:
    """out[i] = x[i*step]; x and out do not overlap."""
    cdef Py_ssize_t i = 0
    if step != 1:
        for i in range(count):
            out[i] = x[i * step]
    elif count >= LONG:
        memcpy(out, x, count * sizeof(number))
    elif count >= CHUNK:
        # Copies of a constant size are moves, not calls; the last one overlaps the one before it.
        while i < count - CHUNK:
            memcpy(out + i, x + i, CHUNK * sizeof(number))
            i += CHUNK
        memcpy(out + count - CHUNK, x + count - CHUNK, CHUNK * sizeof(number))
    else:
        for i in range(count):
            out[i] = x[i]


cdef inline void scatter(
    const number *x, Py_ssize_t count, number *out, Py_ssize_t step
) noexcept nogil:
    """out[i*step] = x[i]."""
    cdef Py_ssize_t i
    if step == 1:
        copy(x, 1, count, out)
    else:
        for i in range(count):
            out[i * step] = x[i]


cdef inline void zero(number *out, Py_ssize_t count) noexcept nogil:
    """out[i] = 0."""
    cdef Py_ssize_t i
    if count >= SHORT:
        memset(out, 0, count * sizeof(number))
    else:
        for i in range(count):
            out[i] = 0


cdef inline void add(
    const number *values, Py_ssize_t count, number *out, Py_ssize_t step
) noexcept nogil:
    """out[i*step] += values[i]."""
    cdef Py_ssize_t i
    if step == 1:
        for i in range(count):
            out[i] += values[i]
    else:
        for i in range(count):
            out[i * step] += values[i]
