"""Thread counts of parallel regions, and the limit of one thread for BLAS inside them.

A kernel asks `thread_count` how many threads to use and runs its pranges: on the pool of
team_pool.h where gcc compiles for Linux, else on the compiler's OpenMP runtime.  A kernel that
calls BLAS there calls `acquire_blas` first, uses as many threads as that grants, and calls
`release_blas` in a ``finally``.  Every thread calls BLAS for itself, so BLAS must not start threads
of its own: the first such region saves BLAS's thread count and sets 1, the last one restores it.
This module only counts and calls; engine/runtime/threads.py finds the two functions to call.

A fork waits for the regions that call BLAS: a child that began within one would find OpenBLAS's
lock on its buffers taken by a thread that the child does not have, and wait for ever.  The thread
that forks may compute meanwhile, as other libraries' fork handlers do: it does not wait, and takes
one thread.
"""

from cpython.pythread cimport (
    NOWAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_get_thread_ident,
    PyThread_release_lock,
    PyThread_type_lock,
    WAIT_LOCK,
)
from libc.stdint cimport int64_t, uintptr_t

cdef extern from *:
    """
    #include "runtime/team.h"
    #include "runtime/team_pool.h"
    #ifdef _OPENMP
    #define CONVCORE_OPENMP_DATE _OPENMP
    #else
    #define CONVCORE_OPENMP_DATE 0
    #endif
    #ifdef Py_LIMITED_API
    #define CONVCORE_ABI3 1
    #else
    #define CONVCORE_ABI3 0
    #endif
    #if defined(__clang__)
    #define CONVCORE_COMPILER "clang " __clang_version__
    #elif defined(__GNUC__)
    #define CONVCORE_COMPILER "gcc " __VERSION__
    #elif defined(_MSC_VER)
    #define CONVCORE_COMPILER "msvc"
    #else
    #define CONVCORE_COMPILER "unknown"
    #endif
    """
    int CONVCORE_OPENMP_DATE
    int CONVCORE_TEAM
    const convcore_team *team() nogil
    void team_set_limit(int threads) nogil
    void team_set_spin(int64_t idle, int64_t join, bint is_adaptive) nogil
    void team_set_processors(const int *numbers, int count) nogil
    void team_forget_workers() nogil
    int CONVCORE_ABI3
    const char *CONVCORE_COMPILER

ctypedef int (*get_threads_t)() noexcept nogil
ctypedef void (*set_threads_t)(int) noexcept nogil

# OpenBLAS as built for SciPy's wheels serves at most 64 calling threads at once, whoever they are.
cdef int most_threads = 64

cdef int limit = 1
cdef double least_parallel_work = 0     # a region of fewer multiply-adds runs on one thread
# A child forked after parallel work has no threads: an OpenMP runtime would wait for them for ever,
# our own pool starts new ones.
cdef bint is_orphaned = False
cdef bint team_started = False
cdef bint forking = False       # between `before_fork` and what is called after the fork
cdef long forker = 0            # the thread that forks, if any does

cdef PyThread_type_lock lock = PyThread_allocate_lock()     # of the counts
cdef PyThread_type_lock gate = PyThread_allocate_lock()     # passed by who enters or forks
cdef PyThread_type_lock calling = PyThread_allocate_lock()  # while a region calls BLAS, or a fork
cdef int holders = 0
cdef int running = 0            # threads of all regions that run now and call BLAS
cdef int saved = 0
cdef get_threads_t blas_get = NULL
cdef set_threads_t blas_set = NULL
cdef object find_blas = None    # called once, before the first region that calls BLAS


cdef const convcore_team *team_functions() noexcept:
    return team()


cdef int thread_count(Py_ssize_t items, double work) noexcept:
    """Threads for `items` items of `work` multiply-adds in all; 1 where more would not pay."""
    global team_started
    cdef int size = limit
    if is_orphaned or forking or work < least_parallel_work or CONVCORE_OPENMP_DATE == 0:
        return 1
    if items < size:
        size = <int>items
    if size > 1:
        team_started = True
    return size if size > 1 else 1


