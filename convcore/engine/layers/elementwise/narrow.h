/* bfloat16 in memory. */
#include "runtime/bfloat16_memory.h"

/* y, floats, from bfloat16.  What follows in memory is asked for: it is often widened next. */
static void widen(const void *x, ptrdiff_t count, void *y)
{
    ptrdiff_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        PREFETCH(element(1, x, i + count));
        store_elements(0, y, i, load_elements(1, x, i, LANES), LANES);
    }
    if (i < count) store_elements(0, y, i, load_elements(1, x, i, count - i), count - i);
}

/* y, bfloat16, from floats. */
static void round_to_nearest(const void *x, ptrdiff_t count, void *y)
{
    ptrdiff_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store_elements(1, y, i, load_elements(0, x, i, LANES), LANES);
    if (i < count) store_elements(1, y, i, load_elements(0, x, i, count - i), count - i);
}

/* The largest elements of the window of column w of the outputs, channels c to c + LANES. */
INLINE vec max_of_window(const convcore_max_pool *m, const void *x, ptrdiff_t d, ptrdiff_t h,
                         ptrdiff_t w, ptrdiff_t c)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    vec best = broadcast(-INFINITY);
    for (ptrdiff_t a = D->low[d]; a < D->high[d]; a++)
        for (ptrdiff_t b = H->low[h]; b < H->high[h]; b++)
            for (ptrdiff_t t = W->low[w]; t < W->high[w]; t++) {
                const ptrdiff_t row = (D->start[d] + a * D->dilation) * H->size + H->start[h]
                                      + b * H->dilation;
                const ptrdiff_t at = row * W->size + W->start[w] + t * W->dilation;
                const vec v = load_elements(1, x, at * m->channels + c, m->channels - c);
                best = vec_of(SELECT((v > best) | (v != v), bits_of(v), bits_of(best)));
            }
    return best;
}

/* A line of the maxima of an NHWC image, as max_pool does of floats; the last NaN wins. */
static void max_pool_narrow(const convcore_max_pool *m, const void *x, ptrdiff_t d, ptrdiff_t h,
                            void *y)
{
    for (ptrdiff_t w = 0; w < m->axis[2].out; w++)
        for (ptrdiff_t c = 0; c < m->channels; c += LANES)
            store_elements(1, y, w * m->channels + c, max_of_window(m, x, d, h, w, c),
                           m->channels - c);
}
