/* Depthwise convolutions by pixels: channels_last memory, vectors of neighbouring channels.
 *
 * For K x K kernels whose taps touch, of stride 1 or 2, with any padding; other forms go through
 * halos (depthwise.c).  Channels are the inner loop, so that memory is walked in its own order.
 * Channels are cut into blocks of LANES, the last of which ends with the channels and may begin
 * within the block before.
 */
#ifndef CONVCORE_DEPTHWISE_PIXELS_H
#define CONVCORE_DEPTHWISE_PIXELS_H

#include "depthwise_nchw.h"
#include "runtime/bfloat16_memory.h"

/* The channel with which a block begins. */
INLINE ptrdiff_t block_channel(ptrdiff_t channels, ptrdiff_t block)
{
    return max_of(0, min_of(block * LANES, channels - LANES));
}

/* Whether a map can be made by pixels. */
static int is_by_pixels(const convcore_direct *d)
{
    return d->specialisation && d->channels >= LANES;
}

/* What the loops over one image see. */
typedef struct {
    const float *x;              /* the array that is read; maybe of bfloat16, as y then is */
    ptrdiff_t height;
    ptrdiff_t width;
    ptrdiff_t row_low;           /* the first row and column under output 0 */
    ptrdiff_t column_low;
    ptrdiff_t channels;
    ptrdiff_t b0;                /* blocks of channels */
    ptrdiff_t b1;
    const float *w;              /* (blocks, taps, LANES) */
    float *y;
    ptrdiff_t rows;              /* of outputs */
    ptrdiff_t columns;
    ptrdiff_t j0;                /* rows that are made now */
    ptrdiff_t j1;
} pixel_view;

/* The outputs of a row all of whose taps lie on the input: first to last, and one past it. */
INLINE run whole_pixels(ptrdiff_t K, ptrdiff_t S, ptrdiff_t low, ptrdiff_t width, ptrdiff_t columns)
{
    run whole = {min_of(columns, max_of(0, (S - 1 - low) / S)), 0, 0};
    ptrdiff_t stop = width - K - low < 0 ? 0 : (width - K - low) / S + 1;
    whole.count = max_of(0, min_of(columns, stop) - whole.first);
    return whole;
}

/* ---- forward, and the input gradient of stride 1 ---- */

/* R rows of the output at column p; its taps k0 to k1 of a row lie on the input: all, if `whole`. */
INLINE void sum_pixel(const int K, const int S, const int R, const int narrow, const int whole,
                      const pixel_view *v, ptrdiff_t j, ptrdiff_t p, const convcore_epilogue *e)
{
    const ptrdiff_t C = v->channels, line_step = v->width * C, row = j * S + v->row_low;
    const ptrdiff_t column = p * S + v->column_low;
    const ptrdiff_t k0 = whole ? 0 : min_of(K, max_of(0, -column));
    const ptrdiff_t k1 = whole ? K : max_of(k0, min_of(K, v->width - column));
    const ptrdiff_t y_row = v->columns * C;
    const ptrdiff_t x = row * line_step + column * C, y = (j * v->columns + p) * C;
    const float *w = v->w + v->b0 * K * K * LANES;
    for (ptrdiff_t b = v->b0; b < v->b1; b++, w += K * K * LANES) {
        const ptrdiff_t c = block_channel(C, b);
        ptrdiff_t line = x + c;
        vec sums[SUMMED_ROWS], bias = e->bias ? load(e->bias + c) : (vec){0};
        vec weights[WIDEST * WIDEST];
        UNROLLED for (int t = 0; t < K * K; t++) {
            weights[t] = load(w + t * LANES);
            if (K == 3) KEEP(weights[t]);
        }
        UNROLLED for (int r = 0; r < R; r++) sums[r] = bias;
        UNROLLED for (int i = 0; i < (R - 1) * S + K; i++) {
            if (row + i >= 0 && row + i < v->height) {
                if (whole) {
                    UNROLLED for (int k = 0; k < K; k++) {
                        vec t = load_elements(narrow, v->x, line + k * C, LANES);
                        KEEP(t);
                        UNROLLED for (int r = 0; r < R; r++)
                            if (i >= r * S && i < r * S + K)
                                sums[r] += t * weights[(i - r * S) * K + k];
                    }
                } else {
                    for (ptrdiff_t k = k0; k < k1; k++) {
                        vec t = load_elements(narrow, v->x, line + k * C, LANES);
                        UNROLLED for (int r = 0; r < R; r++)
                            if (i >= r * S && i < r * S + K)
                                sums[r] += t * load(w + ((i - r * S) * K + k) * LANES);
                    }
                }
            }
            line += line_step;
        }
        finish_rows(R, sums, e);
        UNROLLED for (int r = 0; r < R; r++)
            store_elements(narrow, v->y, y + r * y_row + c, sums[r], LANES);
    }
}

