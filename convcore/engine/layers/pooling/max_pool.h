/* Max pooling, line by line, and its gradient; for numbers of type T and integers I of the same
 * width.
 *
 * The number of the tap that won is a byte: an eighth of what an index takes.  The first of equal
 * elements wins, and a NaN over all, the last one over the others.
 *
 * What lies side by side is worked on in pieces of a constant length, which compilers make vectors
 * of without loops around them.  In NHWC a piece is channels of a pixel; where there are fewer, it
 * goes on into the next pixel, which is written over it later.  In NCHW it is windows along a line:
 * of each tap, every stride-th element of the line, copied, with -inf around it.
 */

#define PIECE CONVCORE_PIECE

/* Fewer windows than this to a line are done one by one. */
#define LEAST_WINDOWS 4

INLINE void OF(as_bytes)(const I *taps, ptrdiff_t count, uint8_t *out)
{
    IVDEP for (ptrdiff_t i = 0; i < count; i++) out[i] = (uint8_t)taps[i];
}

/* The number of a window's first tap that is in the image, from its first rows' and its column. */
INLINE I OF(first_tap)(const convcore_max_pool *m, ptrdiff_t d, ptrdiff_t h, ptrdiff_t w)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    if (D->low[d] >= D->high[d] || H->low[h] >= H->high[h] || W->low[w] >= W->high[w])
        return CONVCORE_NOWHERE;
    return (I)((D->low[d] * H->kernel + H->low[h]) * W->kernel + W->low[w]);
}

/* Elements of a window: where they lie, of how many there are, and their taps. */
typedef struct {
    const T *at[CONVCORE_NOWHERE];
    I tap[CONVCORE_NOWHERE];
    int count;
} OF(window);

/* best[i] = the largest of `n_taps` taps of window i, and of best[i] unless `begin`, and its tap. */
INLINE void OF(max_and_taps)(const int n_taps, const int begin, const T *const *at, const I *tap,
                             ptrdiff_t shift, ptrdiff_t count, T *best, I *taps)
{
    const T *v[9];
    UNROLLED for (int t = 0; t < n_taps; t++) v[t] = at[t] + shift;
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        T held = begin ? v[0][i] : best[i];
        I won = begin ? tap[0] : taps[i];
        UNROLLED for (int t = begin; t < n_taps; t++) {
            const T value = v[t][i];
            const int larger = (value > held) | (value != value);
            held = larger ? value : held;
            won = larger ? tap[t] : won;
        }
        best[i] = held;
        taps[i] = won;
    }
}

/* The value if it is chosen.  Of a single choice compilers make a branch, unless it is one of
 * bits. */
INLINE T OF(choose)(const int alone, int chosen, T value, T other)
{
    I bits, others;
    if (!alone) return chosen ? value : other;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&others, &other, sizeof others);
    bits = (bits & -(I)chosen) | (others & ~-(I)chosen);
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE void OF(max_alone)(const int n_taps, const int begin, const T *const *at, ptrdiff_t shift,
                          ptrdiff_t count, T *best)
{
    const T *v[9];
    UNROLLED for (int t = 0; t < n_taps; t++) v[t] = at[t] + shift;
    IVDEP for (ptrdiff_t i = 0; i < count; i++) {
        T held = begin ? v[0][i] : best[i];
        UNROLLED for (int t = begin; t < n_taps; t++) {
            const T value = v[t][i];
            held = OF(choose)(n_taps == begin + 1, (value > held) | (value != value), value, held);
        }
        best[i] = held;
    }
}

#define TAKE(n_taps)                                                                            \
    case n_taps:                                                                                \
        if (taps)                                                                               \
            OF(max_and_taps)(n_taps, begin, w->at + t, w->tap + t, shift, count, best, taps);   \
        else                                                                                    \
            OF(max_alone)(n_taps, begin, w->at + t, shift, count, best);                        \
        t += n_taps;                                                                            \
        break;

/* Taps [t, ...) of windows, as many as one loop takes; returns how far that is. */
INLINE int OF(max_of_some)(const OF(window) *w, int t, const int begin, ptrdiff_t shift,
                           ptrdiff_t count, T *best, I *taps)
{
    const int left = w->count - t;
    switch (left >= 9 ? 9 : left >= 6 ? 6 : left == 5 ? 4 : left) {
        TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(6) TAKE(9)
    }
    return t;
}

#undef TAKE

