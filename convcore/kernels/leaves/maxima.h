/* Maxima under windows, line by line, and their gradient; for numbers of type T and integers I of
 * the same width.
 *
 * The number of the tap that won is a byte: an eighth of what an index takes.  The first of equal
 * elements wins, and a NaN over all, the last one over the others.
 *
 * Along a line of a plane, windows side by side are vectors of their taps: the line is staged in
 * parts, every stride-th element in one, with -inf around it, so that each tap of all windows is a
 * run of a part.  In channels_last the channels are such runs as they lie.
 */

/* Channels whose maxima are held at a time. */
#define HELD 64

/* Short lines are not worth staging. */
#define LEAST_STAGED 8

/* best[i] = the larger of best[i] and v[i], which is tap `tap` */
INLINE void OF(take_larger)(const T *v, ptrdiff_t count, I tap, T *best, I *taps)
{
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const T value = v[i], held = best[i];
        const int larger = (value > held) | (value != value);
        best[i] = larger ? value : held;
        taps[i] = larger ? tap : taps[i];
    }
}

INLINE void OF(take_larger_alone)(const T *v, ptrdiff_t count, T *best)
{
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const T value = v[i], held = best[i];
        best[i] = (value > held) | (value != value) ? value : held;
    }
}

INLINE void OF(as_bytes)(const I *taps, ptrdiff_t count, uint8_t *out)
{
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) out[i] = (uint8_t)taps[i];
}

/* The number of a window's first tap that is in the image, from its first rows' and its column. */
INLINE I OF(first_tap)(const convcore_maxima *m, ptrdiff_t d, ptrdiff_t h, ptrdiff_t w)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    if (D->low[d] >= D->high[d] || H->low[h] >= H->high[h] || W->low[w] >= W->high[w])
        return CONVCORE_NOWHERE;
    return (I)((D->low[d] * H->kernel + H->low[h]) * W->kernel + W->low[w]);
}

/* Elements of a window: where they lie, of how many there are lines side by side, and their taps. */
typedef struct {
    const T *at[CONVCORE_NOWHERE];
    I tap[CONVCORE_NOWHERE];
    int count;
} OF(window);

/* The same for `terms` elements of a window at once; those before them are held unless `begin`. */
INLINE void OF(take_largest)(const int terms, const int begin, const T *const *at, const I *tap,
                             ptrdiff_t c, ptrdiff_t count, T *best, I *taps)
{
    const T *v[9];
    UNROLLED for (int t = 0; t < terms; t++) v[t] = at[t] + c;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        T held = begin ? (T)-INFINITY : best[i];
        I won = taps[i];
        UNROLLED for (int t = 0; t < terms; t++) {
            const T value = v[t][i];
            const int larger = (value > held) | (value != value);
            held = larger ? value : held;
            won = larger ? tap[t] : won;
        }
        best[i] = held;
        taps[i] = won;
    }
}

INLINE void OF(take_largest_alone)(const int terms, const int begin, const T *const *at,
                                   ptrdiff_t c, ptrdiff_t count, T *best)
{
    const T *v[9];
    UNROLLED for (int t = 0; t < terms; t++) v[t] = at[t] + c;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        T held = begin ? (T)-INFINITY : best[i];
        UNROLLED for (int t = 0; t < terms; t++) {
            const T value = v[t][i];
            held = (value > held) | (value != value) ? value : held;
        }
        best[i] = held;
    }
}

#define TAKE(terms)                                                                          \
    case terms:                                                                              \
        if (taps)                                                                            \
            OF(take_largest)(terms, begin, w->at + t, w->tap + t, c, count, best, taps);     \
        else                                                                                 \
            OF(take_largest_alone)(terms, begin, w->at + t, c, count, best);                 \
        t += terms;                                                                          \
        break;

/* Terms [t, ...) of a window, as many as one loop takes; returns how far that is. */
INLINE int OF(take_some)(const OF(window) *w, int t, const int begin, ptrdiff_t c,
                         ptrdiff_t count, T *best, I *taps)
{
    const int left = w->count - t;
    switch (left >= 9 ? 9 : left >= 6 ? 6 : left == 5 ? 4 : left) {
        TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(6) TAKE(9)
    }
    return t;
}