/* All pixels of R rows from j on. */
INLINE void sum_pixel_rows(const int K, const int S, const int R, const int narrow,
                           const pixel_view *v, ptrdiff_t j, const convcore_epilogue *e)
{
    const run whole = whole_pixels(K, S, v->column_low, v->width, v->columns);
    ptrdiff_t p = 0;
    for (; p < whole.first; p++) sum_pixel(K, S, R, narrow, 0, v, j, p, e);
    for (; p < whole.first + whole.count; p++)
        sum_pixel(K, S, R, narrow, 1, v, j, p, e);
    for (; p < v->columns; p++) sum_pixel(K, S, R, narrow, 0, v, j, p, e);
}

#define SUM_PIXELS(name, K, S, narrow)                                                      \
    static void name(const pixel_view *given, const convcore_epilogue *e)                   \
    {                                                                                       \
        const pixel_view v = *given;                                                        \
        const convcore_epilogue own = *e;                                                   \
        ptrdiff_t j = v.j0;                                                                 \
        for (; j + SUMMED_ROWS <= v.j1; j += SUMMED_ROWS)                                   \
            sum_pixel_rows(K, S, SUMMED_ROWS, narrow, &v, j, &own);                         \
        for (; j < v.j1; j++) sum_pixel_rows(K, S, 1, narrow, &v, j, &own);                 \
    }
SUM_PIXELS(sum_pixels_3_1, 3, 1, 0)
SUM_PIXELS(sum_pixels_3_2, 3, 2, 0)
SUM_PIXELS(sum_pixels_5_1, 5, 1, 0)
SUM_PIXELS(sum_pixels_5_2, 5, 2, 0)
SUM_PIXELS(sum_pixels_7_1, 7, 1, 0)
SUM_PIXELS(sum_bfloat16_3_1, 3, 1, 1)
SUM_PIXELS(sum_bfloat16_3_2, 3, 2, 1)
SUM_PIXELS(sum_bfloat16_5_1, 5, 1, 1)
SUM_PIXELS(sum_bfloat16_5_2, 5, 2, 1)
SUM_PIXELS(sum_bfloat16_7_1, 7, 1, 1)

/* ---- the input gradient of stride 2 ---- */

/* The inputs' gradients beside R outputs' of column p: even and odd rows and columns.  Weights are
 * rotated by half a turn. */