cdef int acquire_blas(int threads) except -1:
    """Hold BLAS to one thread, and return how many of `threads` the region may start, at least 1.

    Every call is paired with one of `release_blas`, which gets what this returned.
    """
    global holders, running, find_blas
    finder = find_blas
    if finder is not None:
        # Not under the lock, for it runs Python; if two threads come here, both find the same.
        finder()
        find_blas = None
    cdef bint within_fork = forks_here()    # where the fork itself holds the gate, and `calling`
    if not within_fork:
        pass_gate()
    PyThread_acquire_lock(lock, WAIT_LOCK)
    threads = max(1, min(threads, most_threads - running))
    running += threads
    if holders == 0:
        if not within_fork:
            # At once: a fork, which may hold it too, would hold the gate.
            PyThread_acquire_lock(calling, WAIT_LOCK)
        limit_blas()
    holders += 1
    PyThread_release_lock(lock)
    if not within_fork:
        PyThread_release_lock(gate)
    return threads


cdef inline bint forks_here() noexcept:
    """Whether this thread is within a fork: a handler's that another has registered."""
    return forking and forker == <long>PyThread_get_thread_ident()


cdef void pass_gate() noexcept:
    """Take the gate, without the GIL if that means to wait: who holds it may need the GIL."""
    if not PyThread_acquire_lock(gate, NOWAIT_LOCK):
        with nogil:
            PyThread_acquire_lock(gate, WAIT_LOCK)


cdef void limit_blas() noexcept:
    """Save BLAS's thread count and set 1."""
    global saved
    if blas_set != NULL:
        saved = blas_get()
        if saved != 1:
            blas_set(1)


cdef void release_blas(int threads) noexcept:
    """Undo one `acquire_blas`; the last one out gives BLAS its threads back."""
    global holders, running
    PyThread_acquire_lock(lock, WAIT_LOCK)
    running -= threads
    holders -= 1
    if holders == 0:
        if blas_set != NULL and saved != 1:
            blas_set(saved)
        if not forks_here():
            PyThread_release_lock(calling)
    PyThread_release_lock(lock)


def set_limit(n_threads, least_work):
    """Set the most threads that a region may use, and the multiply-adds from which it uses them.

    More threads than BLAS serves are taken as that many.
    """
    global limit, least_parallel_work
    limit = min(n_threads, most_threads)
    least_parallel_work = least_work
    team_set_limit(limit)


def set_spin(idle_ns, join_ns, bint is_adaptive):
    """Set how long threads spin before they sleep, in ns; no effect on a compiler's OpenMP runtime.

    idle_ns: of a worker that waits for work.  join_ns: of a caller that waits for its workers.
    is_adaptive: do not spin for a while after signs that other threads want the processors.
    """
    team_set_spin(idle_ns, join_ns, is_adaptive)


def get_limit():
    """Return the most threads that a region may use.

    That is 1 in a build without OpenMP, and where a compiler's OpenMP runtime cannot go on: in a
    child forked after parallel work.
    """
    return 1 if is_orphaned or CONVCORE_OPENMP_DATE == 0 else limit


def set_processors(list numbers):
    """Have workers that start from now on run on these processors; [] for those of their caller."""
    cdef int[1024] known
    cdef int count = 0
    for number in numbers:
        if 0 <= number < 1024:
            known[count] = number
            count += 1
    team_set_processors(known, count)


def set_blas_finder(finder):
    """Have `finder()` called before BLAS is first held; it answers through `set_blas`."""
    global find_blas
    find_blas = finder


def set_blas(uintptr_t getter, uintptr_t setter):
    """Take the addresses of BLAS's ``int get(void)`` and ``void set(int)``; 0, 0 for none."""
    global blas_get, blas_set
    blas_get = <get_threads_t><void *>getter
    blas_set = <set_threads_t><void *>setter


def before_fork():
    """Wait until no region calls BLAS, and let no other thread's begin before the fork is done."""
    global forking, forker
    pass_gate()
    with nogil:
        PyThread_acquire_lock(calling, WAIT_LOCK)
    forker = <long>PyThread_get_thread_ident()
    forking = True


def after_fork_in_parent():
    """Let regions that call BLAS begin again."""
    global forking
    forking = False
    PyThread_release_lock(calling)
    PyThread_release_lock(gate)


def after_fork_in_child():
    """Give the child new locks and an empty pool of threads."""
    global lock, gate, calling, is_orphaned, forking
    lock = PyThread_allocate_lock()
    gate = PyThread_allocate_lock()
    calling = PyThread_allocate_lock()
    is_orphaned, forking = team_started and not CONVCORE_TEAM, False
    team_forget_workers()


def build():
    """Return (OpenMP date or 0, has its own pool of threads, stable ABI, compiler)."""
    return (
        CONVCORE_OPENMP_DATE, bool(CONVCORE_TEAM), bool(CONVCORE_ABI3), CONVCORE_COMPILER.decode()
    )