#undef TAKE

/* Channels [c, c + count) of one window of channels_last images. */
INLINE void OF(maxima_of_pixel)(const OF(window) *w, I first, ptrdiff_t c, ptrdiff_t count, T *y,
                                uint8_t *out)
{
    I taps[HELD];
    if (out)
        for (ptrdiff_t i = 0; i < count; i++) taps[i] = first;
    if (!w->count)
        for (ptrdiff_t i = 0; i < count; i++) y[c + i] = (T)-INFINITY;
    int t = w->count ? OF(take_some)(w, 0, 1, c, count, y + c, out ? taps : NULL) : 0;
    while (t < w->count) t = OF(take_some)(w, t, 0, c, count, y + c, out ? taps : NULL);
    if (out) OF(as_bytes)(taps, count, out + c);
}

/* What one window of channels_last images sees. */
INLINE void OF(look)(const convcore_maxima *m, const T *x, ptrdiff_t d, ptrdiff_t h, ptrdiff_t w,
                     OF(window) *found)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    found->count = 0;
    for (ptrdiff_t a = D->low[d]; a < D->high[d]; a++) {
        for (ptrdiff_t b = H->low[h]; b < H->high[h]; b++) {
            const ptrdiff_t row = (D->start[d] + a * D->dilation) * H->size + H->start[h]
                                  + b * H->dilation;
            for (ptrdiff_t c = W->low[w]; c < W->high[w]; c++) {
                found->tap[found->count] = (I)((a * H->kernel + b) * W->kernel + c);
                found->at[found->count++] =
                    x + (row * W->size + W->start[w] + c * W->dilation) * m->channels;
            }
        }
    }
}

static void OF(maxima_of_pixels)(const convcore_maxima *m, const T *x, ptrdiff_t d, ptrdiff_t h,
                                 T *y, uint8_t *out)
{
    const ptrdiff_t channels = m->channels;
    OF(window) window;
    for (ptrdiff_t w = 0; w < m->axis[2].out; w++, y += channels) {
        const I first = OF(first_tap)(m, d, h, w);
        OF(look)(m, x, d, h, w, &window);
        for (ptrdiff_t c = 0; c < channels; c += HELD)
            OF(maxima_of_pixel)(&window, first, c, channels - c < HELD ? channels - c : HELD, y,
                                out);
        if (out) out += channels;
    }
}

/* Part s of a line begins at s * pitch and has element q * stride + s - before of it at q. */
INLINE ptrdiff_t OF(pitch_of)(const convcore_windows *W)
{
    return W->out + (W->kernel - 1) * W->dilation / W->stride + 1;
}

static void OF(stage_line)(const convcore_windows *W, const T *line, T *parts)
{
    const ptrdiff_t pitch = OF(pitch_of)(W), stride = W->stride, before = W->before;
    /* What windows see of the line; its first elements up to a whole group; where groups begin. */
    ptrdiff_t size = pitch * stride - before, head = (stride - before % stride) % stride;
    size = size < W->size ? size : W->size;
    head = head < size ? head : size;
    const ptrdiff_t first = (head + before) / stride, end = size + before;
    for (ptrdiff_t s = 0; s < stride; s++) {
        for (ptrdiff_t q = 0; q <= first && q < pitch; q++) parts[s * pitch + q] = (T)-INFINITY;
        for (ptrdiff_t q = end / stride; q < pitch; q++) parts[s * pitch + q] = (T)-INFINITY;
    }
    for (ptrdiff_t i = 0; i < head; i++)
        parts[(i + before) % stride * pitch + (i + before) / stride] = line[i];
    OF(take_apart)(line + head, size - head, stride, parts + first, pitch);
}

