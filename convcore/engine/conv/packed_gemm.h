/* A matrix product whose right-hand side lies in panels, as the other microkernels write it.
 *
 * OpenBLAS copies both sides into its own order at every call; for the short products of Winograd's
 * method (tens of rows) that costs up to a third of the time.  Here the microkernel before writes
 * the order that is read, and nothing is copied.
 */
#ifndef CONVCORE_PACKED_GEMM_H
#define CONVCORE_PACKED_GEMM_H

#include "runtime/vec.h"

/* 6 x 4 sums, 4 columns and a broadcast fill 32 registers; 6 x 2 sums and those fill 16. */
#define WIDTH (REGISTERS == 32 ? 4 : 2)
#define PANEL (WIDTH * LANES)
#define ROWS 6
enum { LINE_BYTES = 64 };        /* of a cache */

/* Do CALL(R) with the constant R that is `count` of at most ROWS rows. */
#define SWITCH_ROWS(count, CALL)       \
    switch (count) {                   \
    case 6: CALL(6); break;            \
    case 5: CALL(5); break;            \
    case 4: CALL(4); break;            \
    case 3: CALL(3); break;            \
    case 2: CALL(2); break;            \
    default: CALL(1);                  \
    }

/* A panel that is read after this one, and asked for meanwhile: each tile of rows asks for its share of
 * the panel's lines.  Few pixels go through a panel faster than weights come that no cache holds. */
typedef struct {
    const char *at;
    ptrdiff_t lines;             /* of one tile; none if nothing is asked for */
} panel_ahead;

/* The panel `next`, or NULL, of `k` rows of so many vectors, asked for by `tiles` tiles. */
INLINE panel_ahead ahead_of(const float *next, ptrdiff_t k, int vectors, ptrdiff_t tiles)
{
    if (!next || !tiles) return (panel_ahead){(const char *)next, 0};
    ptrdiff_t lines = k * vectors * LANES * (ptrdiff_t)sizeof(float) / LINE_BYTES;
    return (panel_ahead){(const char *)next, (lines + tiles - 1) / tiles};
}

/* Two lines, if `left` of them are to be asked for. */
INLINE void ask_ahead(panel_ahead *ahead, ptrdiff_t *left)
{
    if (*left <= 0) return;
    PREFETCH(ahead->at);
    PREFETCH(ahead->at + LINE_BYTES);
    ahead->at += 2 * LINE_BYTES;
    *left -= 2;
}

/* c (R, PANEL) = or += a (R, k) @ b (k, PANEL), R a constant where this is inlined. */
INLINE void product_rows(const int R, ptrdiff_t k, const float *a, ptrdiff_t a_row,
                         ptrdiff_t a_column, const float *b, float *c, ptrdiff_t c_row, int add,
                         panel_ahead *ahead)
{
    vec sums[ROWS][WIDTH];
    ptrdiff_t lines = ahead->lines;
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < WIDTH; j++)
            sums[i][j] = add ? load(c + i * c_row + j * LANES) : (vec){0};
    for (ptrdiff_t l = 0; l < k; l++) {
        vec right[WIDTH];
        UNROLLED for (int j = 0; j < WIDTH; j++) right[j] = load(b + j * LANES);
        ask_ahead(ahead, &lines);
        UNROLLED for (int i = 0; i < R; i++) {
            vec left = broadcast(a[i * a_row]);
            UNROLLED for (int j = 0; j < WIDTH; j++) sums[i][j] += left * right[j];
        }
        a += a_column;
        b += PANEL;
    }
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < WIDTH; j++) store(c + i * c_row + j * LANES, sums[i][j]);
}

/* c (m, n) = or += a (m, k) @ b (k, n): n a multiple of PANEL, b cut into n / PANEL panels, each
 * (k, PANEL) and contiguous; a[i, l] at a[i * a_row + l * a_column].
 * next: what is read as b after that, if it and the panels on the way shall be asked for; or NULL. */
static MAYBE_UNUSED void product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a,
                                 ptrdiff_t a_row, ptrdiff_t a_column, const float *b, float *c,
                                 ptrdiff_t c_row, int add, const float *next)
{
    for (ptrdiff_t j = 0; j < n; j += PANEL, b += k * PANEL) {
        const float *after = next && j + PANEL < n ? b + k * PANEL : next;
        panel_ahead ahead = ahead_of(after, k, WIDTH, (m + ROWS - 1) / ROWS);
        ptrdiff_t i = 0;
        for (; i + ROWS <= m; i += ROWS)
            product_rows(ROWS, k, a + i * a_row, a_row, a_column, b, c + i * c_row + j, c_row, add,
                         &ahead);
        const float *rest = a + i * a_row;
        float *out = c + i * c_row + j;
        switch (m - i) {
        case 5: product_rows(5, k, rest, a_row, a_column, b, out, c_row, add, &ahead); break;
        case 4: product_rows(4, k, rest, a_row, a_column, b, out, c_row, add, &ahead); break;
        case 3: product_rows(3, k, rest, a_row, a_column, b, out, c_row, add, &ahead); break;
        case 2: product_rows(2, k, rest, a_row, a_column, b, out, c_row, add, &ahead); break;
        case 1: product_rows(1, k, rest, a_row, a_column, b, out, c_row, add, &ahead); break;
        }
    }
}

#endif
