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

/* c (R, PANEL) = or += a (R, k) @ b (k, PANEL), R a constant where this is inlined. */
INLINE void product_rows(const int R, ptrdiff_t k, const float *a, ptrdiff_t a_row,
                         ptrdiff_t a_column, const float *b, float *c, ptrdiff_t c_row, int add)
{
    vec sums[ROWS][WIDTH];
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < WIDTH; j++)
            sums[i][j] = add ? load(c + i * c_row + j * LANES) : (vec){0};
    for (ptrdiff_t l = 0; l < k; l++) {
        vec right[WIDTH];
        UNROLLED for (int j = 0; j < WIDTH; j++) right[j] = load(b + j * LANES);
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
 * (k, PANEL) and contiguous; a[i, l] at a[i * a_row + l * a_column]. */
static MAYBE_UNUSED void product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a,
                                 ptrdiff_t a_row, ptrdiff_t a_column, const float *b, float *c,
                                 ptrdiff_t c_row, int add)
{
    for (ptrdiff_t j = 0; j < n; j += PANEL, b += k * PANEL) {
        ptrdiff_t i = 0;
        for (; i + ROWS <= m; i += ROWS)
            product_rows(ROWS, k, a + i * a_row, a_row, a_column, b, c + i * c_row + j, c_row, add);
        const float *rest = a + i * a_row;
        float *out = c + i * c_row + j;
        switch (m - i) {
        case 5: product_rows(5, k, rest, a_row, a_column, b, out, c_row, add); break;
        case 4: product_rows(4, k, rest, a_row, a_column, b, out, c_row, add); break;
        case 3: product_rows(3, k, rest, a_row, a_column, b, out, c_row, add); break;
        case 2: product_rows(2, k, rest, a_row, a_column, b, out, c_row, add); break;
        case 1: product_rows(1, k, rest, a_row, a_column, b, out, c_row, add); break;
        }
    }
}

#endif
