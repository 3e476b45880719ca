/* Gradient clipping: the sum of squares, scaling, clamping; for numbers of type T. */

/* The sum of the squares of a run: a float's in float, chunk by chunk, and these in double. */
static double OF(squares)(const void *from, ptrdiff_t count)
{
    const T *v = from;
    double total = 0;
    for (ptrdiff_t i = 0; i < count;) {
        const ptrdiff_t end = i + 1024 < count ? i + 1024 : count;
        LINE some[4];
        T rest = 0;
        UNROLLED for (int k = 0; k < 4; k++) some[k] = SPREAD(0);
        for (; i + 4 * LINE_LANES <= end; i += 4 * LINE_LANES)
            UNROLLED for (int k = 0; k < 4; k++)
                some[k] += LOAD(v + i + k * LINE_LANES) * LOAD(v + i + k * LINE_LANES);
        for (; i < end; i++) rest += v[i] * v[i];
        total += (double)OF(sum_of_lanes)((some[0] + some[1]) + (some[2] + some[3]));
        total += (double)rest;
    }
    return total;
}

static void OF(scale)(void *to, ptrdiff_t count, double factor)
{
    T *v = to;
    const T by = (T)factor;
    IVDEP for (ptrdiff_t i = 0; i < count; i++) v[i] *= by;
}

/* NaN stays. */
static void OF(clip)(void *to, ptrdiff_t count, double bound)
{
    T *v = to;
    const T most = (T)bound, least = (T)-bound;
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        const T low = v[i] < least ? least : v[i];
        v[i] = low > most ? most : low;
    }
}
