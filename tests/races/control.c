/* Regions whose races are known, to see that ThreadSanitizer finds these and no others. */

enum { THREADS = 4, TIMES = 50 };

static int slots[THREADS];

/* Each thread writes its slot and reads its neighbour's: right only with a barrier between them. */
int neighbours(int has_barrier)
{
    int total = 0;
    int sums[THREADS] = {0};
    for (int time = 0; time < TIMES; time++) {
        #pragma omp parallel num_threads(THREADS)
        {
            #pragma omp for schedule(static, 1) nowait
            for (int i = 0; i < THREADS; i++)
                slots[i] = time;
            if (has_barrier) {
                #pragma omp barrier
            }
            #pragma omp for schedule(static, 1) nowait
            for (int i = 0; i < THREADS; i++)
                sums[i] += slots[(i + 1) % THREADS];
        }
        for (int i = 0; i < THREADS; i++)
            total += sums[i];
    }
    return total;
}
