/* The pool of threads under ThreadSanitizer: regions of several callers at once, and a known race.

   pool good    no race is expected; exit code 1 if a share of a region was left out or done twice
   pool race    all shares of a region write one variable */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

/* What Python does, which is not here. */
static unsigned long PyThread_start_new_thread(void (*function)(void *), void *argument)
{
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, (void *(*)(void *))function, argument);
    return failed || pthread_detach(thread) ? (unsigned long)-1 : 0;
}

#include "runtime/team.h"

#undef __SANITIZE_THREAD__ /* shares are taken back here: no loop variable below is lastprivate */
#include "runtime/team_pool.h"

enum { CALLERS = 3, REGIONS = 3000, ITEMS = 40, LIMIT = 4 };

static int wrong;

static void fill(long *numbers, int is_dynamic, long value)
{
    /* As Cython writes a prange: gcc makes other calls of a combined `parallel for`. */
    #pragma omp parallel num_threads(LIMIT)
    {
        if (is_dynamic) {
            #pragma omp for nowait schedule(dynamic)
            for (long i = 0; i < ITEMS; i++)
                numbers[i] += value;
        } else {
            #pragma omp for nowait schedule(static)
            for (long i = 0; i < ITEMS; i++)
                numbers[i] += value;
        }
    }
}

static void *call(void *unused)
{
    long numbers[ITEMS] = {0}, expected = 0;
    for (int region = 0; region < REGIONS; region++) {
        fill(numbers, region % 2, region);
        expected += region;
        for (int i = 0; i < ITEMS; i++)
            if (numbers[i] != expected) __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
        if (region % 100 == 0) usleep(300); /* the workers go to sleep */
    }
    return unused;
}

static int good(void)
{
    pthread_t callers[CALLERS];
    for (int spin = 0; spin < 2; spin++) {
        team_set_spin(spin * 20000, spin * 10000, spin);
        for (int i = 0; i < CALLERS; i++) pthread_create(&callers[i], NULL, call, NULL);
        for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
    }
    return wrong || atomic_load(&n_working) != 0;
}

static int race(void)
{
    static long shared;
    for (int region = 0; region < 200; region++) {
        #pragma omp parallel for schedule(static) num_threads(LIMIT)
        for (long i = 0; i < 1000 * ITEMS; i++)
            *(volatile long *)&shared += i;
    }
    return 0;
}

int main(int n, char **words)
{
    convcore_the_team = team();
    team_set_limit(LIMIT);
    return n > 1 && strcmp(words[1], "race") == 0 ? race() : good();
}
