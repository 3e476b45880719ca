/* Tell ThreadSanitizer how the threads of GNU's OpenMP wait for each other.

   libgomp is not built for it and meets by futexes of its own, which ThreadSanitizer does not see:
   without this file each region's begin, barrier and end looks like a race.  Loaded before libgomp,
   it takes the two calls by which the kernels' threads wait for each other, and says of each what
   happened before what.  It says no more than that: within a region nothing is ordered but by its
   barriers, so there are no suppressions.  Of libgomp's other calls the kernels use those that hand
   out a loop's turns, which order nothing. */

#define _GNU_SOURCE
#include <dlfcn.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

struct region {
    void (*work)(void *);
    void *data;
    char begin, end;
    /* In turns: who is through a barrier may be at the next before all have left the first. */
    char barriers[2];
};

static __thread struct region *own;
static __thread unsigned passed;

static void member(void *argument)
{
    struct region *outer = own;
    own = argument;
    passed = 0;
    __tsan_acquire(&own->begin);
    own->work(own->data);
    __tsan_release(&own->end);
    own = outer;
}

void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags)
{
    void (*next)(void (*)(void *), void *, unsigned, unsigned) = dlsym(RTLD_NEXT, "GOMP_parallel");
    struct region region = {work, data, 0, 0, {0, 0}};
    __tsan_release(&region.begin);
    next(member, &region, threads, flags);
    __tsan_acquire(&region.end);
}

void GOMP_barrier(void)
{
    void (*next)(void) = dlsym(RTLD_NEXT, "GOMP_barrier");
    char *barrier = own ? &own->barriers[passed++ % 2] : 0;
    if (barrier)
        __tsan_release(barrier);
    next();
    if (barrier)
        __tsan_acquire(barrier);
}