/* One line of windows, by the staged lines that they see. */
static void OF(maxima_of_line)(const convcore_maxima *m, const T *x, ptrdiff_t d, ptrdiff_t h,
                               T *y, uint8_t *out, T *scratch)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    const ptrdiff_t pitch = OF(pitch_of)(W), stride = W->stride;
    I *taps = (I *)scratch;
    T *parts = scratch + W->out;
    for (ptrdiff_t j = 0; j < W->out; j++) y[j] = (T)-INFINITY;
    if (out)
        for (ptrdiff_t j = 0; j < W->out; j++) taps[j] = OF(first_tap)(m, d, h, j);
    for (ptrdiff_t a = D->low[d]; a < D->high[d]; a++) {
        for (ptrdiff_t b = H->low[h]; b < H->high[h]; b++) {
            const ptrdiff_t row = (D->start[d] + a * D->dilation) * H->size + H->start[h]
                                  + b * H->dilation;
            OF(stage_line)(W, x + row * W->size, parts);
            for (ptrdiff_t c = 0; c < W->kernel; c++) {
                const ptrdiff_t shift = c * W->dilation;
                const T *v = parts + shift % stride * pitch + shift / stride;
                if (out)
                    OF(take_larger)(v, W->out, (I)((a * H->kernel + b) * W->kernel + c), y, taps);
                else
                    OF(take_larger_alone)(v, W->out, y);
            }
        }
    }
    if (out) OF(as_bytes)(taps, W->out, out);
}

/* One short line of windows, every tap of them in turn where it lies. */
static void OF(maxima_of_short_line)(const convcore_maxima *m, const T *x, ptrdiff_t d,
                                     ptrdiff_t h, T *y, uint8_t *out)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    const ptrdiff_t stride = W->stride;
    I taps[LEAST_STAGED];
    T best[LEAST_STAGED];
    for (ptrdiff_t j = 0; j < W->out; j++) best[j] = (T)-INFINITY;
    for (ptrdiff_t j = 0; j < W->out; j++) taps[j] = OF(first_tap)(m, d, h, j);
    for (ptrdiff_t a = D->low[d]; a < D->high[d]; a++) {
        for (ptrdiff_t b = H->low[h]; b < H->high[h]; b++) {
            const ptrdiff_t row = (D->start[d] + a * D->dilation) * H->size + H->start[h]
                                  + b * H->dilation;
            for (ptrdiff_t c = 0; c < W->kernel; c++) {
                const I tap = (I)((a * H->kernel + b) * W->kernel + c);
                const T *v = x + row * W->size - W->before + c * W->dilation;
                ptrdiff_t j = 0, end = W->out;
                while (j < end && (c < W->low[j] || c >= W->high[j])) j++;
                while (j < end && (c < W->low[end - 1] || c >= W->high[end - 1])) end--;
                for (; j < end; j++) {
                    const T value = v[j * stride];
                    const int larger = (value > best[j]) | (value != value);
                    best[j] = larger ? value : best[j];
                    taps[j] = larger ? tap : taps[j];
                }
            }
        }
    }
    memcpy(y, best, W->out * sizeof(T));
    for (ptrdiff_t j = 0; out && j < W->out; j++) out[j] = (uint8_t)taps[j];
}

/* One window of a plane. */
static void OF(maximum)(const convcore_maxima *m, const T *x, ptrdiff_t d, ptrdiff_t h,
                        ptrdiff_t w, T *y, uint8_t *out)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    T best = (T)-INFINITY;
    I tap = OF(first_tap)(m, d, h, w);
    for (ptrdiff_t a = D->low[d]; a < D->high[d]; a++) {
        for (ptrdiff_t b = H->low[h]; b < H->high[h]; b++) {
            const ptrdiff_t row = (D->start[d] + a * D->dilation) * H->size + H->start[h]
                                  + b * H->dilation;
            const T *line = x + row * W->size + W->start[w];
            for (ptrdiff_t c = W->low[w]; c < W->high[w]; c++) {
                const T value = line[c * W->dilation];
                const int larger = (value > best) | (value != value);
                best = larger ? value : best;
                tap = larger ? (I)((a * H->kernel + b) * W->kernel + c) : tap;
            }
        }
    }
    *y = best;
    if (out) *out = (uint8_t)tap;
}