/* All taps of `count` windows side by side. */
INLINE void OF(max_of_all)(const OF(window) *w, const int begin, ptrdiff_t shift, ptrdiff_t count,
                           T *best, I *taps)
{
    int t = OF(max_of_some)(w, 0, begin, shift, count, best, taps);
    while (t < w->count) t = OF(max_of_some)(w, t, 0, shift, count, best, taps);
}

/* ---- NHWC ---- */

/* What one window of NHWC images sees. */
INLINE void OF(window_nhwc)(const convcore_max_pool *m, const T *x, ptrdiff_t d, ptrdiff_t h,
                            ptrdiff_t w, OF(window) *found)
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

/* `count` channels of one window, those `shift` beyond what it sees. */
INLINE void OF(max_of_channels)(const OF(window) *w, ptrdiff_t shift, ptrdiff_t count, T *y,
                                uint8_t *out)
{
    I taps[PIECE];
    if (!w->count)
        for (ptrdiff_t i = 0; i < count; i++) y[i] = (T)-INFINITY, taps[i] = CONVCORE_NOWHERE;
    else if (out)
        OF(max_of_all)(w, 1, shift, count, y, taps);
    else
        OF(max_of_all)(w, 1, shift, count, y, NULL);
    if (out) OF(as_bytes)(taps, count, out);
}

/* Channels of a window that has `n_taps` taps, one by one. */
INLINE void OF(max_one_by_one)(const OF(window) *w, const int n_taps, ptrdiff_t shift,
                               ptrdiff_t count, T *y, uint8_t *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        T best = (T)-INFINITY;
        I tap = n_taps ? w->tap[0] : CONVCORE_NOWHERE;
        for (int t = 0; t < n_taps; t++) {
            const T value = w->at[t][shift + i];
            const int larger = (value > best) | (value != value);
            best = larger ? value : best;
            tap = larger ? w->tap[t] : tap;
        }
        y[i] = best;
        if (out) out[i] = (uint8_t)tap;
    }
}

/* Fewer than PIECE of them, of which there are few. */
static NOINLINE void OF(max_of_last_channels)(const OF(window) *w, ptrdiff_t shift, ptrdiff_t count,
                                           T *y, uint8_t *out)
{
    if (w->count == 4)  /* of 2x2: a constant to the compiler */
        OF(max_one_by_one)(w, 4, shift, count, y, out);
    else
        OF(max_one_by_one)(w, w->count, shift, count, y, out);
}

static void OF(max_pool_nhwc)(const convcore_max_pool *m, const T *x, ptrdiff_t d, ptrdiff_t h,
                              T *y, uint8_t *out)
{
    const convcore_windows *W = &m->axis[2];
    const ptrdiff_t channels = m->channels;
    const T *end = x + m->axis[0].size * m->axis[1].size * W->size * channels;
    OF(window) window;
    ptrdiff_t looked = 0;
    for (ptrdiff_t w = 0; w < W->out; w++, y += channels) {
        /* Windows with the same taps in the image see the same, shifted. */
        if (w == 0 || W->low[w] != W->low[w - 1] || W->high[w] != W->high[w - 1])
            OF(window_nhwc)(m, x, d, h, looked = w, &window);
        const ptrdiff_t shift = (W->start[w] - W->start[looked]) * channels;
        ptrdiff_t room = (W->out - w) * channels;
        if (window.count && end - window.at[window.count - 1] - shift < room)
            room = end - window.at[window.count - 1] - shift;
        for (ptrdiff_t c = 0; c < channels; c += PIECE) {
            if (room - c >= PIECE)
                OF(max_of_channels)(&window, shift + c, PIECE, y + c, out ? out + c : NULL);
            else
                OF(max_of_last_channels)(&window, shift + c, channels - c, y + c,
                                            out ? out + c : NULL);
        }
        if (out) out += channels;
    }
}

/* ---- NCHW ---- */

/* `count` elements of a line from input `from` on, -inf where that is outside of it. */
static NOINLINE void OF(pad_line)(const T *line, ptrdiff_t size, ptrdiff_t from, ptrdiff_t count,
                               T *edge)
{
    const ptrdiff_t first = from < 0 ? -from : 0, last = size - from < count ? size - from : count;
    IVDEP for (ptrdiff_t i = 0; i < count; i++) edge[i] = (T)-INFINITY;
    if (first < last) memcpy(edge + first, line + from + first, (last - first) * sizeof(T));
}

