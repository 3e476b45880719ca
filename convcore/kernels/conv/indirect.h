/* Convolution by products whose rows are pointers to the input: no patch is copied.
 *
 * The microkernels are those of a matrix product, but a row of patches is not one run of memory: it
 * is a list of pointers, one a tap, to the channels of the pixel under that tap.  Strides, dilations
 * and lines that end cost nothing; a tap in the padding points to zeros.
 *
 * M. Dukhan, The indirect convolution algorithm (2019), arXiv 1907.02129, for the pointers.
 */
#ifndef CONVCORE_INDIRECT_H
#define CONVCORE_INDIRECT_H

#include <math.h>

#include "epilogue.h"
#include "packed_gemm.h"

/* Rows at a time where a panel has fewer than WIDTH vectors, and so leaves registers for more. */
#define TALL(W) (REGISTERS == 32 && (W) == 3 ? 8 : 12)
#define TALLEST 12

/* Do PANEL_OF(W) with the constant W that is `vectors`, at most WIDTH. */
#if WIDTH == 4
#define WIDE_PANELS case 4: PANEL_OF(4); break; case 3: PANEL_OF(3); break;
#else
#define WIDE_PANELS
#endif
#define SWITCH_PANEL(vectors)                                                                 \
    switch (min_of(vectors, WIDTH)) {                                                         \
    WIDE_PANELS case 2: PANEL_OF(2); break;                                                   \
    default: PANEL_OF(1);                                                                     \
    }

/* ---- outputs: pixels by output channels ---- */

/* The epilogue of a tile of sums while they are in registers, if it is a bias and bounds. */
INLINE void finish_sums(const int R, const int W, vec sums[TALLEST][WIDTH], ptrdiff_t some,
                        ptrdiff_t column, const convcore_epilogue *e)
{
    const int clamped = e->kind == CONVCORE_CLAMP;
    vec low = broadcast(clamped ? e->low : -INFINITY), high = broadcast(clamped ? e->high : INFINITY);
    UNROLLED for (int j = 0; j < W; j++) {
        vec bias = {0};
        if (e->bias) {
            const float *b = e->bias + column + j * LANES;
            bias = j == W - 1 ? load_up_to(b, some) : load(b);
        }
        UNROLLED for (int i = 0; i < R; i++) {
            vec y = sums[i][j] + bias;
            y = PICK(y < low, low, y);
            sums[i][j] = PICK(y > high, high, y);
        }
    }
}

/* Any epilogue of rows of n channels, from `column` on. */
static void finish_pixels(ptrdiff_t rows, ptrdiff_t n, float *const *out, ptrdiff_t column,
                        const convcore_epilogue *e)
{
    for (ptrdiff_t j = 0; j < n; j += LANES) {
        ptrdiff_t some = min_of(n - j, LANES);
        vec bias = e->bias ? load_up_to(e->bias + column + j, some) : (vec){0};
        for (ptrdiff_t i = 0; i < rows; i++) {
            float *y = out[i] + column + j;
            store_up_to(y, activated(load_up_to(y, some) + bias, e), some);
        }
    }
}

/* Products that are added one after another; longer sums are sums of such chains.  The rounding error
 * of a chain grows with the root of its length where all products have one sign: without an end to
 * it 4,608 products were off by 33 eps of float32, now all sums are by less than 12
 * (tests/engine/conv/algorithms/test_indirect.py).  Half as long a chain cost 3 % of the speed, this
 * one nothing. */
enum { LONGEST_CHAIN = 512 };

/* out (R, n) = or += sums (R, W vectors); without more to come, sums is that. */
INLINE void add_to_output(const int R, const int W, vec sums[TALLEST][WIDTH], ptrdiff_t some,
                          float *const *out, ptrdiff_t column, int add, int more)
{
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < W; j++) {
            float *y = out[i] + column + j * LANES;
            if (add) sums[i][j] += j == W - 1 ? load_up_to(y, some) : load(y);
            if (!more) continue;
            if (j == W - 1)
                store_up_to(y, sums[i][j], some);
            else
                store(y, sums[i][j]);
            sums[i][j] = (vec){0};
        }
}

