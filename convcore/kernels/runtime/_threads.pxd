"""One parallel region at a time per call: how many threads it gets, and BLAS held to one."""

cdef int thread_count(Py_ssize_t items, double work) noexcept
cdef int acquire_blas(int threads) except -1
cdef void release_blas(int threads) noexcept
