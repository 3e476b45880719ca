/* Separable linear maps of images, a line at a time; for numbers of type T.
 *
 * The lines that a line of outputs is made of are summed first, element by element; then the
 * weights of the line's own axis apply.  In NCHW, where these repeat themselves, outputs side by
 * side are made as vectors: of deinterleaved parts of the line, one part of outputs a phase.
 */

/* out[i] (+)= sum over n of rows[n][i] * weights[n], for n < taps <= 4 */
INLINE void OF(add_rows)(const int taps, const int add, const T *const *rows, const T *weights,
                         ptrdiff_t count, T *out)
{
    const T *a = rows[0], *b = rows[taps > 1], *c = rows[taps > 2 ? 2 : 0];
    const T *d = rows[taps > 3 ? 3 : 0];
    const T wa = weights[0], wb = weights[taps > 1], wc = weights[taps > 2 ? 2 : 0];
    const T wd = weights[taps > 3 ? 3 : 0];
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        T sum = a[i] * wa;
        if (taps > 1) sum += b[i] * wb;
        if (taps > 2) sum += c[i] * wc;
        if (taps > 3) sum += d[i] * wd;
        out[i] = add ? out[i] + sum : sum;
    }
}

static void OF(combine)(int taps, int add, const T *const *rows, const T *weights, ptrdiff_t count,
                        T *out)
{
    switch (taps + 4 * (add != 0)) {
    case 1: OF(add_rows)(1, 0, rows, weights, count, out); break;
    case 2: OF(add_rows)(2, 0, rows, weights, count, out); break;
    case 3: OF(add_rows)(3, 0, rows, weights, count, out); break;
    case 4: OF(add_rows)(4, 0, rows, weights, count, out); break;
    case 5: OF(add_rows)(1, 1, rows, weights, count, out); break;
    case 6: OF(add_rows)(2, 1, rows, weights, count, out); break;
    case 7: OF(add_rows)(3, 1, rows, weights, count, out); break;
    case 8: OF(add_rows)(4, 1, rows, weights, count, out); break;
    }
}

/* Rows that are summed four at a time. */
typedef struct {
    const T *rows[4];
    T weights[4];
    int count, add;
} OF(weighted_sum);

INLINE void OF(flush)(OF(weighted_sum) *s, ptrdiff_t count, T *out)
{
    if (s->count) OF(combine)(s->count, s->add, s->rows, s->weights, count, out);
    s->add |= s->count > 0;
    s->count = 0;
}

INLINE void OF(push)(OF(weighted_sum) *s, const T *row, T weight, ptrdiff_t count, T *out)
{
    s->rows[s->count] = row;
    s->weights[s->count++] = weight;
    if (s->count == 4) OF(flush)(s, count, out);
}

/* What is left of a sum, or zeros where there was nothing to add. */
INLINE void OF(finish)(OF(weighted_sum) *s, ptrdiff_t count, T *out)
{
    OF(flush)(s, count, out);
    if (!s->add) memset(out, 0, count * sizeof(T));
}

/* The sum of a run, in lanes of which each is added up by itself. */
INLINE T OF(run_sum)(const T *v, ptrdiff_t count)
{
    T lanes[16] = {0}, rest = 0;
    ptrdiff_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int l = 0; l < 16; l++) lanes[l] += v[i + l];
    for (; i < count; i++) rest += v[i];
    for (int l = 0; l < 8; l++) lanes[l] += lanes[l + 8];
    for (int l = 0; l < 4; l++) lanes[l] += lanes[l + 4];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]) + rest;
}

/* Outputs [first, end) of a line of a plane, each by itself. */
static void OF(weigh_each)(const convcore_axis_weights *W, const T *line, ptrdiff_t first,
                           ptrdiff_t end, T *y)
{
    const T *weight = W->weight;
    if (W->copies) {
        for (ptrdiff_t j = first; j < end; j++) y[j] = line[W->source[j]];
        return;
    }
    for (ptrdiff_t j = first; j < end; j++) {
        const ptrdiff_t begin = W->begin[j], stop = W->begin[j + 1];
        T sum = begin < stop ? line[W->source[begin]] * weight[begin] : 0;
        if (W->run && stop - begin >= 16) {
            y[j] = OF(run_sum)(line + W->source[begin], stop - begin);
            continue;
        }
        for (ptrdiff_t i = begin + 1; i < stop; i++) sum += line[W->source[i]] * weight[i];
        y[j] = sum;
    }
}