/* out (R, n) = or += patches (R, taps * k) @ b (taps * k, W vectors); R and W are constants.
 * The totals of chains wait in the output: beside the sums there are no registers for them. */
INLINE void indirect_tile(const int R, const int W, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t k,
                          const float *const *rows, ptrdiff_t pitch, ptrdiff_t first,
                          const float *b, float *const *out, ptrdiff_t column, int add,
                          const convcore_epilogue *e)
{
    const ptrdiff_t some = n - (W - 1) * LANES;
    ptrdiff_t left = LONGEST_CHAIN;
    vec sums[TALLEST][WIDTH];
    UNROLLED for (int i = 0; i < R; i++) UNROLLED for (int j = 0; j < W; j++) sums[i][j] = (vec){0};
    for (ptrdiff_t t = 0; t < taps; t++, rows += pitch) {
        const float *a[TALLEST];
        UNROLLED for (int i = 0; i < R; i++) a[i] = rows[i] + first;
        for (ptrdiff_t l = 0; l < k;) {
            ptrdiff_t end = min_of(k, l + left);
            left -= end - l;
            for (; l < end; l++, b += W * LANES) {
                vec right[WIDTH];
                UNROLLED for (int j = 0; j < W; j++) right[j] = load(b + j * LANES);
                UNROLLED for (int i = 0; i < R; i++) {
                    vec each = broadcast(a[i][l]);
                    UNROLLED for (int j = 0; j < W; j++) sums[i][j] += each * right[j];
                }
            }
            if (!left) {
                add_to_output(R, W, sums, some, out, column, add, 1);
                left = LONGEST_CHAIN;
                add = 1;
            }
        }
    }
    add_to_output(R, W, sums, some, out, column, add, 0);
    if (e) finish_sums(R, W, sums, some, column, e);
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < W; j++) {
            float *y = out[i] + column + j * LANES;
            if (j == W - 1)
                store_up_to(y, sums[i][j], some);
            else
                store(y, sums[i][j]);
        }
}

#define TILE(R) \
    indirect_tile(R, W, n, taps, k, rows + i, pitch, first, b, out + i, column, add, early)

/* The same of m rows. */
INLINE void indirect_panel(const int W, ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t k,
                           const float *const *rows, ptrdiff_t pitch, ptrdiff_t first,
                           const float *b, float *const *out, ptrdiff_t column, int add,
                           const convcore_epilogue *e)
{
    const int leaky = e && e->kind == CONVCORE_LEAKY;
    const convcore_epilogue *early = leaky ? NULL : e;
    ptrdiff_t i = 0;
    if (W < WIDTH)
        for (; m - i >= TALL(W); i += TALL(W)) {
            TILE(TALL(W));
            if (leaky) finish_pixels(TALL(W), n, out + i, column, e);
        }
    for (; i < m; i += ROWS) {
        SWITCH_ROWS(min_of(m - i, ROWS), TILE)
        if (leaky) finish_pixels(min_of(m - i, ROWS), n, out + i, column, e);
    }
}

#undef TILE

#define PANEL_OF(W)                                                                            \
    indirect_panel(W, m, min_of(n - j, W * LANES), taps, k, rows, pitch, first, b, out,        \
                   column + j, add, e)

/* out[i][column + j] = or += sum over t and l of rows[t * pitch + i][first + l] * b[t, l, j], for
 * m rows and n columns.  b: panels of PANEL columns, `panel` floats from one to the next, each
 * (taps, k, PANEL); the last may have fewer whole vectors.  With `e`, the epilogue follows. */
static void indirect_product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t k,
                             const float *const *rows, ptrdiff_t pitch, ptrdiff_t first,
                             const float *b, ptrdiff_t panel, float *const *out,
                             ptrdiff_t column, int add, const convcore_epilogue *e)
{
    for (ptrdiff_t j = 0; j < n; j += PANEL, b += panel)
        SWITCH_PANEL((n - j + LANES - 1) / LANES)
}

#undef PANEL_OF

/* ---- weight gradients: output channels by input channels ---- */