INLINE void spread_pixel(const int K, const pixel_view *v, ptrdiff_t j, ptrdiff_t p)
{
    const ptrdiff_t C = v->channels, line_step = v->width * C, y_row = v->columns * C;
    const float *x = v->x + (j - 1) * line_step + p * C;
    float *y = v->y + (2 * j * v->columns + 2 * p) * C;
    const float *w = v->w + v->b0 * K * K * LANES;
    for (ptrdiff_t b = v->b0; b < v->b1; b++, w += K * K * LANES) {
        const ptrdiff_t c = block_channel(C, b);
        const float *line = x + c;
        vec sums[4 * SPREAD_ROWS];
        UNROLLED for (int i = 0; i < 4 * SPREAD_ROWS; i++) sums[i] = (vec){0};
        UNROLLED for (int o = -1; o <= SPREAD_ROWS; o++, line += line_step) {
            if (!((K > 3 || o >= 0) && j + o >= 0 && j + o < v->height)) continue;
            vec t[3];
            t[0] = K > 3 && p > 0 ? load(line - C) : (vec){0};
            t[1] = p < v->width ? load(line) : (vec){0};
            t[2] = p + 1 < v->width ? load(line + C) : (vec){0};
            UNROLLED for (int r = 0; r < SPREAD_ROWS; r++)
                UNROLLED for (int a = 0; a < 4; a++)
                    UNROLLED for (int q = -1; q <= 1; q++) {
                        const int i = a / 2 + K / 2 - 2 * (o - r), k = a % 2 + K / 2 - 2 * q;
                        if (i >= 0 && i < K && k >= 0 && k < K)
                            sums[4 * r + a] += t[q + 1] * load(w + (K * K - 1 - i * K - k) * LANES);
                    }
        }
        UNROLLED for (int r = 0; r < 2 * SPREAD_ROWS; r++)
            if (2 * j + r < v->rows && 2 * j + r < 2 * v->j1) {
                store(y + r * y_row + c, sums[2 * r]);
                if (2 * p + 1 < v->columns) store(y + r * y_row + C + c, sums[2 * r + 1]);
            }
    }
}

#define SPREAD_PIXELS(K)                                                        \
    static void spread_pixels_##K(const pixel_view *given)                      \
    {                                                                           \
        const pixel_view v = *given;                                            \
        for (ptrdiff_t j = v.j0; j < v.j1; j += SPREAD_ROWS)                    \
            for (ptrdiff_t p = 0; 2 * p < v.columns; p++) spread_pixel(K, &v, j, p); \
    }
SPREAD_PIXELS(3) SPREAD_PIXELS(5)

static void depthwise_pixels(const convcore_direct *d, const pixel_view *v,
                             const convcore_epilogue *e)
{
    switch (d->specialisation) {
    case 31: (d->narrow ? sum_bfloat16_3_1 : sum_pixels_3_1)(v, e); break;
    case 32: (d->narrow ? sum_bfloat16_3_2 : sum_pixels_3_2)(v, e); break;
    case 51: (d->narrow ? sum_bfloat16_5_1 : sum_pixels_5_1)(v, e); break;
    case 52: (d->narrow ? sum_bfloat16_5_2 : sum_pixels_5_2)(v, e); break;
    case 71: (d->narrow ? sum_bfloat16_7_1 : sum_pixels_7_1)(v, e); break;
    case -32: spread_pixels_3(v); break;
    case -52: spread_pixels_5(v); break;
    }
}

/* ---- the weight gradient ---- */

/* Pixels of a row whose gradients are loaded at a time. */
#define GRAD_PIXELS 4

typedef struct {
    const float *x;
    ptrdiff_t height;
    ptrdiff_t width;
    ptrdiff_t row_low;
    ptrdiff_t column_low;
    ptrdiff_t channels;
    ptrdiff_t b0;
    ptrdiff_t b1;
    const float *g;
    ptrdiff_t columns;
    ptrdiff_t j0;
    ptrdiff_t j1;
    float *sums;                 /* (blocks, taps, LANES) from b0 on */
    ptrdiff_t sums_block;        /* floats from a block's to the next's */
} grad_pixel_view;

/* Products of R rows of T outputs' gradients, the first at (j, p), with the inputs under them; of a
 * row of the kernel taps k0 to k1: all, if `whole`. */
