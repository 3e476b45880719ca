/* Convolution by products whose rows are pointers to the input: no patch is copied.
 *
 * The microkernels are those of a matrix product, but a row of patches is not one run of memory: it
 * is a list of pointers, one a tap, to the channels of the pixel under that tap.  Strides, dilations
 * and lines that end cost nothing; a tap in the padding points to zeros.
 *
 * M. Dukhan, The indirect convolution algorithm (2019), arXiv 1907.02129, for the pointers.
 */
#include <math.h>

#include "conv/epilogue.h"
#include "conv/packed_gemm.h"
#include "indirect.h"
#include "nhwc_rows.h"

/* Rows at a time where a panel has fewer than WIDTH vectors, and so leaves registers for more. */
#define TALL(W) (REGISTERS == 32 && (W) == 3 ? 8 : 12)
#define TALLEST CONVCORE_TALLEST

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

/* Terms of a tap from which it pays to look whether all rows of a tile are padding under it. */
enum { LEAST_SKIPPED = 32 };

/* Whether all rows of a tile are `zeros`; never where these are NULL. */
INLINE int are_zeros(const int R, const float *const *rows, const float *zeros)
{
    int zero = zeros != NULL;
    UNROLLED for (int i = 0; i < R; i++) zero &= rows[i] == zeros;
    return zero;
}

/* out (R, n) = or += patches (R, taps * k) @ b (taps * k, W vectors); R and W are constants.
 * The totals of chains wait in the output: beside the sums there are no registers for them. */