/* c (R, W vectors) = or += a^T (R, k) @ rows (k, W vectors); R and W are constants. */
INLINE void gradient_tile(const int R, const int W, ptrdiff_t k, const float *a, ptrdiff_t step,
                          const float *const *rows, ptrdiff_t first, float *c, ptrdiff_t c_row,
                          int add)
{
    vec sums[TALLEST][WIDTH];
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < W; j++)
            sums[i][j] = (vec){0};
    for (ptrdiff_t l = 0; l < k; l++, a += step) {
        const float *b = rows[l] + first;
        vec right[WIDTH];
        UNROLLED for (int j = 0; j < W; j++) right[j] = load(b + j * LANES);
        UNROLLED for (int i = 0; i < R; i++) {
            vec left = broadcast(a[i]);
            UNROLLED for (int j = 0; j < W; j++) sums[i][j] += left * right[j];
        }
    }
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < W; j++) {
            float *to = c + i * c_row + j * LANES;
            store(to, add ? load(to) + sums[i][j] : sums[i][j]);
        }
}

#define TILE(R) gradient_tile(R, W, k, a + i, step, rows, first, c + i * c_row, c_row, add)

INLINE void gradient_panel(const int W, ptrdiff_t m, ptrdiff_t k, const float *a, ptrdiff_t step,
                           const float *const *rows, ptrdiff_t first, float *c, ptrdiff_t c_row,
                           int add)
{
    ptrdiff_t i = 0;
    if (W < WIDTH)
        for (; m - i >= TALL(W); i += TALL(W)) TILE(TALL(W));
    for (; i < m; i += ROWS)
        SWITCH_ROWS(min_of(m - i, ROWS), TILE)
}

#undef TILE

#define PANEL_OF(W) gradient_panel(W, m, k, a, step, rows, first + j, c + j, c_row, add)

/* c[i * c_row + j] = or += sum over l of a[l * step + i] * rows[l][first + j], for m rows and n
 * columns, whole vectors. */
static void indirect_gradient(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a,
                              ptrdiff_t step, const float *const *rows, ptrdiff_t first, float *c,
                              ptrdiff_t c_row, int add)
{
    for (ptrdiff_t j = 0; j < n; j += PANEL)
        SWITCH_PANEL((n - j) / LANES)
}

#undef PANEL_OF

/* ---- from planes to rows of channels, and back ---- */

/* `count` floats, and then whatever, or zeros where that would read from `end` on. */
INLINE vec load_within(const float *p, ptrdiff_t count, const float *end)
{
    return end - p >= LANES ? load(p) : load_up_to(p, count);
}

/* Every second of 2 * LANES - 1 floats. */
INLINE vec second_lanes(vec low, vec high)
{
#if LANES > 1
#define SECOND_LANE(half, l) (2 * (l) < LANES ? 2 * (l) : 2 * (l) + 1)
    return CHOOSE(low, high, SECOND_LANE, 0);
#undef SECOND_LANE
#else
    (void)high;
    return low;
#endif
}

/* `count` floats that are `step` apart, at most a vector's, and then whatever. */
INLINE vec load_stepped(const float *p, ptrdiff_t step, ptrdiff_t count, const float *end)
{
    if (step == 1) return load_within(p, count, end);
    if (step == 2) {
        ptrdiff_t all = 2 * count - 1, high = all - (LANES - 1);
        vec low = load_within(p, min_of(all, LANES), end);
        if (high <= 0) return second_lanes(low, low);
        return second_lanes(low, load_within(p + LANES - 1, high, end));
    }
    ALIGNED float v[LANES] = {0};
    for (ptrdiff_t i = 0; i < count; i++) v[i] = p[i * step];
    return load(v);
}