/* What a line of windows sees: of each tap every stride-th element of a line, side by side. */
INLINE void OF(windows_nchw)(const convcore_max_pool *m, const ptrdiff_t stride, const T *x,
                             ptrdiff_t d, ptrdiff_t h, T *scratch, OF(window) *found)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    const ptrdiff_t pieces = (W->out + PIECE - 1) / PIECE, inputs = D->size * H->size * W->size;
    const ptrdiff_t reach = (W->kernel - 1) * W->dilation + 1, seen = (W->out - 1) * stride + reach;
    const ptrdiff_t span = (pieces * PIECE - 1) * stride + reach, pitch = span / stride + 1;
    const int within = W->before <= 0 && seen - W->before <= W->size;
    found->count = 0;
    for (ptrdiff_t a = D->low[d]; a < D->high[d]; a++) {
        for (ptrdiff_t b = H->low[h]; b < H->high[h]; b++) {
            const ptrdiff_t row = (D->start[d] + a * D->dilation) * H->size + H->start[h]
                                  + b * H->dilation;
            const ptrdiff_t at = row * W->size - W->before, whole = inputs - at >= span;
            const T *line = scratch;
            if (within && (whole || stride != 1)) {
                line = x + at;
            } else {
                OF(pad_line)(x + row * W->size, W->size, -W->before, span, scratch);
                scratch += span;
            }
            if (stride != 1) {
                OF(deinterleave)(line, within && !whole ? seen : span, stride, scratch, pitch);
                line = scratch;
                scratch += stride * pitch;
            }
            for (ptrdiff_t c = 0; c < W->kernel; c++) {
                const ptrdiff_t shift = c * W->dilation;
                found->tap[found->count] = (I)((a * H->kernel + b) * W->kernel + c);
                found->at[found->count++] = line + shift % stride * pitch + shift / stride;
            }
        }
    }
}

/* Windows [p, p + PIECE) of a line. */
INLINE void OF(max_of_windows)(const convcore_max_pool *m, const OF(window) *window, ptrdiff_t d,
                               ptrdiff_t h, ptrdiff_t p, ptrdiff_t count, T *best, I *taps)
{
    const convcore_windows *W = &m->axis[2];
    const ptrdiff_t last = p + count - 1;
    /* -inf from around the line must not win. */
    if (window->count && !W->low[p] && W->high[p] == W->kernel && !W->low[last]
        && W->high[last] == W->kernel) {
        OF(max_of_all)(window, 1, p, PIECE, best, taps);
    } else {
        for (ptrdiff_t i = 0; i < PIECE; i++) best[i] = (T)-INFINITY;
        for (ptrdiff_t i = 0; taps && i < count; i++) taps[i] = OF(first_tap)(m, d, h, p + i);
        if (window->count) OF(max_of_all)(window, 0, p, PIECE, best, taps);
    }
}

/* Copies of a constant size are moves, not calls. */
#define MOVE(size)                                   \
    if (count & (size)) {                               \
        memcpy(to, from, (size) * sizeof(*to));         \
        to += (size), from += (size);                   \
    }

INLINE void OF(copy_numbers)(T *to, const T *from, ptrdiff_t count)
{
    MOVE(16) MOVE(8) MOVE(4) MOVE(2) MOVE(1)
}

INLINE void OF(copy_bytes)(uint8_t *to, const uint8_t *from, ptrdiff_t count)
{
    MOVE(16) MOVE(8) MOVE(4) MOVE(2) MOVE(1)
}

#undef MOVE

/* `windows_nchw` for the line's stride; the common ones are constants to the compiler. */
INLINE void OF(windows_at_stride)(const convcore_max_pool *m, const T *x, ptrdiff_t d, ptrdiff_t h,
                                  T *scratch, OF(window) *found)
{
    const ptrdiff_t stride = m->axis[2].stride;
    if (stride == 1)
        OF(windows_nchw)(m, 1, x, d, h, scratch, found);
    else if (stride == 2)
        OF(windows_nchw)(m, 2, x, d, h, scratch, found);
    else
        OF(windows_nchw)(m, stride, x, d, h, scratch, found);
}

static void OF(max_pool_nchw)(const convcore_max_pool *m, const T *x, ptrdiff_t d, ptrdiff_t h,
                              T *y, uint8_t *out, T *scratch)
{
    OF(window) window;
    OF(windows_at_stride)(m, x, d, h, scratch, &window);
    for (ptrdiff_t p = 0; p < m->axis[2].out; p += PIECE) {
        const ptrdiff_t left = m->axis[2].out - p, count = left < PIECE ? left : PIECE;
        T best[PIECE];
        I taps[PIECE] = {0};
        uint8_t bytes[PIECE];
        OF(max_of_windows)(m, &window, d, h, p, count, best, out ? taps : NULL);
        OF(copy_numbers)(y + p, best, count);
        if (out) {
            OF(as_bytes)(taps, PIECE, bytes);
            OF(copy_bytes)(out + p, bytes, count);
        }
    }
}

