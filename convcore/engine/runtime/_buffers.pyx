"""Borrowed pointers into arrays, given back together when the borrower is done.

The buffer protocol is all that the kernels know of NumPy, so they are built without its headers and
owe nothing to its ABI.  Shapes, strides and dtypes have been looked at by the engine.
"""

from cpython.buffer cimport (
    PyBUF_STRIDED,
    PyBUF_STRIDED_RO,
    PyBuffer_Release,
    PyObject_GetBuffer,
)

from numpy import ndarray


cdef class Buffers:
    """Up to nine borrowed buffers."""

    cdef void *borrow(self, array, bint write) except? NULL:
        """Return the address of the array's first element; BufferError if it may not be written.

        An array of the meta device has no values to give: its ``refuse`` raises.
        """
        if type(array) is not ndarray and hasattr(array, "refuse"):
            array.refuse()
        if self.count == 9:
            raise BufferError("a kernel borrows more than nine arrays")
        PyObject_GetBuffer(
            array, &self.views[self.count], PyBUF_STRIDED if write else PyBUF_STRIDED_RO
        )
        self.count += 1
        return self.views[self.count - 1].buf

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            PyBuffer_Release(&self.views[i])
