"""Loops over one run of elements, inlined into the kernels: copy, zero, add."""

from libc.string cimport memcpy, memset

from convcore.kernels._types cimport number

# Below this many elements a loop beats the call of memcpy or memset.
cdef enum:
    SHORT = 16


cdef inline void copy(
    const number *x, Py_ssize_t step, Py_ssize_t count, number *out
) noexcept nogil:
    """out[i] = x[i*step]."""
    cdef Py_ssize_t i
    if step == 1 and count >= SHORT:
        memcpy(out, x, count * sizeof(number))
    elif step == 1:
        for i in range(count):
            out[i] = x[i]
    else:
        for i in range(count):
            out[i] = x[i * step]


cdef inline void spread(
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
