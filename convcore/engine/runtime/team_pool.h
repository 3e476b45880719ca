/* One pool of threads for all parallel regions of the process: included by _threads.pyx alone.

- Waiting threads spin for a bounded time, then sleep (futex).  On a busy machine a spinning thread
  uses up the time slice of the thread that it waits for.  So spinning stops for a while after a
  sign that other processes want the processors: a spinning thread was descheduled, or a worker
  started long after it was woken.
- The caller never waits for a thread that has not started.  It offers each share of the region to a
  worker, does the first share, takes back the shares that no worker has begun, and does those too.
- All regions together use at most as many threads as the limit, callers aside: a region gets the
  workers that are idle, and the caller always computes on its own thread.
- A forked child starts with an empty pool and fills it when it needs it.

A worker's `state` tells which thread may write its fields: none when IDLE or SLEEPING, a caller
when RESERVED or OFFERED, the worker when RUNNING.  A worker touches a region's data only while it
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
/* In ns.  On a quiet virtual machine smaller values stopped the spinning by mistake: with 30 us and
   300 us LeNet's training step took 4.5 ms instead of 3.4. */
#define DESCHEDULED 400000     /* a longer gap between two clock readings of a spinning thread */
#define LATE_START 500000      /* a longer time from wake-up to start */
#define MIN_HOLD_OFF 2000000   /* how long spinning stops after either of them ... */
#define MAX_HOLD_OFF 64000000  /* ... doubled up to this while they recur */

enum { IDLE, SLEEPING, RESERVED, OFFERED, RUNNING };

/* ThreadSanitizer sees that a loop variable is written by one thread and read by another, which
   only gcc's barrier orders: for it the barrier is kept, and no share is taken back. */
#ifdef __SANITIZE_THREAD__
#define KEEPS_BARRIERS 1
#else
#define KEEPS_BARRIERS 0
#endif

typedef struct {
    atomic_long taken;             /* iterations of a dynamic loop that threads have taken */
    atomic_int arrived, barriers;  /* threads at the next barrier; barriers passed */
} region_state;

typedef struct {
    void (*function)(void *);
    void *data;
    int number, n_shares;
    region_state *region;
} share;

typedef struct {
    _Alignas(64) atomic_int state;
    atomic_uint finished;    /* number of the last offer that was done */
    atomic_bool is_awaited;  /* a caller sleeps until `finished` changes */
    unsigned n_offers;
    bool was_asleep;
    int64_t offered_at;      /* ns, of an offer to a sleeping worker */
    share work;
} worker;

static worker workers[MAX_WORKERS];
static atomic_int n_workers;  /* that were started */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_working;  /* threads in regions now, callers included */
static atomic_int thread_limit = 1;
static atomic_llong idle_spin, join_spin;  /* ns: of a worker for work, of a caller for workers */
static atomic_bool is_adaptive;   /* signs of a busy machine stop the spinning */
static bool is_bound;             /* workers run on `processors` only */
static cpu_set_t processors;
static atomic_llong spins_after;  /* ns: no spinning before */
static atomic_llong hold_off;     /* ns: how long spinning stopped last */

static __thread share current;
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
    int64_t end = atomic_load_explicit(&spins_after, memory_order_relaxed);
    int64_t last = atomic_load_explicit(&hold_off, memory_order_relaxed), next = MIN_HOLD_OFF;
    if (!is_adaptive || time < end) return;
    if (time - end < 4 * last) next = 2 * last < MAX_HOLD_OFF ? 2 * last : MAX_HOLD_OFF;
    atomic_store_explicit(&hold_off, next, memory_order_relaxed);
    atomic_store_explicit(&spins_after, time + next, memory_order_relaxed);
}

/* Spin while *word has the value, for at most `max_ns`; return whether it has another. */
static bool spin_while(atomic_int *word, int value, int64_t max_ns)
{
    int64_t begin, before, time;
    if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
    if (max_ns <= 0) return false;
    begin = before = now();
    if (begin < atomic_load_explicit(&spins_after, memory_order_relaxed)) return false;
    do {
        for (int i = 0; i < 16; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
            relax();
        }
        time = now();
        if (time - before > DESCHEDULED) {
            note_busy(time);
            if (is_adaptive) break;
        }
        before = time;
    } while (time - begin < max_ns);
    return atomic_load_explicit(word, memory_order_acquire) != value;
}

static void do_share(const share *work)
{
    share outer = current;
    current = *work;
    work->function(work->data);
    current = outer;
}

/* ---- workers ---- */

