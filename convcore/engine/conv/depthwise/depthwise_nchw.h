/* Depthwise convolutions by lines: contiguous memory, vectors of neighbouring pixels.
 *
 * For K x K kernels with K / 2 zeros before each row, of stride 1 or 2; others go through halos
 * (depthwise.c).  Four rows of outputs are made at a time, so that a line's taps, once made, serve
 * all the rows of the kernel.
 */
#ifndef CONVCORE_DEPTHWISE_LINES_H
#define CONVCORE_DEPTHWISE_LINES_H

#include "conv/epilogue.h"
#include "shifted_rows.h"

#define SUMMED_ROWS 4
/* With 32 registers, seven: the sizes of images in the nets that matter are multiples of it. */
#define MOST_ROWS 7
/* Taps of a row of the widest form: arrays of a constant size become registers. */
#define WIDEST 7

/* What the loops over the lines of one channel see. */
typedef struct {
    const float *plane;          /* the array that is read */
    ptrdiff_t height;
    ptrdiff_t width;
    ptrdiff_t low;               /* the first row under output row 0 */
    const float *end;            /* no load passes it */
    const float *w;
    float *y;
    ptrdiff_t rows;              /* of outputs */
    ptrdiff_t j0;                /* those that are made now */
    ptrdiff_t j1;
    ptrdiff_t count;             /* outputs of a row */
    const float *full;           /* the last place where a whole vector may be stored */
} line_view;

/* Whether line_taps can make vectors of `count` outputs of stride S: none but the last may lack
 * taps at its end. */
INLINE int fits_lines(ptrdiff_t K, ptrdiff_t count)
{
    ptrdiff_t rest = count % LANES;
    return LANES > 2 && (K < 7 || LANES > 4)
           && (count <= LANES || rest == 0 || rest >= K / 2);
}

/* Whether a map can be made by lines: its columns are padded as line_taps pads them. */
static int is_by_lines(const convcore_direct *d)
{
    const convcore_direct_axis *axis = &d->column;
    if (d->specialisation < 0) {
        ptrdiff_t K = -d->specialisation / 10;
        return axis->size == (axis->out + 1) / 2 && axis->low == (K == 5 ? -1 : 0)
               && fits_lines(3, axis->size);
    }
    return d->specialisation && axis->low == -(d->specialisation / 20)
           && axis->out == (axis->size + axis->stride - 1) / axis->stride
           && fits_lines(d->specialisation / 10, axis->out);
}

/* Store a vector.  Where a row is shorter than a vector the lanes behind it are the beginning of the
 * next row, which is made later; not so behind `full`. */
INLINE void put(float *y, vec v, ptrdiff_t lanes, const float *full)
{
    if (y <= full) store(y, v);
    else store_first(y, v, lanes);
}

INLINE void finish_rows(const int R, vec *sums, const convcore_epilogue *e)
{
    if (e->kind != CONVCORE_PLAIN)
        UNROLLED for (int r = 0; r < R; r++) sums[r] = activated(sums[r], e);
}

/* ---- forward, and the input gradient of stride 1 ---- */

/* All rows of the vectors of outputs that begin at p; R at a time, the last R maybe twice. */
INLINE void sum_lines(const int K, const int S, const int R, const int first, const int final,
                      const line_view *given, ptrdiff_t p, const vec *weights, vec bias,
                      const convcore_epilogue *e)
{
    const line_view v = *given;
    const convcore_epilogue own = *e;
    const ptrdiff_t lanes = min_of(LANES, v.count);
    vec w[WIDEST * WIDEST];
    UNROLLED for (int t = 0; t < K * K; t++) w[t] = weights[t];
    for (ptrdiff_t j = v.j0;; j = min_of(j + R, v.j1 - R)) {
        ptrdiff_t row = j * S + v.low;
        const float *line = v.plane + row * v.width;
        float *y = v.y + j * v.count + p;
        vec sums[MOST_ROWS];
        UNROLLED for (int r = 0; r < R; r++) sums[r] = bias;
        UNROLLED for (int i = 0; i < (R - 1) * S + K; i++) {
            if (row >= 0 && row < v.height) {
                vec t[WIDEST];
                line_taps(K, S, first, final, line, p, v.width, v.end, t);
                UNROLLED for (int r = 0; r < R; r++)
                    if (i >= r * S && i < r * S + K)
                        UNROLLED for (int k = 0; k < K; k++)
                            sums[r] += t[k] * w[(i - r * S) * K + k];
            }
            row++;
            line += v.width;
        }
        finish_rows(R, sums, &own);
        UNROLLED for (int r = 0; r < R; r++) put(y + r * v.count, sums[r], lanes, v.full);
        if (j + R == v.j1) break;
    }
}

/* The kernel, every weight in all lanes, in the order in which it meets the input. */
INLINE void broadcast_weights(const int K, const convcore_direct *d, const float *w, vec *to)
{
    UNROLLED for (int i = 0; i < K; i++)
        UNROLLED for (int k = 0; k < K; k++)
            to[i * K + k] = broadcast(w[tap_of(&d->row, 0, i) * K + tap_of(&d->column, 0, k)]);
}