/* One window of a plane. */
static void OF(max_of_window)(const convcore_max_pool *m, const T *x, ptrdiff_t d, ptrdiff_t h,
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

static void OF(max_pool)(const convcore_max_pool *m, const void *from, ptrdiff_t d, ptrdiff_t h,
                         void *to, uint8_t *out, void *scratch)
{
    const convcore_windows *W = &m->axis[2];
    const T *x = from;
    T *y = to;
    if (m->channels)
        OF(max_pool_nhwc)(m, x, d, h, y, out);
    else if (W->out < LEAST_WINDOWS || !W->stride)
        for (ptrdiff_t w = 0; w < W->out; w++)
            OF(max_of_window)(m, x, d, h, w, y + w, out ? out + w : NULL);
    else
        OF(max_pool_nchw)(m, x, d, h, y, out, scratch);
}

/* ---- the gradient ---- */

/* sums[i] += gy[i] where tap `tap` won */
INLINE void OF(add_won)(const T *gy, const uint8_t *taps, ptrdiff_t count, uint8_t tap, T *sums)
{
    IVDEP for (ptrdiff_t i = 0; i < count; i++) sums[i] += taps[i] == tap ? gy[i] : 0;
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

static void OF(add_windows)(const convcore_windows *W, const T *gy, const uint8_t *taps,
                            ptrdiff_t tap, ptrdiff_t channels, T *gx)
{
    for (ptrdiff_t j = 0; j < W->out; j++) {
        for (ptrdiff_t c = W->low[j]; c < W->high[j]; c++)
            OF(add_won)(gy + j * channels, taps + j * channels, channels, (uint8_t)(tap + c),
                        gx + (W->start[j] + c * W->dilation) * channels);
    }
}

/* A line of windows that see a line of inputs, and the number of its first tap there. */
typedef struct {
    const T *gy;
    const uint8_t *taps;
    ptrdiff_t tap;
} OF(seen);

/* The lines of windows that see line (d, h); returns how many there are. */
INLINE int OF(windows_over)(const convcore_max_pool *m, const T *gy, const uint8_t *taps,
                            ptrdiff_t d, ptrdiff_t h, OF(seen) *seen)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    int count = 0;
    for (ptrdiff_t j = D->first[d]; j < D->end[d]; j++) {
        const ptrdiff_t a = OF(tap_of)(D, j, d);
        for (ptrdiff_t k = H->first[h]; a >= 0 && k < H->end[h]; k++) {
            const ptrdiff_t b = OF(tap_of)(H, k, h), line = (j * H->out + k) * W->out * m->channels;
            if (b >= 0)
                seen[count++] = (OF(seen)){gy + line, taps + line, (a * H->kernel + b) * W->kernel};
        }
    }
    return count;
}

#define ELEMENT(p, lane) (p)[lane]

/* gy where tap `tap` won, else zeros: LINE_LANES of them. */
INLINE LINE OF(won)(const T *gy, const uint8_t *taps, ptrdiff_t tap)
{
#if LANES > 1
    const LINE_NUMBERS number = {EACH_LINE_LANE(ELEMENT, taps)};
    return (LINE)((LINE_NUMBERS)LOAD(gy) & (LINE_NUMBERS)(number == (I)tap));
#else
    return *taps == tap ? *gy : 0;
#endif
}

/* Vectors of channels of the gradient of an input in column w: of all windows that it won. */
INLINE void OF(add_channels)(const int vectors, const convcore_windows *W, const OF(seen) *seen,
                             int lines, ptrdiff_t w, ptrdiff_t channels, ptrdiff_t c, T *gx)
{
    LINE sums[4] = {{0}};
    for (int i = 0; i < lines; i++) {
        for (ptrdiff_t j = W->first[w]; j < W->end[w]; j++) {
            const ptrdiff_t tap = OF(tap_of)(W, j, w), at = j * channels + c;
            const T *gy = seen[i].gy + at;
            const uint8_t *taps = seen[i].taps + at;
            if (tap < 0) continue;
            UNROLLED for (int v = 0; v < vectors; v++)
                sums[v] += OF(won)(gy + v * LINE_LANES, taps + v * LINE_LANES, seen[i].tap + tap);
        }
    }
    UNROLLED for (int v = 0; v < vectors; v++) STORE(gx + c + v * LINE_LANES, sums[v]);
}

/* Channels from c on, one by one. */
static NOINLINE void OF(add_last_channels)(const convcore_windows *W, const OF(seen) *seen,
                                           int lines, ptrdiff_t w, ptrdiff_t channels,
                                           ptrdiff_t c, T *gx)
{
    memset(gx + c, 0, (channels - c) * sizeof(T));
    for (int i = 0; i < lines; i++) {
        for (ptrdiff_t j = W->first[w]; j < W->end[w]; j++) {
            const ptrdiff_t tap = OF(tap_of)(W, j, w), at = j * channels + c;
            if (tap >= 0)
                OF(add_won)(seen[i].gy + at, seen[i].taps + at, channels - c,
                            (uint8_t)(seen[i].tap + tap), gx + c);
        }
    }
}

/* One line of the gradient of NHWC images, of windows at a stride: no more of them see an input
 * than there are taps. */
static void OF(gradient_at_stride)(const convcore_max_pool *m, const T *gy, const uint8_t *taps,
                                   ptrdiff_t d, ptrdiff_t h, T *gx)
{
    const convcore_windows *W = &m->axis[2];
    const ptrdiff_t channels = m->channels;
    const T *end = gy + m->axis[0].out * m->axis[1].out * W->out * channels;
    OF(seen) seen[CONVCORE_NOWHERE];
    const int lines = OF(windows_over)(m, gy, taps, d, h, seen);
    for (ptrdiff_t w = 0; w < W->size; w++, gx += channels) {
        ptrdiff_t room = (W->size - w) * channels;
        if (lines && end - seen[lines - 1].gy - (W->end[w] - 1) * channels < room)
            room = end - seen[lines - 1].gy - (W->end[w] - 1) * channels;
        ptrdiff_t c = 0;
        for (; channels - c >= 4 * LINE_LANES; c += 4 * LINE_LANES)
            OF(add_channels)(4, W, seen, lines, w, channels, c, gx);
        for (; c < channels && room - c >= LINE_LANES; c += LINE_LANES)
            OF(add_channels)(1, W, seen, lines, w, channels, c, gx);
        if (c < channels) OF(add_last_channels)(W, seen, lines, w, channels, c, gx);
    }
}

/* The same of any windows, of which any number may see an input. */
static void OF(gradient_of_any)(const convcore_max_pool *m, const T *gy, const uint8_t *taps,
                                ptrdiff_t d, ptrdiff_t h, T *gx)
{
    const convcore_windows *D = &m->axis[0], *H = &m->axis[1], *W = &m->axis[2];
    const ptrdiff_t channels = m->channels;
    memset(gx, 0, W->size * channels * sizeof(T));
    for (ptrdiff_t j = D->first[d]; j < D->end[d]; j++) {
        const ptrdiff_t a = OF(tap_of)(D, j, d);
        for (ptrdiff_t k = H->first[h]; a >= 0 && k < H->end[h]; k++) {
            const ptrdiff_t b = OF(tap_of)(H, k, h), tap = (a * H->kernel + b) * W->kernel;
            const ptrdiff_t line = (j * H->out + k) * W->out * channels;
            if (b >= 0) OF(add_windows)(W, gy + line, taps + line, tap, channels, gx);
        }
    }
}

/* One line of the gradient of NHWC images. */
static void OF(max_pool_gradient_nhwc)(const convcore_max_pool *m, const void *gy,
                                       const uint8_t *taps, ptrdiff_t d, ptrdiff_t h, void *gx)
{
    if (m->axis[0].stride && m->axis[1].stride && m->axis[2].stride)
        OF(gradient_at_stride)(m, gy, taps, d, h, gx);
    else
        OF(gradient_of_any)(m, gy, taps, d, h, gx);
}

/* The gradient of one plane of NCHW.  Taps may come from a user's hook: nothing is written outside
 * of the plane, whatever they are. */
static void OF(max_pool_gradient_nchw)(const convcore_max_pool *m, const void *grad,
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
    const ptrdiff_t size = D->size * H->size * W->size;
    memset(gx, 0, size * sizeof(T));
    for (ptrdiff_t d = 0; d < D->out; d++) {
        for (ptrdiff_t h = 0; h < H->out; h++, gy += W->out, taps += W->out) {
            const ptrdiff_t line = (D->start[d] * H->size + H->start[h]) * W->size;
            for (ptrdiff_t w = 0; w < W->out; w++) {
                if (taps[w] >= count) continue; /* CONVCORE_NOWHERE too */
                const ptrdiff_t at = line + W->start[w] + shift[taps[w]];
                if (at >= 0 && at < size) gx[at] += gy[w];
            }
        }
    }
}

#undef ELEMENT
#undef PIECE
#undef LEAST_WINDOWS
