"""The one file that touches BLAS: SciPy's ?gemm, row-major, for four element types.

BLAS is column-major.  A row-major C = A @ B is the column-major C^T = B^T @ A^T over the same
memory, so the operands change places and nothing is copied.
"""

cimport scipy.linalg.cython_blas as blas

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._threads cimport acquire_blas, release_blas
from convcore.engine.runtime._types cimport number

cdef extern from *:
    """
    #include <stdint.h>
    #include <limits.h>
    /* The integer of SciPy's BLAS: int, or int64_t where setup.py finds an ILP64 SciPy. */
    #ifndef CONVCORE_BLAS_INT
    #define CONVCORE_BLAS_INT int
    #endif
    typedef CONVCORE_BLAS_INT convcore_blas_int;
    #define CONVCORE_BLAS_MAX \\
        (sizeof(convcore_blas_int) == 4 ? (Py_ssize_t)INT32_MAX : PY_SSIZE_T_MAX)
    typedef void (*convcore_gemm)(
        char *, char *, convcore_blas_int *, convcore_blas_int *, convcore_blas_int *, void *,
        void *, convcore_blas_int *, void *, convcore_blas_int *, void *, void *,
        convcore_blas_int *);
    static void convcore_call_gemm(
        void *function, char ta, char tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, void *alpha,
        void *a, Py_ssize_t lda, void *b, Py_ssize_t ldb, void *beta, void *c, Py_ssize_t ldc)
    {
        convcore_blas_int m_ = m, n_ = n, k_ = k, lda_ = lda, ldb_ = ldb, ldc_ = ldc;
        ((convcore_gemm)function)(
            &ta, &tb, &m_, &n_, &k_, alpha, a, &lda_, b, &ldb_, beta, c, &ldc_);
    }
    """
    const Py_ssize_t CONVCORE_BLAS_MAX
    void convcore_call_gemm(
        void *, char, char, Py_ssize_t, Py_ssize_t, Py_ssize_t, void *, void *, Py_ssize_t,
        void *, Py_ssize_t, void *, void *, Py_ssize_t,
    ) noexcept nogil


cdef void gemm(
    bint trans_a, bint trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    number alpha, const number *a, Py_ssize_t lda, const number *b, Py_ssize_t ldb,
    number beta, number *c, Py_ssize_t ldc,
) noexcept nogil:
    """C (m, n) = alpha * op(A) (m, k) @ op(B) (k, n) + beta * C; beta = 0 does not read C.

    Row-major; lda, ldb, ldc are elements from a stored row to the next; op transposes where asked,
    and never conjugates.  Sizes have passed `check_sizes`.  nogil, no allocation, no threads.
    """
    cdef void *function
    if m == 0 or n == 0:
        return
    if number is float:
        function = <void *>blas.sgemm
    elif number is double:
        function = <void *>blas.dgemm
    elif number is floatcomplex:
        function = <void *>blas.cgemm
    else:
        function = <void *>blas.zgemm
    # BLAS wants a leading dimension of at least a row, even of a matrix with one row or none.
    convcore_call_gemm(
        function, c"T" if trans_b else c"N", c"T" if trans_a else c"N", n, m, k, &alpha,
        <void *>b, max(ldb, k if trans_b else n, 1), <void *>a, max(lda, m if trans_a else k, 1),
        &beta, c, max(ldc, n),
    )


cdef int check_sizes(Py_ssize_t largest) except -1:
    """Raise ValueError if `largest`, a size or leading dimension, does not fit BLAS's integers."""
    if largest > CONVCORE_BLAS_MAX:
        raise ValueError(
            f"a matrix of this convolution or product has a row or size of {largest} elements; "
            f"this SciPy's BLAS takes at most {CONVCORE_BLAS_MAX}"
        )
    return 0


def gemm_arrays(number alpha, a, b, number beta, c, bint trans_a=False, bint trans_b=False):
    """Compute C = alpha * op(A) @ op(B) + beta * C in place on 2-d arrays; for tests of `gemm`.

    Shapes and dtypes are the caller's word; rows may be further apart than their length.
    """
    cdef Buffers arrays = Buffers()
    cdef number *a_ptr = <number *>arrays.borrow(a, False)
    cdef number *b_ptr = <number *>arrays.borrow(b, False)
    cdef number *c_ptr = <number *>arrays.borrow(c, True)
    cdef Py_ssize_t size = sizeof(number)
    cdef Py_ssize_t m = c.shape[0], n = c.shape[1], k = a.shape[0 if trans_a else 1]
    cdef Py_ssize_t lda = a.strides[0] // size, ldb = b.strides[0] // size
    cdef Py_ssize_t ldc = c.strides[0] // size
    acquire_blas(1)
    try:
        with nogil:
            gemm(trans_a, trans_b, m, n, k, alpha, a_ptr, lda, b_ptr, ldb, beta, c_ptr, ldc)
    finally:
        release_blas(1)