/* All vectors of outputs of some rows. */
INLINE void sum_plane(const int K, const int S, const int R, const line_view *v, const vec *w,
                      vec bias, const convcore_epilogue *e)
{
    ptrdiff_t p = LANES;
    if (v->count <= LANES) {
        sum_lines(K, S, R, 1, 1, v, 0, w, bias, e);
        return;
    }
    sum_lines(K, S, R, 1, 0, v, 0, w, bias, e);
    for (; p + LANES < v->count; p += LANES) sum_lines(K, S, R, 0, 0, v, p, w, bias, e);
    sum_lines(K, S, R, 0, 1, v, v->count - LANES, w, bias, e);
}

#define SUM_LINES(K, S)                                                                          \
    static void sum_lines_##K##_##S(const convcore_direct *d, const line_view *v, vec bias,      \
                                    const convcore_epilogue *e)                                  \
    {                                                                                            \
        vec w[WIDEST * WIDEST];                                                                  \
        broadcast_weights(K, d, v->w, w);                                                        \
        if (K == 3 && S == 1 && REGISTERS == 32 && (v->j1 - v->j0) % MOST_ROWS == 0)                       \
            sum_plane(K, S, MOST_ROWS, v, w, bias, e);                                           \
        else                                                                                     \
            sum_plane(K, S, SUMMED_ROWS, v, w, bias, e);                                         \
    }
SUM_LINES(3, 1) SUM_LINES(3, 2) SUM_LINES(5, 1) SUM_LINES(5, 2) SUM_LINES(7, 1)

/* ---- the input gradient of stride 2 ---- */

/* Rows of gradients whose inputs' are made at a time. */
#define SPREAD_ROWS 2

/* The four inputs' gradients beside each of R x LANES outputs': even and odd rows and columns.
 * Input 2 j + a is under tap a + K / 2 - 2 o of output j + o. */
INLINE void spread_products(const int K, const int o_row, const vec *t, const vec *w, vec *sums)
{
    UNROLLED for (int r = 0; r < SPREAD_ROWS; r++)
        UNROLLED for (int a = 0; a < 2; a++)
            UNROLLED for (int b = 0; b < 2; b++)
                UNROLLED for (int o = -1; o <= 1; o++) {
                    const int i = a + K / 2 - 2 * (o_row - r), k = b + K / 2 - 2 * o;
                    if (i >= 0 && i < K && k >= 0 && k < K)
                        sums[4 * r + 2 * a + b] += t[o + 1] * w[i * K + k];
                }
}

INLINE void spread_lines(const int K, const int first, const int final, const line_view *given,
                         ptrdiff_t p, const vec *weights)
{
    const line_view v = *given;
    const ptrdiff_t left = v.count - 2 * p, low = min_of(LANES, left);
    const ptrdiff_t high = min_of(LANES, left - LANES);
    const float *full = v.count >= 2 * LANES && left < 2 * LANES ? NULL : v.full;
    vec w[WIDEST * WIDEST];
    UNROLLED for (int t = 0; t < K * K; t++) w[t] = weights[t];
    for (ptrdiff_t j = v.j0;; j = min_of(j + SPREAD_ROWS, v.j1 - SPREAD_ROWS)) {
        vec sums[4 * SPREAD_ROWS];
        UNROLLED for (int i = 0; i < 4 * SPREAD_ROWS; i++) sums[i] = (vec){0};
        UNROLLED for (int o = -1; o <= SPREAD_ROWS; o++) {
            ptrdiff_t row = j + o;
            if ((K > 3 || o >= 0) && row >= 0 && row < v.height) {
                vec t[WIDEST];
                line_taps(3, 1, first, final, v.plane + row * v.width, p, v.width, v.end, t);
                spread_products(K, o, t, w, sums);
            }
        }
        float *y = v.y + 2 * j * v.count + 2 * p;
        UNROLLED for (int r = 0; r < 2 * SPREAD_ROWS; r++) {
            if (2 * j + r < v.rows) {
                vec a, b;
                zip(sums[2 * r], sums[2 * r + 1], &a, &b);
                if (low == LANES) store(y, a);
                else put(y, a, low, full);
                if (high == LANES) store(y + LANES, b);
                else if (high > 0) put(y + LANES, b, high, full);
            }
            y += v.count;
        }
        if (j + SPREAD_ROWS == v.j1) break;
    }
}

#define SPREAD_LINES(K)                                                                         \
    static void spread_lines_##K(const line_view *v)                                            \
    {                                                                                           \
        vec w[WIDEST * WIDEST];                                                                 \
        ptrdiff_t p = LANES;                                                                    \
        for (int t = 0; t < K * K; t++) w[t] = broadcast(v->w[t]);                              \
        if (v->width <= LANES) {                                                                \
            spread_lines(K, 1, 1, v, 0, w);                                                     \
            return;                                                                             \
        }                                                                                       \
        spread_lines(K, 1, 0, v, 0, w);                                                         \
        for (; p + LANES < v->width; p += LANES) spread_lines(K, 0, 0, v, p, w);                \
        spread_lines(K, 0, 1, v, v->width - LANES, w);                                          \
    }
