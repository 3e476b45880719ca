/* Lines of pixels under the taps of one row of a kernel, made in registers.
 *
 * For the commonest kernels, K x K with K / 2 zeros around, of stride 1 or 2: the vectors under the
 * taps of a row are the line itself, shifted, and at its ends zeros are shifted in.  No copy of the
 * input is made at all.
 */
#ifndef CONVCORE_SHIFTED_ROWS_H
#define CONVCORE_SHIFTED_ROWS_H

#include "conv/halo_tile.h"

/* Lanes half to half + LANES - 1 of a pair of vectors. */
#define SHIFTED(half, l) ((half) + (l))
#if LANES > 1
#define SHIFT(a, b, half) CHOOSE(a, b, SHIFTED, half)
#else
#define SHIFT(a, b, half) ((half) == 0 ? (a) : (half) == 1 ? (b) : 0)
#endif

/* LANES floats, or as many as there are and zeros. */
INLINE vec load_window(const float *p, ptrdiff_t count, const float *end)
{
    return count >= LANES ? load(p) : count > 0 ? load_some(p, count, end) : (vec){0};
}

/* v delayed by 1 to 3 lanes, and advanced; zeros come in. */
INLINE vec delayed(vec v, const int by)
{
    const vec zero = {0};
    return by == 1   ? SHIFT(zero, v, LANES - 1)
           : by == 2 ? SHIFT(zero, v, LANES - 2)
                     : SHIFT(zero, v, LANES - 3);
}

INLINE vec advanced(vec v, const int by)
{
    const vec zero = {0};
    return by == 1 ? SHIFT(v, zero, 1) : by == 2 ? SHIFT(v, zero, 2) : SHIFT(v, zero, 3);
}

/* t[k][l] = line[(p + l) * S + k - K / 2], zero outside [0, width).
 *
 * first: p is 0.  final: the vector reaches the line's end.  Otherwise all taps of all lanes lie
 * within the line. */
INLINE void line_taps(const int K, const int S, const int first, const int final,
                      const float *line, ptrdiff_t p, ptrdiff_t width, const float *end, vec *t)
{
    const float *at = line + p * S;
    const ptrdiff_t left = width - p * S;
    if (S == 1) {
        t[K / 2] = final ? load_window(at, left, end) : load(at);
        UNROLLED for (int o = 1; o <= K / 2; o++) {
            t[K / 2 - o] = first   ? delayed(t[K / 2], o)
                           : final ? load_window(at - o, left + o, end)
                                   : load(at - o);
            t[K / 2 + o] = final ? advanced(t[K / 2], o) : load(at + o);
        }
    } else {
        vec a = final ? load_window(at, left, end) : load(at);
        vec b = final ? load_window(at + LANES, left - LANES, end) : load(at + LANES);
        vec even, odd, even_before, odd_before;
        unzip(a, b, &even, &odd);
        if (first) {
            even_before = delayed(even, 1);
            odd_before = delayed(odd, 1);
        } else {
            a = final ? load_window(at - 2, left + 2, end) : load(at - 2);
            b = final ? load_window(at - 2 + LANES, left + 2 - LANES, end) : load(at - 2 + LANES);
            unzip(a, b, &even_before, &odd_before);
        }
        t[K / 2] = even;
        t[K / 2 + 1] = odd;
        t[K / 2 - 1] = odd_before;
        if (K == 5) {
            t[0] = even_before;
            if (final) {
                t[4] = advanced(even, 1);
            } else {
                vec unused;
                unzip(load(at + 2), load_window(at + 2 + LANES, LANES - 1, end), &t[4], &unused);
            }
        }
    }
    UNROLLED for (int k = 0; k < K; k++) KEEP(t[k]);
}

#endif