/* Turn `lanes` channels of `count` pixels, at most a vector's of both, into rows; zeros fill up. */
INLINE void turn_to_rows(const float *x, ptrdiff_t channel, ptrdiff_t lanes, ptrdiff_t step,
                         ptrdiff_t count, const float *end, float *out, ptrdiff_t row)
{
    vec v[LANES];
    if (lanes >= LANES && count == LANES && step == 1) {
        UNROLLED for (int l = 0; l < LANES; l++) v[l] = load(x + l * channel);
    } else {
        for (int l = 0; l < LANES; l++)
            v[l] = l < lanes ? load_stepped(x + l * channel, step, count, end) : (vec){0};
    }
    transpose(v);
    if (count == LANES)
        UNROLLED for (int i = 0; i < LANES; i++) store(out + i * row, v[i]);
    else
        for (ptrdiff_t i = 0; i < count; i++) store(out + i * row, v[i]);
}

/* out[(j * count + i) * row + c] = x[j * line + i * step + c * channel] for `lines` lines of `count`
 * pixels, channels filled up with zeros to whole vectors.  Reads before `end` only. */
static void nhwc_of_nchw(const float *x, ptrdiff_t channel, ptrdiff_t channels, ptrdiff_t step,
                           ptrdiff_t count, ptrdiff_t line, ptrdiff_t lines, const float *end,
                           float *out, ptrdiff_t row)
{
    /* A few planes at a time, so that each is read in order. */
    for (ptrdiff_t c = 0; c < channels; c += LANES)
        for (ptrdiff_t j = 0; j < lines; j++) {
            const float *from = x + j * line + c * channel;
            float *to = out + j * count * row + c;
            if (channel == 1) {
                for (ptrdiff_t i = 0; i < count; i++)
                    store(to + i * row, load_up_to(from + i * step, channels - c));
                continue;
            }
            for (ptrdiff_t i = 0; i < count; i += LANES) {
                /* Where there are enough, the last pixels overlap those before: a whole vector. */
                if (count > LANES && i > count - LANES) i = count - LANES;
                turn_to_rows(from + i * step, channel, channels - c, step,
                             min_of(count - i, LANES), end, to + i * row, row);
            }
        }
}

/* y[i + c * channel] = rows[i * row + c] for `count` pixels; rows of whole vectors. */
static void nchw_of_nhwc(const float *rows, ptrdiff_t row, ptrdiff_t count, float *y,
                           ptrdiff_t channel, ptrdiff_t channels)
{
    for (ptrdiff_t c = 0; c < channels; c += LANES)
        for (ptrdiff_t i = 0; i < count; i += LANES) {
            if (count > LANES && i > count - LANES) i = count - LANES;
            vec v[LANES];
            const float *from = rows + i * row + c;
            float *to = y + i + c * channel;
            if (count - i >= LANES)
                UNROLLED for (int k = 0; k < LANES; k++) v[k] = load(from + k * row);
            else
                for (int k = 0; k < LANES; k++)
                    v[k] = k < count - i ? load(from + k * row) : (vec){0};
            transpose(v);
            if (count - i >= LANES && channels - c >= LANES)
                UNROLLED for (int k = 0; k < LANES; k++) store(to + k * channel, v[k]);
            else
                for (ptrdiff_t k = 0; k < LANES && k < channels - c; k++)
                    store_up_to(to + k * channel, v[k], min_of(count - i, LANES));
        }
}

/* Floats from what is turned to what is asked for: lanes lie pages apart. */
enum { AHEAD = 64 };

/* out[i][l] = w[l * lane + i] for `count` rows of `lanes` floats, filled up with zeros to whole
 * vectors.  Reads before `end` only. */
static void rows_of_lanes(const float *w, const float *end, ptrdiff_t lane, ptrdiff_t lanes,
                          ptrdiff_t count, float *const *out)
{
    for (ptrdiff_t l = 0; l < lanes; l += LANES)
        for (ptrdiff_t i = 0; i < count; i += LANES) {
            vec v[LANES];
            const float *from = w + l * lane + i;
            for (int k = 0; k < LANES; k++, from += lane) {
                PREFETCH(from + AHEAD);
                v[k] = k >= lanes - l        ? (vec){0}
                       : end - from >= LANES ? load(from)
                                             : load_first(from, end - from);
            }
            transpose(v);
            for (ptrdiff_t k = 0; k < LANES && k < count - i; k++) store(out[i + k] + l, v[k]);
        }
}

#endif
