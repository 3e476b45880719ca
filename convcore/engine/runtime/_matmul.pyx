"""Batches of matrix products, cut into tiles of C whose edges depend on shape alone."""

from cython.parallel cimport prange
from libc.stdint cimport int64_t

from convcore.engine.runtime._buffers cimport Buffers
from convcore.engine.runtime._gemm cimport check_sizes, gemm
from convcore.engine.runtime._isa cimport FewRows, layer_microkernels
from convcore.engine.runtime._threads cimport acquire_blas, release_blas, thread_count, use_team
from convcore.engine.runtime._types cimport number

use_team()

cdef struct Job:
    Py_ssize_t batch
    Py_ssize_t m
    Py_ssize_t n
    Py_ssize_t k
    bint trans_a                 # a is stored (k, m)
    bint trans_b                 # b is stored (n, k)
    bint few_rows                # floats, without BLAS
    Py_ssize_t lda
    Py_ssize_t ldb
    Py_ssize_t tile_m
    Py_ssize_t tile_n


cdef inline void multiply_tile(
    const Job *job, Py_ssize_t m, Py_ssize_t n, const number *a, const number *b, number *c,
) noexcept nogil:
    """c (m, n) = a (m, k) @ b (k, n)."""
    cdef number one = 1, nought = 0
    cdef const FewRows *few
    if number is float:
        if job.few_rows:
            few = &layer_microkernels().few_rows
            if job.trans_b:
                few.transposed(m, n, job.k, a, job.lda, b, job.ldb, c, job.n)
            elif job.trans_a:
                few.plain(m, n, job.k, a, 1, job.lda, b, job.ldb, c, job.n)
            else:
                few.plain(m, n, job.k, a, job.lda, 1, b, job.ldb, c, job.n)
            return
    gemm(
        job.trans_a, job.trans_b, m, n, job.k, one, a, job.lda, b, job.ldb, nought, c, job.n,
    )


cdef void tile_item(
    const Job *job, Py_ssize_t item, const int64_t *offsets, const number *a, const number *b,
    number *c,
) noexcept nogil:
    """c[i, m0:m1, n0:n1] = a[i, m0:m1] @ b[i, :, n0:n1]."""
    cdef Py_ssize_t across = (job.n + job.tile_n - 1) // job.tile_n
    cdef Py_ssize_t down = (job.m + job.tile_m - 1) // job.tile_m
    cdef Py_ssize_t n0 = item % across * job.tile_n, m0 = item // across % down * job.tile_m
    cdef Py_ssize_t i = item // across // down
    multiply_tile(
        job, min(job.tile_m, job.m - m0), min(job.tile_n, job.n - n0),
        a + offsets[2 * i] + (m0 if job.trans_a else m0 * job.lda),
        b + offsets[2 * i + 1] + (n0 * job.ldb if job.trans_b else n0),
        c + (i * job.m + m0) * job.n + n0,
    )


cdef void multiply(
    const Job *job, const number *a, const void *right, void *out, const int64_t *offsets,
    int threads, Py_ssize_t items,
) noexcept nogil:
    cdef const number *b = <const number *>right
    cdef number *c = <number *>out
    cdef Py_ssize_t i
    # A thread owns whole tiles of c.
    for i in prange(items, schedule="dynamic", num_threads=threads):
        tile_item(job, i, offsets, a, b, c)


cdef class MatmulKernel:
    """Products of some shapes and strides.

    Parameters
    ----------
    kind : one of 'fdFD'
    fields : the fields of a job
    """
    cdef Job job
    cdef int code
    cdef Py_ssize_t items

    def __init__(self, str kind, dict fields):
        self.job = fields
        self.code = "fdFD".index(kind)
        cdef Job job = self.job
        self.items = job.batch * (
            ((job.m + job.tile_m - 1) // job.tile_m) * ((job.n + job.tile_n - 1) // job.tile_n)
        )
        check_sizes(max(job.m, job.n, job.k, job.lda, job.ldb))

    def run(self, a, b, c, offsets):
        """Write c = a @ b, contiguous (batch, m, n).

        offsets: int64 (batch, 2), where each product's a and b begin, in elements.
        """
        cdef Job *job = &self.job
        cdef int threads = thread_count(self.items, 1.0 * job.batch * job.m * job.n * job.k)
        cdef Buffers arrays = Buffers()
        cdef void *a_ptr = arrays.borrow(a, False)
        cdef void *b_ptr = arrays.borrow(b, False)
        cdef void *c_ptr = arrays.borrow(c, True)
        cdef int64_t *where = <int64_t *>arrays.borrow(offsets, False)
        if not job.few_rows:
            threads = acquire_blas(threads)
        try:
            with nogil:
                if self.code == 0:
                    multiply(job, <float *>a_ptr, b_ptr, c_ptr, where, threads, self.items)
                elif self.code == 1:
                    multiply(job, <double *>a_ptr, b_ptr, c_ptr, where, threads, self.items)
                elif self.code == 2:
                    multiply(job, <float complex *>a_ptr, b_ptr, c_ptr, where, threads, self.items)
                else:
                    multiply(job, <double complex *>a_ptr, b_ptr, c_ptr, where, threads, self.items)
        finally:
            if not job.few_rows:
                release_blas(threads)