/* The outputs of a line of a plane that repeat themselves: by parts of the line, and by phases. */
static void OF(weigh_phases)(const convcore_axis_weights *W, const T *line, T *y, T *scratch)
{
    const ptrdiff_t stride = W->stride, pitch = W->size / stride + 1, count = W->high - W->low;
    const T *weight = W->weight, *parts = line;
    T *made = W->phases > 1 ? scratch + stride * pitch : y + W->low;
    if (W->copies && stride == 1 && W->phases == 1) {
        memcpy(y + W->low, line + W->source[W->low], count * sizeof(T));
        return;
    }
    if (stride > 1) {
        OF(deinterleave)(line, W->size, stride, scratch, pitch);
        parts = scratch;
    }
    for (ptrdiff_t p = 0; p < W->phases; p++) {
        const ptrdiff_t j = p + W->phases * W->low;
        OF(weighted_sum) sum = {.count = 0};
        for (ptrdiff_t i = W->begin[j]; i < W->begin[j + 1]; i++)
            OF(push)(&sum, parts + W->source[i] % stride * pitch + W->source[i] / stride, weight[i],
                     count, made + p * count);
        OF(finish)(&sum, count, made + p * count);
    }
    if (W->phases > 1) OF(interleave)(made, count, W->phases, count, y + W->phases * W->low);
}

/* Every input by itself, added to the run of outputs that it reaches. */
static void OF(weigh_reaches)(const convcore_axis_weights *W, const T *line, T *y)
{
    const T *weight = W->weight;
    memset(y, 0, W->out * sizeof(T));
    for (ptrdiff_t i = 0; i < W->size; i++) {
        const ptrdiff_t *gather = W->gather + 3 * i;
        const T value = line[i] * weight[gather[2]];
        IVDEP for (ptrdiff_t j = gather[0]; j < gather[1]; j++) y[j] += value;
    }
}

static void OF(line_nchw)(const convcore_axis_weights *W, const T *line, T *y, T *scratch)
{
    if (W->gather) {
        OF(weigh_reaches)(W, line, y);
        return;
    }
    /* A few copies are made sooner than they are interleaved. */
    const int few = W->copies && W->phases > 1 && W->high - W->low < 16;
    if (!W->phases || few) {
        OF(weigh_each)(W, line, 0, W->out, y);
        return;
    }
    OF(weigh_each)(W, line, 0, W->phases * W->low, y);
    OF(weigh_phases)(W, line, y, scratch);
    OF(weigh_each)(W, line, W->phases * W->high, W->out, y);
}

/* Channels of one pixel: the sum of `taps` rows, four at a time. */
INLINE void OF(weigh_pixel)(const T *const *rows, const T *weights, ptrdiff_t taps,
                            ptrdiff_t channels, T *y)
{
    if (taps == 1 && weights[0] == 1)
        memcpy(y, rows[0], channels * sizeof(T));
    else if (taps)
        OF(combine)((int)taps, 0, rows, weights, channels, y);
    else
        memset(y, 0, channels * sizeof(T));
}

static void OF(line_nhwc)(const convcore_axis_weights *W, const T *line, ptrdiff_t channels, T *y)
{
    const T *weight = W->weight;
    for (ptrdiff_t j = 0; j < W->out; j++, y += channels) {
        const ptrdiff_t begin = W->begin[j], end = W->begin[j + 1];
        const T *rows[4];
        if (W->stride == 1 && W->phases == 1 && j == W->low && end - begin == 1
            && weight[begin] == 1) {
            /* A run of copies. */
            const ptrdiff_t count = W->high - W->low;
            memcpy(y, line + W->source[begin] * channels, count * channels * sizeof(T));
            y += (count - 1) * channels;
            j += count - 1;
            continue;
        }
        for (ptrdiff_t i = begin; i < end && i < begin + 4; i++)
            rows[i - begin] = line + W->source[i] * channels;
        OF(weigh_pixel)(rows, weight + begin, end - begin < 4 ? end - begin : 4, channels, y);
        if (end - begin <= 4) continue;
        OF(weighted_sum) sum = {.add = 1};
        for (ptrdiff_t i = begin + 4; i < end; i++)
            OF(push)(&sum, line + W->source[i] * channels, weight[i], channels, y);
        OF(finish)(&sum, channels, y);
    }
}

