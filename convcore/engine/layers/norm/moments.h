/* Sum, squared deviations, limits, zeros and NaN of a run, in one pass; for numbers of type T. */

/* Vectors side by side, whose sums do not wait for each other. */
#undef SIDE
#define SIDE 2

/* Ones where a comparison of vectors holds, and one or the other vector's lanes. */
#undef ONES
#undef CHOSEN
#if LANES > 1
#define ONES(test) (LINE)((LINE_NUMBERS)one & (LINE_NUMBERS)(test))
#define CHOSEN(test, a, b)                                                        \
    (LINE)(((LINE_NUMBERS)(a) & (test)) | ((LINE_NUMBERS)(b) & ~(test)))
#else
#define ONES(test) ((test) ? one : 0)
#define CHOSEN(test, a, b) ((test) ? (a) : (b))
#endif

/* The lanes of a vector as an array. */
#undef LANES_OF
#define LANES_OF(vector, lanes)                                                   \
    T lanes[LINE_LANES];                                                          \
    STORE(lanes, vector)

/* The middle one of the first element, the last and one between: a lone zero is far from the mean. */
static inline T OF(middle)(const T *v, ptrdiff_t count)
{
    const T a = v[0], b = v[count / 2], c = v[count - 1];
    const T low = a < b ? a : b, high = a < b ? b : a, most = high < c ? high : c;
    return low < most ? most : low;
}

/* Of at least one element. Sums are of the differences to one of them, in T: runs are short.
 * Comparisons with NaN are false, so limits are those of the other elements; and NaN are counted
 * only where the sum is one, as of opposite infinities it is too. */
static void OF(moments)(const void *from, ptrdiff_t count, convcore_moments *found)
{
    const T *v = from, near = OF(middle)(v, count);
    const T shift = near - near == 0 ? near : 0; /* 0 for NaN and infinities */
    const LINE one = SPREAD(1);
    LINE sum[SIDE], square[SIDE], least[SIDE], largest[SIDE], zeros[SIDE];
    UNROLLED for (int k = 0; k < SIDE; k++) {
        sum[k] = square[k] = zeros[k] = SPREAD(0);
        least[k] = SPREAD((T)INFINITY);
        largest[k] = SPREAD((T)-INFINITY);
    }
    ptrdiff_t i = 0;
    for (; i + SIDE * LINE_LANES <= count; i += SIDE * LINE_LANES)
        UNROLLED for (int k = 0; k < SIDE; k++) {
            const LINE x = LOAD(v + i + k * LINE_LANES), d = x - shift;
            sum[k] += d;
            square[k] += d * d;
            least[k] = CHOSEN(x < least[k], x, least[k]);
            largest[k] = CHOSEN(x > largest[k], x, largest[k]);
            zeros[k] += ONES(x == 0);
        }
    UNROLLED for (int k = 1; k < SIDE; k++) {
        sum[0] += sum[k];
        square[0] += square[k];
        least[0] = CHOSEN(least[k] < least[0], least[k], least[0]);
        largest[0] = CHOSEN(largest[k] > largest[0], largest[k], largest[0]);
        zeros[0] += zeros[k];
    }
    LANES_OF(sum[0], sums);
    LANES_OF(square[0], squared);
    LANES_OF(least[0], lows);
    LANES_OF(largest[0], highs);
    LANES_OF(zeros[0], zero);
    for (int k = 0; i < count; i++, k = (k + 1) % LINE_LANES) {
        const T x = v[i], d = x - shift;
        sums[k] += d;
        squared[k] += d * d;
        lows[k] = x < lows[k] ? x : lows[k];
        highs[k] = x > highs[k] ? x : highs[k];
        zero[k] += x == 0;
    }
    double total = 0, squares = 0;
    *found = (convcore_moments){(double)count, 0, 0, INFINITY, -INFINITY, 0, 0};
    for (int k = 0; k < LINE_LANES; k++) {
        total += sums[k];
        squares += squared[k];
        found->least = lows[k] < found->least ? lows[k] : found->least;
        found->largest = highs[k] > found->largest ? highs[k] : found->largest;
        found->zeros += zero[k];
    }
    if (total != total)
        for (i = 0; i < count; i++) found->nan += v[i] != v[i];
    found->mean = shift + total / (double)count;
    squares -= total * (total / (double)count);
    found->squares = squares < 0 ? 0 : squares;
}