INLINE void add_pixels(const int K, const int S, const int R, const int T, const int whole,
                       const grad_pixel_view *v, ptrdiff_t j, ptrdiff_t p)
{
    const ptrdiff_t C = v->channels, line_step = v->width * C, row = j * S + v->row_low;
    const ptrdiff_t column = p * S + v->column_low, g_row = v->columns * C;
    const ptrdiff_t k0 = whole ? 0 : min_of(K, max_of(0, -column));
    const ptrdiff_t k1 = whole ? K : max_of(k0, min_of(K, v->width - column));
    const float *x = v->x + row * line_step + column * C, *g = v->g + (j * v->columns + p) * C;
    float *to = v->sums;
    for (ptrdiff_t b = v->b0; b < v->b1; b++, to += v->sums_block) {
        const ptrdiff_t c = block_channel(C, b);
        const float *line = x + c;
        vec own[2 * GRAD_PIXELS], sums[WIDEST * WIDEST];
        UNROLLED for (int r = 0; r < R; r++)
            UNROLLED for (int q = 0; q < T; q++) own[r * T + q] = load(g + r * g_row + q * C + c);
        if (whole && R > 1) UNROLLED for (int t = 0; t < K * K; t++) sums[t] = load(to + t * LANES);
        UNROLLED for (int i = 0; i < (R - 1) * S + K; i++, line += line_step) {
            if (row + i < 0 || row + i >= v->height) continue;
            if (!whole) {
                for (ptrdiff_t k = k0; k < k1; k++)
                    store(to + (i * K + k) * LANES,
                          load(to + (i * K + k) * LANES) + own[0] * load(line + k * C));
                continue;
            }
            if (R == 1)
                UNROLLED for (int k = 0; k < K; k++)
                    sums[i * K + k] = load(to + (i * K + k) * LANES);
            UNROLLED for (int q = 0; q < (T - 1) * S + K; q++) {
                vec t = load(line + q * C);
                KEEP(t);
                UNROLLED for (int r = 0; r < R; r++)
                    UNROLLED for (int o = 0; o < T; o++)
                        if (i >= r * S && i < r * S + K && q >= o * S && q < o * S + K)
                            sums[(i - r * S) * K + q - o * S] += t * own[r * T + o];
            }
            if (R == 1)
                UNROLLED for (int k = 0; k < K; k++)
                    store(to + (i * K + k) * LANES, sums[i * K + k]);
        }
        if (whole && R > 1) UNROLLED for (int t = 0; t < K * K; t++) store(to + t * LANES, sums[t]);
    }
}

INLINE void add_pixel_rows(const int K, const int S, const int R, const grad_pixel_view *v,
                           ptrdiff_t j)
{
    const run whole = whole_pixels(K, S, v->column_low, v->width, v->columns);
    const ptrdiff_t stop = whole.first + whole.count;
    ptrdiff_t p = whole.first;
    for (; p + GRAD_PIXELS <= stop; p += GRAD_PIXELS) add_pixels(K, S, R, GRAD_PIXELS, 1, v, j, p);
    for (; p < stop; p++) add_pixels(K, S, R, 1, 1, v, j, p);
    for (int r = 0; r < R; r++) {
        for (p = 0; p < whole.first; p++) add_pixels(K, S, 1, 1, 0, v, j + r, p);
        for (p = stop; p < v->columns; p++) add_pixels(K, S, 1, 1, 0, v, j + r, p);
    }
}

#define ADD_PIXELS(K, S, R)                                                             \
    static void add_pixels_##K##_##S(const grad_pixel_view *given)                      \
    {                                                                                   \
        const grad_pixel_view v = *given;                                               \
        ptrdiff_t j = v.j0;                                                             \
        for (; j + R <= v.j1; j += R) add_pixel_rows(K, S, R, &v, j);                   \
        if (R > 1)                                                                      \
            for (; j < v.j1; j++) add_pixel_rows(K, S, 1, &v, j);                       \
    }
ADD_PIXELS(3, 1, PAIR_OF_ROWS) ADD_PIXELS(3, 2, PAIR_OF_ROWS) ADD_PIXELS(5, 1, 1) ADD_PIXELS(5, 2, 1)

static void depthwise_grad_pixels(const convcore_direct *d, const grad_pixel_view *v)
{
    switch (d->specialisation) {
    case 31: add_pixels_3_1(v); break;
    case 32: add_pixels_3_2(v); break;
    case 51: add_pixels_5_1(v); break;
    case 52: add_pixels_5_2(v); break;
    }
}

#endif