/* A line of pixels from at most two lines, of at most two pixels each. */
static void OF(line_of_pairs_nhwc)(const convcore_axis_weights *W, const T *const *lines,
                                   const T *scales, int n_lines, ptrdiff_t channels, T *y)
{
    const T *weight = W->weight;
    for (ptrdiff_t j = 0; j < W->out; j++, y += channels) {
        const T *rows[4];
        T weights[4];
        int taps = 0;
        for (int n = 0; n < n_lines; n++) {
            for (ptrdiff_t i = W->begin[j]; i < W->begin[j + 1]; i++) {
                rows[taps] = lines[n] + W->source[i] * channels;
                weights[taps++] = scales[n] * weight[i];
            }
        }
        if (taps == 4)
            OF(add_rows)(4, 0, rows, weights, channels, y);
        else
            OF(weigh_pixel)(rows, weights, taps, channels, y);
    }
}

static void OF(divide)(const convcore_separable *s, ptrdiff_t d, ptrdiff_t h, T *y)
{
    const convcore_axis_weights *W = &s->axis[2];
    const ptrdiff_t unit = s->channels ? s->channels : 1;
    const T *each[3] = {s->axis[0].divisor, s->axis[1].divisor, W->divisor};
    T by = (T)s->divisor;
    if (each[0]) by *= each[0][d];
    if (each[1]) by *= each[1][h];
    if (!each[2] && by == 1) return;
    if (!each[2]) {
        IVDEP for (ptrdiff_t i = 0; i < W->out * unit; i++) y[i] /= by;
    } else if (unit == 1) {
        IVDEP for (ptrdiff_t j = 0; j < W->out; j++) y[j] /= by * each[2][j];
    } else {
        for (ptrdiff_t j = 0; j < W->out; j++) {
            const T one = by * each[2][j];
            IVDEP for (ptrdiff_t i = 0; i < unit; i++) y[j * unit + i] /= one;
        }
    }
}

static void OF(separable)(const convcore_separable *s, const void *from, ptrdiff_t d, ptrdiff_t h,
                          void *to, void *scratch)
{
    const convcore_axis_weights *D = &s->axis[0], *H = &s->axis[1], *W = &s->axis[2];
    const ptrdiff_t unit = s->channels ? s->channels : 1, length = W->size * unit;
    const ptrdiff_t a0 = D->begin[d], a1 = D->begin[d + 1], b0 = H->begin[h], b1 = H->begin[h + 1];
    const T *x = from, *weight_d = D->weight, *weight_h = H->weight;
    T *y = to, *sums = W->identity ? y : scratch;
    const int direct = !W->identity && (a1 - a0) * (b1 - b0) <= (s->channels && W->two_tap ? 2 : 1);
    OF(weighted_sum) sum = {.count = 0};
    for (ptrdiff_t a = a0; a < a1; a++) {
        for (ptrdiff_t b = b0; b < b1; b++) {
            OF(push)(&sum, x + (D->source[a] * H->size + H->source[b]) * length,
                     weight_d[a] * weight_h[b], length, sums);
        }
    }
    const int plain = direct && sum.count == 1 && sum.weights[0] == 1;
    if (direct && s->channels && W->two_tap && !plain) {
        OF(line_of_pairs_nhwc)(W, sum.rows, sum.weights, sum.count, unit, y);
    } else {
        const T *line = plain ? sum.rows[0] : sums;
        if (!plain) OF(finish)(&sum, length, sums);
        if (!W->identity && s->channels) OF(line_nhwc)(W, line, unit, y);
        if (!W->identity && !s->channels) OF(line_nchw)(W, line, y, (T *)scratch + length);
    }
    OF(divide)(s, d, h, y);
}
