"""What all kernels share, and the two kinds of those whose arrays are all float32."""

from convcore.kernels.runtime._isa cimport Epilogue


cdef class Kernel:
    cdef Py_ssize_t items
    cdef double work             # multiply-adds


cdef class FloatCorrelation(Kernel):
    cdef void pack_weights(self, const float *w, float *kept) noexcept
    cdef void compute(
        self, const float *x, const float *w, const float *kept, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil


cdef class FloatGradient(Kernel):
    cdef void compute(
        self, const float *left, const float *right, float *output, float *workspace, int threads
    ) noexcept nogil
