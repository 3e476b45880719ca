"""Parallel regions: how many threads each gets, and BLAS held to one thread inside them."""

cdef extern from "runtime/team.h":
    ctypedef struct convcore_team:
        pass
    const convcore_team *convcore_the_team

cdef const convcore_team *team_functions() noexcept
cdef int thread_count(Py_ssize_t items, double work) noexcept
cdef int acquire_blas(int threads) except -1
cdef void release_blas(int threads) noexcept


cdef inline void use_team() noexcept:
    """Connect this module's pranges to the pool: called once by every module that has any."""
    global convcore_the_team
    convcore_the_team = team_functions()
