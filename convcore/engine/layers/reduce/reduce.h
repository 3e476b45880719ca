/* Sums over pixels, for numbers of type T: a few are added in T, one after another in each lane,
 * and these in double. */

INLINE T OF(sum_of_lanes)(LINE v)
{
    T lanes[LINE_LANES];
    STORE(lanes, v);
    for (int half = LINE_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
    return lanes[0];
}

/* sum += x[0] + ... of elements side by side, as a plane's are. */
static void OF(sum_nchw)(const void *from, ptrdiff_t count, double *sum)
{
    const T *x = from;
    T rest[LINE_LANES];
    LINE some[4];
    ptrdiff_t i = 0;
    UNROLLED for (int k = 0; k < 4; k++) some[k] = SPREAD(0);
    for (; i + 4 * LINE_LANES <= count; i += 4 * LINE_LANES)
        UNROLLED for (int k = 0; k < 4; k++) some[k] += LOAD(x + i + k * LINE_LANES);
    for (; i + LINE_LANES <= count; i += LINE_LANES) some[0] += LOAD(x + i);
    if (i < count) {
        OF(fill_up)(x + i, count - i, 0, rest);
        some[1] += LOAD(rest);
    }
    *sum += (double)OF(sum_of_lanes)((some[0] + some[1]) + (some[2] + some[3]));
}

/* sums[c] += x[0][c] + ... of pixels `step` apart, whose up to CONVCORE_MOST_CHANNELS channels are
 * neighbours. */
static void OF(sum_nhwc)(const void *from, ptrdiff_t pixels, ptrdiff_t channels, ptrdiff_t step,
                         double *sums)
{
    const T *x = from;
    T some[CONVCORE_MOST_CHANNELS];
    for (ptrdiff_t c = 0; c < channels; c++) some[c] = 0;
    for (ptrdiff_t p = 0; p < pixels; p++, x += step)
        IVDEP for (ptrdiff_t c = 0; c < channels; c++) some[c] += x[c];
    for (ptrdiff_t c = 0; c < channels; c++) sums[c] += (double)some[c];
}
