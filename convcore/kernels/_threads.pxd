"""One parallel region at a time per call: how many threads it gets, and BLAS held to one."""

cdef int team(Py_ssize_t items, double work) noexcept
cdef int enter(int threads) except -1
cdef void leave(int threads) noexcept
