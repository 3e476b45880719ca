/* Softmax and its logarithm, and their gradients, for numbers of type T.
 *
 *     y = exp(x - m) / s, or (x - m) - log(s)      m = max x, s = sum exp(x - m)
 *     gx = y (gy - sum gy y), or gy - exp(y) sum gy
 *
 * Sums are of doubles; of rows a few terms are added in T before.
 * Where m is infinite, or an element a NaN, so is s, and with it the result.
 * Rows are read a line at a time, the rest of one in a line that is filled up.  Columns lie side by
 * side, the elements of one `step` apart.
 */

#undef EACH
#define EACH for (int l = 0; l < LINE_LANES; l++)

/* Vectors of doubles that hold a line's sums. */
#undef SUMS
#define SUMS (LINE_LANES / WIDE_LANES)

/* Elements of a row that are added in T, a few in each lane, before they are in doubles. */
#undef CHAIN
#define CHAIN (16 * LINE_LANES)

/* The larger of each lane, and `than` beside a NaN of v. */
#undef LARGER
#if LANES > 1
#define LARGER(v, than)                                                           \
    (LINE)(((LINE_NUMBERS)(v) & ((v) > (than))) | ((LINE_NUMBERS)(than) & ~((v) > (than))))
#else
#define LARGER(v, than) ((v) > (than) ? (v) : (than))
#endif

/* The first `count` of a line's elements, and `fill`. */
static NOINLINE void OF(fill_up)(const T *from, ptrdiff_t count, T fill, T *line)
{
    for (int l = 0, n = (int)count; l < LINE_LANES; l++) line[l] = l < n ? from[l] : fill;
}

static NOINLINE void OF(copy_first)(const T *line, ptrdiff_t count, T *to)
{
    for (int l = 0, n = (int)count; l < LINE_LANES; l++)
        if (l < n) to[l] = line[l];
}

/* log(s) = k log(2) + log(m) of s = 2^k m from 1 on; NaN and infinity stay. */
INLINE T OF(log_of_sum)(double s)
{
    uint64_t bits;
    double m;
    memcpy(&bits, &s, sizeof s);
    const double k = (double)((int)(bits >> 52) - 1023);
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&m, &bits, sizeof m);
    return (T)(k * 0.6931471805599453 + (double)OF(log_1_more)((T)(m - 1)) + (s - s));
}

/* ---- rows ---- */

INLINE T OF(largest)(LINE v)
{
    T lanes[LINE_LANES];
    STORE(lanes, v);
    for (int half = LINE_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] = lanes[l + half] > lanes[l] ? lanes[l + half] : lanes[l];
    return lanes[0];
}

INLINE void OF(add_line)(LINE line, wide *sums)
{
    T lanes[LINE_LANES];
    STORE(lanes, line);
    UNROLLED for (int v = 0; v < SUMS; v++) sums[v] += OF(wide_of)(lanes + v * WIDE_LANES);
}

INLINE double OF(sum_of_line)(const wide *sums)
{
    return sum_of_wide(SUMS > 1 ? sums[0] + sums[SUMS - 1] : sums[0]);
}

INLINE LINE OF(exponentials)(const T *x, T top, T *e)
{
    T line[LINE_LANES];
    EACH line[l] = OF(cut_decay)(x[l] - top);
    const LINE v = LOAD(line);
    STORE(e, v);
    return v;
}

INLINE void OF(row)(const int log, const T *x, ptrdiff_t count, T *y)
{
    T rest[LINE_LANES], e[LINE_LANES], unused[LINE_LANES];
    wide sums[SUMS];
    const ptrdiff_t n = count % LINE_LANES, whole = count - n;
    OF(fill_up)(x + whole, n, -(T)INFINITY, rest);
    LINE most = LOAD(rest);
    for (ptrdiff_t i = 0; i < whole; i += LINE_LANES) {
        const LINE v = LOAD(x + i);
        most = LARGER(v, most);
    }
    const T top = OF(largest)(most);

    UNROLLED for (int v = 0; v < SUMS; v++) sums[v] = broadcast_wide(0);
    LINE some = OF(exponentials)(rest, top, e);
    for (ptrdiff_t i = 0; i < whole; i += CHAIN) {
        const ptrdiff_t end = whole - i < CHAIN ? whole : i + CHAIN;
        for (ptrdiff_t j = i; j < end; j += LINE_LANES)
            some += OF(exponentials)(x + j, top, log ? unused : y + j);
        OF(add_line)(some, sums);
        some = SPREAD(0);
    }
    OF(add_line)(some, sums);
    const double sum = OF(sum_of_line)(sums);
    const T total = log ? OF(log_of_sum)(sum) : (T)sum;

    for (ptrdiff_t i = 0; i < whole; i += LINE_LANES)
        EACH y[i + l] = log ? (x[i + l] - top) - total : y[i + l] / total;
    EACH e[l] = log ? (rest[l] - top) - total : e[l] / total;
    OF(copy_first)(e, n, y + whole);
}

static void OF(softmax_rows)(const void *from, ptrdiff_t rows, ptrdiff_t count, int log, void *to)
{
    for (ptrdiff_t r = 0; r < rows; r++) {
        const T *x = (const T *)from + r * count;
        T *y = (T *)to + r * count;
        if (log)
            OF(row)(1, x, count, y);
        else
            OF(row)(0, x, count, y);
    }
}

/* A line of terms of the gradient's sum. */
INLINE LINE OF(terms)(const int log, const T *gy, const T *y)
{
    return log ? LOAD(gy) : LOAD(gy) * LOAD(y);
}

