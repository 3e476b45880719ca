/* Norms of gradients, and their being made shorter; for numbers of type T. */

/* The sum of the squares of a run: a float's in float, chunk by chunk, and these in double. */
static double OF(squares)(const void *from, ptrdiff_t count)
{
    const T *v = from;
    double total = 0;
    for (ptrdiff_t first = 0; first < count; first += 512) {
        const ptrdiff_t end = first + 512 < count ? first + 512 : count;
        T lanes[16] = {0}, rest = 0;
        ptrdiff_t i = first;
        for (; i + 16 <= end; i += 16)
            for (int l = 0; l < 16; l++) lanes[l] += v[i + l] * v[i + l];
        for (; i < end; i++) rest += v[i] * v[i];
        for (int l = 0; l < 16; l++) total += lanes[l];
        total += rest;
    }
    return total;
}

static void OF(scale)(void *to, ptrdiff_t count, double factor)
{
    T *v = to;
    const T by = (T)factor;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) v[i] *= by;
}

/* NaN stays. */
static void OF(clip)(void *to, ptrdiff_t count, double bound)
{
    T *v = to;
    const T most = (T)bound, least = (T)-bound;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const T low = v[i] < least ? least : v[i];
        v[i] = low > most ? most : low;
    }
}
