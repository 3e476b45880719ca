/* One pool of threads for all parallel regions of the process: included by _threads.pyx alone.

- Threads that wait spin for a bounded time, then sleep (futex).  On a busy machine a thread that
  spins uses up the time slice of the thread that it waits for; so nobody spins for a while after a
  sign that others want the processors: a spinning thread that was descheduled, or a thread that
  started long after it was woken.
- The caller never waits for a thread that has not started.  It offers each share of the region to a
  worker, does its own share, takes back the shares that no worker has begun, and does those too.
- The number of threads at work in all regions together stays within the limit: a region gets the
  workers that are left, none if there are none.  A second caller computes on its own thread.
- A forked child starts with an empty pool and fills it when it needs it.

A worker's `state` says who owns its fields: IDLE and SLEEPING nobody, RESERVED and OFFERED the
caller that put a share there, RUNNING the worker.  A worker touches a region's data only while it
is RUNNING, and its caller waits for that to end, so these may lie on the caller's stack.
*/

#ifndef CONVCORE_TEAM_POOL_H
#define CONVCORE_TEAM_POOL_H

#if CONVCORE_TEAM
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORKERS 63
#define DESCHEDULED 400000            /* ns between two looks at the clock: another ran meanwhile */
#define LATE_START 500000             /* ns from a wake-up to a start: the processors are taken */
#define MIN_HOLD_OFF 2000000          /* ns without spinning after a sign of a busy machine ... */
#define MAX_HOLD_OFF 64000000        /* ... doubled up to this while signs keep coming */

enum { IDLE, SLEEPING, RESERVED, OFFERED, RUNNING };

/* ThreadSanitizer sees that a loop variable is written by one thread and read by another, which
   only gcc's barrier orders: for it the barrier is kept, and no share is taken back. */
#ifdef __SANITIZE_THREAD__
#define KEEPS_BARRIERS 1
#else
#define KEEPS_BARRIERS 0
#endif

typedef struct {
    atomic_long taken;            /* iterations of a dynamic loop that some thread has taken */
    atomic_int arrived, barriers; /* at the next barrier; barriers passed */
} region;

typedef struct {
    void (*function)(void *);
    void *data;
    int number, size;  /* the share, and of how many */
    region *whole;
} share;

typedef struct {
    _Alignas(64) atomic_int state;
    atomic_uint finished;      /* the last offer that was done */
    atomic_bool is_awaited;    /* whether a caller sleeps until `finished` changes */
    unsigned offers;           /* offers so far, written by who has the worker RESERVED */
    bool was_asleep;
    int64_t offered_at;        /* ns, of an offer to a sleeping worker */
    share work;
} worker;

static worker workers[MAX_WORKERS];
static atomic_int n_workers;   /* that were started */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_working;   /* threads in regions now, callers included */
static atomic_int thread_limit = 1;
static atomic_llong idle_spin, join_spin;  /* ns: of a worker for work, of a caller for workers */
static atomic_bool adapts;     /* whether signs of a busy machine stop the spinning */
static bool is_bound;                 /* whether workers run on `allowed` only */
static cpu_set_t allowed;
static atomic_llong calm_at;          /* ns: no spinning before */
static atomic_llong hold_off;         /* ns: the last one */