INLINE void indirect_tile(const int R, const int W, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t k,
                          const float *const *rows, ptrdiff_t pitch, const float *zeros,
                          ptrdiff_t first, const float *b, float *const *out, ptrdiff_t column,
                          int add, const convcore_epilogue *e, panel_ahead *ahead)
{
    const ptrdiff_t some = n - (W - 1) * LANES;
    ptrdiff_t left = LONGEST_CHAIN, lines = ahead->lines;
    vec sums[TALLEST][WIDTH];
    UNROLLED for (int i = 0; i < R; i++) UNROLLED for (int j = 0; j < W; j++) sums[i][j] = (vec){0};
    for (ptrdiff_t t = 0; t < taps; t++, rows += pitch) {
        if (are_zeros(R, rows, zeros)) {
            b += k * W * LANES;
            continue;
        }
        const float *a[TALLEST];
        UNROLLED for (int i = 0; i < R; i++) a[i] = rows[i] + first;
        for (ptrdiff_t l = 0; l < k;) {
            ptrdiff_t end = min_of(k, l + left);
            left -= end - l;
            for (; l < end; l++, b += W * LANES) {
                vec right[WIDTH];
                UNROLLED for (int j = 0; j < W; j++) right[j] = load(b + j * LANES);
                if (R < TALLEST) ask_ahead(ahead, &lines);
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

/* Sums that are added to, from bfloat16, before a tile is made. */
static NOINLINE void widen_pixels(ptrdiff_t rows, ptrdiff_t n, bfloat16 *const *narrow,
                                  ptrdiff_t column, float *const *out)
{
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < n; j += LANES)
            store_up_to(out[i] + column + j, load_elements(1, narrow[i], column + j, n - j), n - j);
}

/* A tile in bfloat16, while its sums are in the L1. */
static NOINLINE void narrow_pixels(ptrdiff_t rows, ptrdiff_t n, float *const *out,
                                   ptrdiff_t column, bfloat16 *const *narrow)
{
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < n; j += LANES)
            store_elements(1, narrow[i], column + j, load_up_to(out[i] + column + j, n - j), n - j);
}

#define TILE(R)                                                                                \
    {                                                                                          \
        if (narrow && add) widen_pixels(R, n, narrow + i, column, out + i);                    \
        indirect_tile(R, W, n, taps, k, rows + i, pitch, zeros, first, b, out + i, column, add, \
                      early, &ahead);                                                      \
        if (leaky) finish_pixels(R, n, out + i, column, e);                                    \
        if (narrow) narrow_pixels(R, n, out + i, column, narrow + i);                          \
    }

/* The same of m rows. */
INLINE void indirect_panel(const int W, ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t k,
                           const float *const *rows, ptrdiff_t pitch, const float *zeros,
                           ptrdiff_t first, const float *b, float *const *out,
                           bfloat16 *const *narrow, ptrdiff_t column, int add,
                           const convcore_epilogue *e, const float *next)
{
    const int leaky = e && e->kind == CONVCORE_LEAKY;
    const convcore_epilogue *early = leaky ? NULL : e;
    panel_ahead ahead = ahead_of(next, taps * k, W, (m + ROWS - 1) / ROWS);
    ptrdiff_t i = 0;
    if (W < WIDTH)
        for (; m - i >= TALL(W); i += TALL(W)) TILE(TALL(W))
    for (; i < m; i += ROWS)
        SWITCH_ROWS(min_of(m - i, ROWS), TILE)
}

#undef TILE

#define PANEL_OF(W)                                                                            \
    indirect_panel(W, m, min_of(n - j, W * LANES), taps, k, rows, pitch,                       \
                   k < LEAST_SKIPPED ? NULL : zeros, first, b, out, narrow, column + j, add, e, \
                   next && j + PANEL < n ? b + panel : next)

/* out[i][column + j] = or += sum over t and l of rows[t * pitch + i][first + l] * b[t, l, j], for
 * m rows and n columns.  b: panels of PANEL columns, `panel` floats from one to the next, each
 * (taps, k, PANEL); the last may have fewer whole vectors.  Rows that are `zeros` may be left out.
 * With `e`, the epilogue follows.  Unless
 * it is NULL, `narrow` has the rows, in bfloat16, that are added to and written; those of `out` are
 * scratch then, of which CONVCORE_TALLEST in turn are enough. */
static void indirect_product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t k,
                             const float *const *rows, ptrdiff_t pitch, const float *zeros,
                             ptrdiff_t first, const float *b, ptrdiff_t panel, float *const *out,
                             bfloat16 *const *narrow, ptrdiff_t column, int add,
                             const convcore_epilogue *e, const float *next)
{
    for (ptrdiff_t j = 0; j < n; j += PANEL, b += panel)
        SWITCH_PANEL((n - j + LANES - 1) / LANES)
}

#undef PANEL_OF

/* ---- weight gradients: output channels by input channels ---- */

/* c (R, W vectors) = or += a^T (R, k) @ rows (k, W vectors); R and W are constants. */
INLINE void gradient_tile(const int R, const int W, ptrdiff_t k, const float *a, ptrdiff_t step,
                          const float *const *rows, const float *zeros, ptrdiff_t first, float *c,
                          ptrdiff_t c_row, int add)
{
    vec sums[TALLEST][WIDTH];
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < W; j++)
            sums[i][j] = (vec){0};
    for (ptrdiff_t l = 0; l < k; l++, a += step) {
        const float *b = rows[l] + first;
        if (rows[l] == zeros) continue;
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

#define TILE(R) gradient_tile(R, W, k, a + i, step, rows, zeros, first, c + i * c_row, c_row, add)

INLINE void gradient_panel(const int W, ptrdiff_t m, ptrdiff_t k, const float *a, ptrdiff_t step,
                           const float *const *rows, const float *zeros, ptrdiff_t first, float *c,
                           ptrdiff_t c_row, int add)
{
    ptrdiff_t i = 0;
    if (W < WIDTH)
        for (; m - i >= TALL(W); i += TALL(W)) TILE(TALL(W));
    for (; i < m; i += ROWS)
        SWITCH_ROWS(min_of(m - i, ROWS), TILE)
}

#undef TILE

#define PANEL_OF(W) gradient_panel(W, m, k, a, step, rows, zeros, first + j, c + j, c_row, add)

/* c[i * c_row + j] = or += sum over l of a[l * step + i] * rows[l][first + j], for m rows and n
 * columns, whole vectors.  Rows that are `zeros` are left out. */
static void indirect_gradient(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a,
                              ptrdiff_t step, const float *const *rows, const float *zeros,
                              ptrdiff_t first, float *c, ptrdiff_t c_row, int add)
{
    for (ptrdiff_t j = 0; j < n; j += PANEL)
        SWITCH_PANEL((n - j) / LANES)
}

#undef PANEL_OF

const convcore_indirect CONVCORE_TABLE(convcore_indirect) = {
    indirect_product, indirect_gradient, nhwc_of_nchw, nchw_of_nhwc,
    rows_of_bfloat16, bfloat16_of_rows, rows_of_lanes,
};