static void OF(maxima)(const convcore_maxima *m, const void *from, ptrdiff_t d, ptrdiff_t h,
                       void *to, uint8_t *out, void *scratch)
{
    const ptrdiff_t columns = m->axis[2].out;
    const T *x = from;
    T *y = to;
    if (m->channels)
        OF(maxima_of_pixels)(m, x, d, h, y, out);
    else if (m->axis[2].stride && columns >= LEAST_STAGED)
        OF(maxima_of_line)(m, x, d, h, y, out, scratch);
    else if (m->axis[2].stride)
        OF(maxima_of_short_line)(m, x, d, h, y, out);
    else
        for (ptrdiff_t w = 0; w < columns; w++)
            OF(maximum)(m, x, d, h, w, y + w, out ? out + w : NULL);
}

/* ---- the gradient ---- */

/* sums[i] += gy[i] where tap `tap` won */
INLINE void OF(add_won)(const T *gy, const uint8_t *taps, ptrdiff_t count, uint8_t tap, T *sums)
{
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) sums[i] += taps[i] == tap ? gy[i] : 0;
}

/* The tap of window j under which input i lies, or -1. */
INLINE ptrdiff_t OF(tap_of)(const convcore_windows *w, ptrdiff_t j, ptrdiff_t i)
{
    const ptrdiff_t shift = i - w->start[j];
    if (w->dilation == 1) return shift >= 0 && shift < w->high[j] ? shift : -1;
    return shift >= 0 && shift % w->dilation == 0 && shift / w->dilation < w->high[j]
               ? shift / w->dilation
               : -1;
}

static void OF(add_pixels)(const convcore_windows *W, const T *gy, const uint8_t *taps,
                           ptrdiff_t tap, ptrdiff_t channels, T *gx)
{
    for (ptrdiff_t j = 0; j < W->out; j++) {
        for (ptrdiff_t c = W->low[j]; c < W->high[j]; c++)
            OF(add_won)(gy + j * channels, taps + j * channels, channels, (uint8_t)(tap + c),
                        gx + (W->start[j] + c * W->dilation) * channels);
    }
}

/* One line of the gradient of channels_last images. */
static void OF(maxima_gradient)(const convcore_maxima *m, const void *grad, const uint8_t *taps,
                                ptrdiff_t d, ptrdiff_t h, void *to)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    const ptrdiff_t channels = m->channels;
    const T *gy = grad;
    T *gx = to;
    memset(gx, 0, W->size * channels * sizeof(T));
    for (ptrdiff_t j = D->first[d]; j < D->end[d]; j++) {
        const ptrdiff_t a = OF(tap_of)(D, j, d);
        for (ptrdiff_t k = H->first[h]; a >= 0 && k < H->end[h]; k++) {
            const ptrdiff_t b = OF(tap_of)(H, k, h), tap = (a * H->kernel + b) * W->kernel;
            const ptrdiff_t line = (j * H->out + k) * W->out * channels;
            if (b >= 0) OF(add_pixels)(W, gy + line, taps + line, tap, channels, gx);
        }
    }
}

/* The gradient of one plane. */
static void OF(maxima_gradient_plane)(const convcore_maxima *m, const void *grad,
                                      const uint8_t *taps, void *to)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    const T *gy = grad;
    T *gx = to;
    ptrdiff_t shift[CONVCORE_NOWHERE], count = 0;
    for (ptrdiff_t a = 0; a < D->kernel; a++)
        for (ptrdiff_t b = 0; b < H->kernel; b++)
            for (ptrdiff_t c = 0; c < W->kernel; c++)
                shift[count++] = (a * D->dilation * H->size + b * H->dilation) * W->size
                                 + c * W->dilation;
    memset(gx, 0, D->size * H->size * W->size * sizeof(T));
    for (ptrdiff_t d = 0; d < D->out; d++) {
        for (ptrdiff_t h = 0; h < H->out; h++, gy += W->out, taps += W->out) {
            const ptrdiff_t line = (D->start[d] * H->size + H->start[h]) * W->size;
            for (ptrdiff_t w = 0; w < W->out; w++)
                if (taps[w] != CONVCORE_NOWHERE) gx[line + W->start[w] + shift[taps[w]]] += gy[w];
        }
    }
}

#undef HELD
#undef LEAST_STAGED
