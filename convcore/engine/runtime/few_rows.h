/* Matrix products c (m, n) = a (m, k) @ b (k, n) of few rows, as a linear layer's of a small batch.
 *
 * Each number of b is used m times only: to copy it into another order first, as BLAS does, takes
 * longer than the products.  Here b is read once, where it lies.
 */
#ifndef CONVCORE_FEW_ROWS_H
#define CONVCORE_FEW_ROWS_H

#include "vec.h"

/* Rows of b that are multiplied before the sum is added to c: they wait in registers. */
enum { TERMS = 8 };

/* c (m, n) += a (m, count) @ b (count, n); count is a constant. */
INLINE void add_products(const int count, ptrdiff_t m, ptrdiff_t n, const float *a, ptrdiff_t a_row,
                         ptrdiff_t a_column, const float *b, ptrdiff_t b_row, float *c,
                         ptrdiff_t c_row)
{
    for (ptrdiff_t j = 0; j < n; j += LANES) {
        const ptrdiff_t some = min_of(n - j, LANES);
        vec right[TERMS];
        UNROLLED for (int t = 0; t < count; t++) right[t] = load_up_to(b + t * b_row + j, some);
        for (ptrdiff_t i = 0; i < m; i++) {
            const float *left = a + i * a_row;
            float *out = c + i * c_row + j;
            vec sum = broadcast(left[0]) * right[0];
            UNROLLED for (int t = 1; t < count; t++)
                sum += broadcast(left[t * a_column]) * right[t];
            store_up_to(out, load_up_to(out, some) + sum, some);
        }
    }
}

/* b is stored (k, n); a's strides are any. */
static void few_rows_plain(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t a_row,
                           ptrdiff_t a_column, const float *b, ptrdiff_t b_row, float *c,
                           ptrdiff_t c_row)
{
    ptrdiff_t l = 0;
    for (ptrdiff_t i = 0; i < m; i++) memset(c + i * c_row, 0, (size_t)n * sizeof(float));
    for (; l + TERMS <= k; l += TERMS)
        add_products(TERMS, m, n, a + l * a_column, a_row, a_column, b + l * b_row, b_row, c, c_row);
    for (; l < k; l++)
        add_products(1, m, n, a + l * a_column, a_row, a_column, b + l * b_row, b_row, c, c_row);
}

/* The products of so many rows and columns fill a vector when each is summed over its lanes. */
#define DOT_ROWS (LANES > 1 ? 2 : 1)
#define DOT_COLUMNS (LANES / DOT_ROWS)

/* Terms whose columns of b stay in the nearest cache for all rows. */
enum { DOT_TERMS = 512 };

/* sums[i * DOT_COLUMNS + j] = left[i] . right[j], each of k numbers side by side. */
INLINE vec dot_products(ptrdiff_t k, const float *const *left, const float *const *right)
{
    vec sums[LANES], total = {0};
    UNROLLED for (int s = 0; s < LANES; s++) sums[s] = (vec){0};
    for (ptrdiff_t l = 0; l < k; l += LANES) {
        const ptrdiff_t some = min_of(k - l, LANES);
        vec x[DOT_ROWS];
        UNROLLED for (int i = 0; i < DOT_ROWS; i++) x[i] = load_up_to(left[i] + l, some);
        UNROLLED for (int j = 0; j < DOT_COLUMNS; j++) {
            vec y = load_up_to(right[j] + l, some);
            UNROLLED for (int i = 0; i < DOT_ROWS; i++) sums[i * DOT_COLUMNS + j] += x[i] * y;
        }
    }
    transpose(sums);
    UNROLLED for (int s = 0; s < LANES; s++) total += sums[s];
    return total;
}

/* b is stored (n, k), and a's rows are contiguous.  Where rows or columns end the last one is taken
 * again, and what it gives is not stored. */
static void few_rows_transposed(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a,
                                ptrdiff_t a_row, const float *b, ptrdiff_t b_row, float *c,
                                ptrdiff_t c_row)
{
    for (ptrdiff_t l = 0; l < k; l += DOT_TERMS)
        for (ptrdiff_t j = 0; j < n; j += DOT_COLUMNS) {
            const float *right[DOT_COLUMNS];
            for (int s = 0; s < DOT_COLUMNS; s++) right[s] = b + min_of(j + s, n - 1) * b_row + l;
            for (ptrdiff_t i = 0; i < m; i += DOT_ROWS) {
                const float *left[DOT_ROWS];
                for (int s = 0; s < DOT_ROWS; s++) left[s] = a + min_of(i + s, m - 1) * a_row + l;
                ALIGNED float sums[LANES];
                store(sums, dot_products(min_of(k - l, DOT_TERMS), left, right));
                for (ptrdiff_t r = 0; r < min_of(m - i, DOT_ROWS); r++)
                    for (ptrdiff_t s = 0; s < min_of(n - j, DOT_COLUMNS); s++) {
                        float *out = c + (i + r) * c_row + j + s;
                        *out = sums[r * DOT_COLUMNS + s] + (l ? *out : 0);
                    }
            }
        }
}

#endif