SPREAD_LINES(3) SPREAD_LINES(5)

/* One channel's rows v->j0 to v->j1. */
static void depthwise_lines(const convcore_direct *d, const line_view *v, vec bias,
                            const convcore_epilogue *e)
{
    switch (d->specialisation) {
    case 31: sum_lines_3_1(d, v, bias, e); break;
    case 32: sum_lines_3_2(d, v, bias, e); break;
    case 51: sum_lines_5_1(d, v, bias, e); break;
    case 52: sum_lines_5_2(d, v, bias, e); break;
    case 71: sum_lines_7_1(d, v, bias, e); break;
    case -32: spread_lines_3(v); break;
    case -52: spread_lines_5(v); break;
    }
}

/* ---- the weight gradient ---- */

/* What the loops over one channel see. */
typedef struct {
    const float *plane;
    ptrdiff_t height;
    ptrdiff_t width;
    ptrdiff_t low;
    const float *end;
    const float *g;              /* the channel's gradients */
    const float *g_end;
    ptrdiff_t j0;
    ptrdiff_t j1;
    ptrdiff_t count;
    float *sums;                 /* (taps, LANES) */
} grad_line_view;

/* sums += products of R rows of gradients from j on with the lines under them, in one column of
 * vectors. */
INLINE void add_line_rows(const int K, const int S, const int R, const int first, const int final,
                          const grad_line_view *v, ptrdiff_t j, ptrdiff_t p, vec *sums)
{
    const ptrdiff_t lanes = v->count - p;
    ptrdiff_t row = j * S + v->low;
    vec g[MOST_ROWS];
    UNROLLED for (int r = 0; r < R; r++) {
        const float *at = v->g + (j + r) * v->count + p;
        g[r] = final ? load_window(at, lanes, v->g_end) : load(at);
    }
    UNROLLED for (int i = 0; i < (R - 1) * S + K; i++, row++) {
        if (row >= 0 && row < v->height) {
            vec t[WIDEST];
            line_taps(K, S, first, final, v->plane + row * v->width, p, v->width, v->end, t);
            /* Zero times what lies beyond the row could be NaN; the other taps are zeros there. */
            if (final) UNROLLED for (int k = 0; k < K / 2; k++) t[k] = first_lanes(t[k], lanes);
            UNROLLED for (int r = 0; r < R; r++)
                if (i >= r * S && i < r * S + K)
                    UNROLLED for (int k = 0; k < K; k++)
                        sums[(i - r * S) * K + k] += t[k] * g[r];
        }
    }
}

INLINE void add_lines(const int K, const int S, const int R, const int first, const int final,
                      const grad_line_view *given, ptrdiff_t p)
{
    const grad_line_view v = *given;
    ptrdiff_t j = v.j0;
    vec sums[WIDEST * WIDEST];
    UNROLLED for (int t = 0; t < K * K; t++) sums[t] = load(v.sums + t * LANES);
    for (; j + R <= v.j1; j += R) add_line_rows(K, S, R, first, final, &v, j, p, sums);
    if (R > 1)
        for (; j < v.j1; j++) add_line_rows(K, S, 1, first, final, &v, j, p, sums);
    UNROLLED for (int t = 0; t < K * K; t++) store(v.sums + t * LANES, sums[t]);
}

/* All vectors of gradients of some rows. */
INLINE void add_plane(const int K, const int S, const int R, const grad_line_view *v)
{
    ptrdiff_t p = LANES;
    if (v->count <= LANES) {
        add_lines(K, S, R, 1, 1, v, 0);
        return;
    }
    add_lines(K, S, R, 1, 0, v, 0);
    for (; p + LANES < v->count; p += LANES) add_lines(K, S, R, 0, 0, v, p);
    add_lines(K, S, R, 0, 1, v, p);
}

#define PAIR_OF_ROWS (REGISTERS == 32 ? 2 : 1)
#define ADD_LINES(K, S)                                                          \
    static void add_lines_##K##_##S(const grad_line_view *v)                     \
    {                                                                            \
        if (K == 3 && S == 1 && REGISTERS == 32 && (v->j1 - v->j0) % MOST_ROWS == 0)       \
            add_plane(K, S, MOST_ROWS, v);                                       \
        else                                                                     \
            add_plane(K, S, K == 3 ? 2 * PAIR_OF_ROWS : PAIR_OF_ROWS, v);                \
    }
ADD_LINES(3, 1) ADD_LINES(3, 2) ADD_LINES(5, 1) ADD_LINES(5, 2)

static void depthwise_grad_lines(const convcore_direct *d, const grad_line_view *v)
{
    switch (d->specialisation) {
    case 31: add_lines_3_1(v); break;
    case 32: add_lines_3_2(v); break;
    case 51: add_lines_5_1(v); break;
    case 52: add_lines_5_2(v); break;
    }
}

#endif
