"""Borrowed pointers into arrays."""

cdef class Buffers:
    cdef Py_buffer views[9]
    cdef int count
    cdef void *borrow(self, array, bint write) except? NULL