static void work_forever(void *argument)
{
    worker *me = argument;
    int offered, idle;
    sigset_t signals;
    sigfillset(&signals);  /* for the threads that Python knows */
    sigprocmask(SIG_SETMASK, &signals, NULL);
    if (is_bound) sched_setaffinity(0, sizeof processors, &processors);
    for (;;) {
        offered = OFFERED;
        if (atomic_compare_exchange_strong(&me->state, &offered, RUNNING)) {
            unsigned number = me->n_offers;
            share work = me->work;
            if (me->was_asleep) {
                int64_t time = now();
                if (time - me->offered_at > LATE_START) note_busy(time);
            }
            do_share(&work);
            /* First IDLE, for the next offer; offers are numbered, so callers tell them apart. */
            atomic_store(&me->state, IDLE);
            atomic_store(&me->finished, number);
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

/* Start one more worker, RESERVED; NULL at the limit or if no thread can be started.  By Python's
   function, because pthread_create, linked with glibc 2.34 or later, would require that version. */
static worker *start_worker(void)
{
    worker *started = NULL;
    pthread_mutex_lock(&starting);
    int n = atomic_load(&n_workers);
    if (n < MAX_WORKERS && n < atomic_load(&thread_limit) - 1) {
        worker *next = &workers[n];
        atomic_store(&next->state, RESERVED);
        next->was_asleep = false;
        if (PyThread_start_new_thread(work_forever, next) != (unsigned long)-1) {
            atomic_store(&n_workers, n + 1);
            started = next;
        }
    }
    pthread_mutex_unlock(&starting);
    return started;
}

/* Reserve an idle worker, rather one that is awake; NULL if all have work. */
static worker *reserve_worker(void)
{
    int n = atomic_load(&n_workers);
    for (int state = IDLE; state <= SLEEPING; state++)
        for (int i = 0; i < n; i++) {
            int expected = state;
            if (atomic_load_explicit(&workers[i].state, memory_order_relaxed) == state
                && atomic_compare_exchange_strong(&workers[i].state, &expected, RESERVED)) {
                workers[i].was_asleep = state == SLEEPING;
                return &workers[i];
            }
        }
    return start_worker();
}

/* Offer a share to a worker that is RESERVED; return the offer's number. */
static unsigned offer(worker *to, const share *work)
{
    unsigned number = ++to->n_offers;
    bool was_asleep = to->was_asleep;
    to->work = *work;
    if (was_asleep) to->offered_at = now();
    atomic_store(&to->state, OFFERED);  /* after this another caller may write the fields */
    if (was_asleep) futex_wake(&to->state, 1);
    return number;
}

static void wait_until_finished(worker *awaited, unsigned number)
{
    for (;;) {
        unsigned done = atomic_load_explicit(&awaited->finished, memory_order_acquire);
        if ((int)(done - number) >= 0) return;
        if (spin_while((atomic_int *)&awaited->finished, (int)done, join_spin)) continue;
        atomic_store(&awaited->is_awaited, true);
        if (atomic_load(&awaited->finished) == done) futex_wait(&awaited->finished, (int)done);
    }
}

/* ---- regions ---- */

/* Count up to `wanted` more threads at work, as the limit permits, at least the caller's. */
static int take_threads(int wanted)
{
    int working = atomic_load(&n_working), taken;
    do {
        taken = atomic_load(&thread_limit) - working;
        if (taken > wanted) taken = wanted;
        if (taken < 1) taken = 1;
    } while (!atomic_compare_exchange_weak(&n_working, &working, working + taken));
    return taken;
}

static void team_parallel(void (*function)(void *), void *data, unsigned threads)
{
    region_state region = {0, 0, 0};
    share work = {function, data, 0, 1, &region};
    worker *chosen[MAX_WORKERS];
    unsigned offers[MAX_WORKERS];
    if (threads <= 1) {
        do_share(&work);
        return;
    }
    int n_taken = take_threads(threads < MAX_WORKERS + 1 ? (int)threads : MAX_WORKERS + 1), n = 0;
    while (n < n_taken - 1 && (chosen[n] = reserve_worker())) n++;
    work.n_shares = n + 1;
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
        if (chosen[i]->n_offers != offers[i]) {  /* ours was taken, and this is another caller's */
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
    long count = atomic_fetch_add_explicit(&current.region->taken, loop.chunk, memory_order_relaxed);
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
    int passed = atomic_load(&current.region->barriers);
    if (atomic_fetch_add(&current.region->arrived, 1) == current.n_shares - 1) {
        atomic_store(&current.region->arrived, 0);
        atomic_fetch_add(&current.region->barriers, 1);
    }
    while (current.n_shares > 1 && atomic_load(&current.region->barriers) == passed) sched_yield();
#endif
}

static int team_thread_number(void) { return current.number; }
static int team_size(void) { return current.n_shares ? current.n_shares : 1; }

/* ---- settings ---- */

static const convcore_team the_pool = {
    team_parallel, team_first_item, team_next_item, team_barrier, team_thread_number, team_size,
};

static const convcore_team *team(void) { return &the_pool; }
static void team_set_limit(int threads) { atomic_store(&thread_limit, threads); }

static void team_set_spin(int64_t idle, int64_t join, int adaptive)
{
    atomic_store(&idle_spin, idle);
    atomic_store(&join_spin, join);
    atomic_store(&is_adaptive, adaptive);
    atomic_store(&spins_after, 0);
}

/* Run workers that start from now on on these processors, instead of their caller's. */
static void team_set_processors(const int *numbers, int count)
{
    CPU_ZERO(&processors);
    for (int i = 0; i < count; i++) CPU_SET(numbers[i], &processors);
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
static void team_set_spin(long long idle, long long join, int adaptive)
{
    (void)idle, (void)join, (void)adaptive;
}
static void team_set_processors(const int *numbers, int count) { (void)numbers, (void)count; }
static void team_forget_workers(void) {}
#endif
#endif
