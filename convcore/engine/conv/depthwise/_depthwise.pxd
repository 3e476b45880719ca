"""Depthwise convolution of contiguous channels (channels_last)."""

from convcore.engine.conv.im2col._im2col cimport Window
from convcore.engine.runtime._types cimport number

cdef void multiply_channels(
    const number *x, const number *w, const Window *v, Py_ssize_t channels, Py_ssize_t c0,
    Py_ssize_t c1, Py_ssize_t q0, Py_ssize_t q1, number *out, Py_ssize_t ld,
) noexcept nogil
