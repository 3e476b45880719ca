"""Base classes of the convolution kernels, which hold the arrays' buffers and run work items."""

from convcore.engine.runtime._isa cimport Epilogue

# An epilogue of any element type; see conv/arguments.h.
cdef struct AnyEpilogue:
    const void *bias             # one element per output channel, or NULL
    int kind
    double low
    double high
    double slope

# Function that computes all work items of a pass, for one element type.
ctypedef void (*Compute)(
    const void *job, const void *left, const void *right, void *output, void *workspace,
    const AnyEpilogue *epilogue, int threads,
) noexcept nogil


cdef class Kernel:
    cdef Py_ssize_t items
    cdef double work             # multiply-adds
    cdef void *records

    cdef void *allocate(self, Py_ssize_t count, size_t size) except NULL


cdef class AnyKernel(Kernel):
    cdef const void *job_address
    cdef Compute compute

    cdef int set_compute(
        self, str kind, const void *job, Compute f, Compute d, Compute F, Compute D
    ) except -1
    cdef int call(
        self, left, right, output, workspace, int threads, const AnyEpilogue *epilogue
    ) except -1


cdef class FloatCorrelation(Kernel):
    cdef void pack_weights(self, const float *w, float *prepacked) noexcept
    cdef void compute(
        self, const float *x, const float *w, const float *prepacked, float *y, float *workspace,
        const Epilogue *epilogue, int threads,
    ) noexcept nogil


cdef class FloatWeightGradient(Kernel):
    cdef Py_ssize_t partials     # number of partial gradients
    cdef Py_ssize_t size         # floats of one partial gradient
    cdef Py_ssize_t row          # floats of a partial gradient that a thread adds up at a time
    cdef Py_ssize_t shared       # floats of all partial gradients, first in the workspace; 0: gw
    cdef Py_ssize_t scratch      # floats of scratch memory per thread

    cdef void item(
        self, Py_ssize_t i, const float *x, const float *gy, float *sums, float *scratch
    ) noexcept nogil
    cdef void put(self, Py_ssize_t i, float *sums, float *gw) noexcept nogil