static __thread share own;
static __thread struct { long start, end, step, chunk; } loop;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void futex_wait(void *word, int value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(void *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Stop the spinning for a while; longer if the last stop has only just ended. */
static void note_busy(int64_t time)
{
    int64_t calm = atomic_load_explicit(&calm_at, memory_order_relaxed);
    int64_t last = atomic_load_explicit(&hold_off, memory_order_relaxed), next = MIN_HOLD_OFF;
    if (!adapts || time < calm) return;
    if (time - calm < 4 * last) next = 2 * last < MAX_HOLD_OFF ? 2 * last : MAX_HOLD_OFF;
    atomic_store_explicit(&hold_off, next, memory_order_relaxed);
    atomic_store_explicit(&calm_at, time + next, memory_order_relaxed);
}

/* Wait until *word differs from the value, for at most `most` ns; whether it does. */
static bool spin_while(atomic_int *word, int value, int64_t most)
{
    int64_t begin, before, time;
    if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
    if (most <= 0) return false;
    begin = before = now();
    if (begin < atomic_load_explicit(&calm_at, memory_order_relaxed)) return false;
    do {
        for (int i = 0; i < 16; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
            relax();
        }
        time = now();
        if (time - before > DESCHEDULED) {
            note_busy(time);
            if (adapts) break;
        }
        before = time;
    } while (time - begin < most);
    return atomic_load_explicit(word, memory_order_acquire) != value;
}

static void do_share(const share *work)
{
    share outer = own;  /* of the caller, who may do several */
    own = *work;
    work->function(work->data);
    own = outer;
}

/* ---- workers ---- */

static void work_forever(void *argument)
{
    worker *me = argument;
    int offered, idle;
    sigset_t all;
    sigfillset(&all);  /* signals are for the threads that Python knows */
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (is_bound) sched_setaffinity(0, sizeof allowed, &allowed);
    for (;;) {
        offered = OFFERED;
        if (atomic_compare_exchange_strong(&me->state, &offered, RUNNING)) {
            unsigned offer = me->offers;
            share work = me->work;
            if (me->was_asleep) {
                int64_t time = now();
                if (time - me->offered_at > LATE_START) note_busy(time);
            }
            do_share(&work);
            /* Free for the next offer at once; its caller cannot mistake this end for that one's. */
            atomic_store(&me->state, IDLE);
            atomic_store(&me->finished, offer);
            if (atomic_exchange(&me->is_awaited, false)) futex_wake(&me->finished, INT_MAX);
            continue;
        }
        if (offered == RESERVED) {
            sched_yield();
            continue;
        }
        if (offered == IDLE && !spin_while(&me->state, IDLE, idle_spin)) {
            idle = IDLE;
            atomic_compare_exchange_strong(&me->state, &idle, SLEEPING);
        }
        if (atomic_load(&me->state) == SLEEPING) futex_wait(&me->state, SLEEPING);
    }
}

/* Start one more worker, which is RESERVED; NULL if there is no thread to be had.  Python starts it:
   pthread_create itself would ask for glibc 2.34 wherever it is linked with that or a later one. */
static worker *start_worker(void)
{
    worker *made = NULL;
    pthread_mutex_lock(&starting);
    int n = atomic_load(&n_workers);
    if (n < MAX_WORKERS && n < atomic_load(&thread_limit) - 1) {
        worker *next = &workers[n];
        atomic_store(&next->state, RESERVED);
        if (PyThread_start_new_thread(work_forever, next) != (unsigned long)-1) {
            atomic_store(&n_workers, n + 1);
            made = next;
        }
    }
    pthread_mutex_unlock(&starting);
    return made;
}

/* Reserve an idle worker, one that is awake if there is one; NULL if all have work. */
static worker *reserve_worker(void)
{
    int n = atomic_load(&n_workers);
    for (int kind = IDLE; kind <= SLEEPING; kind++)
        for (int i = 0; i < n; i++) {
            int expected = kind;
            if (atomic_load_explicit(&workers[i].state, memory_order_relaxed) == kind
                && atomic_compare_exchange_strong(&workers[i].state, &expected, RESERVED)) {
                workers[i].was_asleep = kind == SLEEPING;
                return &workers[i];
            }
        }
    worker *made = start_worker();
    if (made) made->was_asleep = false;
    return made;
}

/* Offer a share to a worker that is RESERVED; return the offer's number. */
static unsigned offer(worker *to, const share *work)
{
    unsigned number = ++to->offers;
    to->work = *work;
    if (to->was_asleep) to->offered_at = now();
    bool was_asleep = to->was_asleep;
    atomic_store(&to->state, OFFERED);  /* from here on the worker's fields may be another's */
    if (was_asleep) futex_wake(&to->state, 1);
    return number;
}

static void wait_until_finished(worker *who, unsigned the_offer)
{
    for (;;) {
        unsigned done = atomic_load_explicit(&who->finished, memory_order_acquire);
        if ((int)(done - the_offer) >= 0) return;
        if (spin_while((atomic_int *)&who->finished, (int)done, join_spin)) continue;
        atomic_store(&who->is_awaited, true);
        if (atomic_load(&who->finished) == done) futex_wait(&who->finished, (int)done);
    }
}

/* ---- regions ---- */

/* Take up to `most` of the threads that the limit leaves, the caller's own always. */
static int take_threads(int most)
{
    int working = atomic_load(&n_working), taken;
    do {
        taken = atomic_load(&thread_limit) - working;
        if (taken > most) taken = most;
        if (taken < 1) taken = 1;
    } while (!atomic_compare_exchange_weak(&n_working, &working, working + taken));
    return taken;
}

static void team_parallel(void (*function)(void *), void *data, unsigned threads)
{
    region whole = {0, 0, 0};
    share work = {function, data, 0, 1, &whole};
    worker *chosen[MAX_WORKERS];
    unsigned offers[MAX_WORKERS];
    if (threads <= 1) {
        do_share(&work);
        return;
    }
    int n_taken = take_threads(threads < MAX_WORKERS + 1 ? (int)threads : MAX_WORKERS + 1), n = 0;
    while (n < n_taken - 1 && (chosen[n] = reserve_worker())) n++;
    work.size = n + 1;
    for (int i = 0; i < n; i++) {
        work.number = i + 1;
        offers[i] = offer(chosen[i], &work);
    }
    work.number = 0;
    do_share(&work);
    for (int i = 0; i < n; i++) {
        int offered = OFFERED;
        if (KEEPS_BARRIERS || !atomic_compare_exchange_strong(&chosen[i]->state, &offered, RESERVED))
            continue;
        /* Nobody else offered it anything since: an offer that was taken leaves OFFERED for good. */
        if (chosen[i]->offers != offers[i]) {
            atomic_store(&chosen[i]->state, OFFERED);
            continue;
        }
        atomic_store(&chosen[i]->state, IDLE);
        chosen[i] = NULL;
        work.number = i + 1;
        do_share(&work);
    }
    for (int i = 0; i < n; i++)
        if (chosen[i]) wait_until_finished(chosen[i], offers[i]);
    atomic_fetch_sub(&n_working, n_taken);
}

static bool team_next_item(long *from, long *to)
{
    long count = atomic_fetch_add_explicit(&own.whole->taken, loop.chunk, memory_order_relaxed);
    *from = loop.start + count * loop.step;
    *to = *from + loop.chunk * loop.step;
    if (*to > loop.end) *to = loop.end;
    return *from < loop.end;
}

static bool team_first_item(long start, long end, long step, long chunk, long *from, long *to)
{
    loop.start = start, loop.end = end, loop.step = step, loop.chunk = chunk;
    return team_next_item(from, to);
}

static void team_barrier(void)
{
#if KEEPS_BARRIERS
    int passed = atomic_load(&own.whole->barriers);
    if (atomic_fetch_add(&own.whole->arrived, 1) == own.size - 1) {
        atomic_store(&own.whole->arrived, 0);
        atomic_fetch_add(&own.whole->barriers, 1);
    }
    while (own.size > 1 && atomic_load(&own.whole->barriers) == passed) sched_yield();
#endif
}

static int team_thread_number(void) { return own.number; }
static int team_size(void) { return own.size ? own.size : 1; }

/* ---- settings ---- */

static const convcore_team the_pool = {
    team_parallel, team_first_item, team_next_item, team_barrier, team_thread_number, team_size,
};

static const convcore_team *team(void) { return &the_pool; }
static void team_set_limit(int threads) { atomic_store(&thread_limit, threads); }

static void team_set_spin(int64_t idle, int64_t join, int is_adaptive)
{
    atomic_store(&idle_spin, idle);
    atomic_store(&join_spin, join);
    atomic_store(&adapts, is_adaptive);
    atomic_store(&calm_at, 0);
}

/* Have workers that start from now on run on these processors, not on those of their caller. */
static void team_set_processors(const int *numbers, int count)
{
    CPU_ZERO(&allowed);
    for (int i = 0; i < count; i++) CPU_SET(numbers[i], &allowed);
    is_bound = count > 0;
}

/* In a forked child, which has none of the threads. */
static void team_forget_workers(void)
{
    memset(workers, 0, sizeof workers);
    pthread_mutex_init(&starting, NULL);
    atomic_store(&n_workers, 0);
    atomic_store(&n_working, 0);
}
#else
static const convcore_team *team(void) { return 0; }
static void team_set_limit(int threads) { (void)threads; }
static void team_set_spin(long long idle, long long join, int is_adaptive)
{
    (void)idle, (void)join, (void)is_adaptive;
}
static void team_set_processors(const int *numbers, int count) { (void)numbers, (void)count; }
static void team_forget_workers(void) {}
#endif
#endif