INLINE T OF(slope)(const int log, T gy, T y, T sum)
{
    return log ? gy - OF(cut_decay)(y) * sum : y * (gy - sum);
}

INLINE void OF(line_gradient)(const int log, const T *gy, const T *y, T sum, T *gx)
{
    T line[LINE_LANES];
    EACH line[l] = OF(slope)(log, gy[l], y[l], sum);
    STORE(gx, LOAD(line));
}

INLINE void OF(row_gradient)(const int log, const T *gy, const T *y, ptrdiff_t count, T *gx)
{
    T rest_gy[LINE_LANES], rest_y[LINE_LANES], rest[LINE_LANES];
    wide sums[SUMS];
    const ptrdiff_t n = count % LINE_LANES, whole = count - n;
    OF(fill_up)(gy + whole, n, 0, rest_gy);
    OF(fill_up)(y + whole, n, 0, rest_y);
    UNROLLED for (int v = 0; v < SUMS; v++) sums[v] = broadcast_wide(0);
    LINE some = OF(terms)(log, rest_gy, rest_y);
    for (ptrdiff_t i = 0; i < whole; i += CHAIN) {
        const ptrdiff_t end = whole - i < CHAIN ? whole : i + CHAIN;
        for (ptrdiff_t j = i; j < end; j += LINE_LANES) some += OF(terms)(log, gy + j, y + j);
        OF(add_line)(some, sums);
        some = SPREAD(0);
    }
    OF(add_line)(some, sums);
    const T sum = (T)OF(sum_of_line)(sums);
    for (ptrdiff_t i = 0; i < whole; i += LINE_LANES)
        OF(line_gradient)(log, gy + i, y + i, sum, gx + i);
    OF(line_gradient)(log, rest_gy, rest_y, sum, rest);
    OF(copy_first)(rest, n, gx + whole);
}

static void OF(softmax_rows_gradient)(const void *grad, const void *result, ptrdiff_t rows,
                                      ptrdiff_t count, int log, void *to)
{
    for (ptrdiff_t r = 0; r < rows; r++) {
        const T *gy = (const T *)grad + r * count, *y = (const T *)result + r * count;
        T *gx = (T *)to + r * count;
        if (log)
            OF(row_gradient)(1, gy, y, count, gx);
        else
            OF(row_gradient)(0, gy, y, count, gx);
    }
}

/* ---- columns ---- */

static void OF(softmax_columns)(const void *from, ptrdiff_t columns, ptrdiff_t count,
                                ptrdiff_t step, int log, void *to)
{
    const T *x = from;
    T *y = to, top[CONVCORE_MOST_COLUMNS], total[CONVCORE_MOST_COLUMNS];
    double sums[CONVCORE_MOST_COLUMNS];
    for (ptrdiff_t j = 0; j < columns; j++) top[j] = x[j], sums[j] = 0;
    for (ptrdiff_t i = step; i < count * step; i += step)
        IVDEP for (ptrdiff_t j = 0; j < columns; j++)
            top[j] = x[i + j] > top[j] ? x[i + j] : top[j];
    for (ptrdiff_t i = 0; i < count * step; i += step) {
        /* Of a logarithm, y is the place of what is only added up. */
        IVDEP for (ptrdiff_t j = 0; j < columns; j++) {
            const T e = OF(cut_decay)(x[i + j] - top[j]);
            y[i + j] = e;
            sums[j] += (double)e;
        }
    }
    if (!log) {
        for (ptrdiff_t j = 0; j < columns; j++) total[j] = (T)sums[j];
        for (ptrdiff_t i = 0; i < count * step; i += step)
            IVDEP for (ptrdiff_t j = 0; j < columns; j++) y[i + j] = y[i + j] / total[j];
        return;
    }
    IVDEP for (ptrdiff_t j = 0; j < columns; j++) total[j] = OF(log_of_sum)(sums[j]);
    for (ptrdiff_t i = 0; i < count * step; i += step)
        IVDEP for (ptrdiff_t j = 0; j < columns; j++)
            y[i + j] = (x[i + j] - top[j]) - total[j];
}

static void OF(softmax_columns_gradient)(const void *grad, const void *result, ptrdiff_t columns,
                                         ptrdiff_t count, ptrdiff_t step, int log, void *to)
{
    const T *gy = grad, *y = result;
    T *gx = to, sum[CONVCORE_MOST_COLUMNS];
    double sums[CONVCORE_MOST_COLUMNS];
    for (ptrdiff_t j = 0; j < columns; j++) sums[j] = 0;
    for (ptrdiff_t i = 0; i < count * step; i += step)
        if (log)
            IVDEP for (ptrdiff_t j = 0; j < columns; j++) sums[j] += (double)gy[i + j];
        else
            IVDEP for (ptrdiff_t j = 0; j < columns; j++)
                sums[j] += (double)gy[i + j] * (double)y[i + j];
    for (ptrdiff_t j = 0; j < columns; j++) sum[j] = (T)sums[j];
    for (ptrdiff_t i = 0; i < count * step; i += step)
        if (log)
            IVDEP for (ptrdiff_t j = 0; j < columns; j++)
                gx[i + j] = OF(slope)(1, gy[i + j], y[i + j], sum[j]);
        else
            IVDEP for (ptrdiff_t j = 0; j < columns; j++)
                gx[i + j] = OF(slope)(0, gy[i + j], y[i + j], sum[j]);
}
