/* The threads behind Cython's prange.

Where gcc compiles for Linux, a `prange` calls a dozen functions of libgomp.  Each module defines
them here for itself, hidden from all other libraries, and hands them to one pool of threads, which
is in _threads.pyx: see team_pool.h for what that pool does better.  Nothing links libgomp, so the
process's OpenMP variables and other libraries' OpenMP are not touched.

Every other compiler uses its own OpenMP runtime, and this file is empty.

A rule for all kernels: one prange is one parallel region, and nothing in it waits for another
thread.  The barrier that gcc puts before each loop (for a loop variable that is both firstprivate
and lastprivate) is therefore left out: the caller may then do the shares of threads that have not
started, one after the other.  tests/test_layering.py checks the sources for it.
*/

#ifndef CONVCORE_TEAM_H
#define CONVCORE_TEAM_H

#if defined(_OPENMP) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define CONVCORE_TEAM 1
#else
#define CONVCORE_TEAM 0
#endif

#include <stdbool.h>

typedef struct {
    void (*parallel)(void (*function)(void *), void *data, unsigned threads);
    bool (*first_item)(long start, long end, long step, long chunk, long *from, long *to);
    bool (*next_item)(long *from, long *to);
    void (*barrier)(void);
    int (*thread_number)(void);
    int (*team_size)(void);
} convcore_team;

/* The pool's functions: a module sets this when it is imported, by `use_team` of _threads.pxd. */
static const convcore_team *convcore_the_team;

#if CONVCORE_TEAM
#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void GOMP_parallel(void (*f)(void *), void *data, unsigned threads, unsigned flags)
{
    (void)flags;
    convcore_the_team->parallel(f, data, threads);
}

HIDDEN bool GOMP_loop_nonmonotonic_dynamic_start(
    long start, long end, long step, long chunk, long *from, long *to)
{
    return convcore_the_team->first_item(start, end, step, chunk, from, to);
}

HIDDEN bool GOMP_loop_nonmonotonic_dynamic_next(long *from, long *to)
{
    return convcore_the_team->next_item(from, to);
}

HIDDEN void GOMP_loop_end_nowait(void) {}
HIDDEN void GOMP_barrier(void) { convcore_the_team->barrier(); }
HIDDEN int omp_get_thread_num(void) { return convcore_the_team->thread_number(); }
HIDDEN int omp_get_num_threads(void) { return convcore_the_team->team_size(); }
HIDDEN int omp_get_max_threads(void) { return 1; }  /* for a prange without num_threads */

#undef HIDDEN
#endif
#endif
