"""Row-major C = alpha * op(A) @ op(B) + beta * C."""

from convcore.engine.runtime._types cimport number

cdef void gemm(
    bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    number alpha, const number *a, Py_ssize_t lda, const number *b, Py_ssize_t ldb,
    number beta, number *c, Py_ssize_t ldc,
) noexcept nogil

cdef int check_sizes(Py_ssize_t largest) except -1
