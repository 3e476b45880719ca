/* From planes (NCHW), or from bfloat16, to rows of channels (NHWC) in float32, and back. */
#ifndef CONVCORE_NHWC_ROWS_H
#define CONVCORE_NHWC_ROWS_H

#include "runtime/bfloat16_memory.h"
#include "runtime/vec.h"

/* `count` floats, and then whatever, or zeros where that would read from `end` on. */
INLINE vec load_within(const float *p, ptrdiff_t count, const float *end)
{
    return end - p >= LANES ? load(p) : load_up_to(p, count);
}

/* Every second of 2 * LANES - 1 floats. */
INLINE vec second_lanes(vec low, vec high)
{
#if LANES > 1
#define SECOND_LANE(half, l) (2 * (l) < LANES ? 2 * (l) : 2 * (l) + 1)
    return CHOOSE(low, high, SECOND_LANE, 0);
#undef SECOND_LANE
#else
    (void)high;
    return low;
#endif
}

/* `count` floats that are `step` apart, at most a vector's, and then whatever. */
INLINE vec load_stepped(const float *p, ptrdiff_t step, ptrdiff_t count, const float *end)
{
    if (step == 1) return load_within(p, count, end);
    if (step == 2) {
        ptrdiff_t all = 2 * count - 1, high = all - (LANES - 1);
        vec low = load_within(p, min_of(all, LANES), end);
        if (high <= 0) return second_lanes(low, low);
        return second_lanes(low, load_within(p + LANES - 1, high, end));
    }
    ALIGNED float v[LANES] = {0};
    for (ptrdiff_t i = 0; i < count; i++) v[i] = p[i * step];
    return load(v);
}

/* Turn `lanes` channels of `count` pixels, at most a vector's of both, into rows; zeros fill up. */
INLINE void turn_to_rows(const float *x, ptrdiff_t channel, ptrdiff_t lanes, ptrdiff_t step,
                         ptrdiff_t count, const float *end, float *out, ptrdiff_t row)
{
    vec v[LANES];
    if (lanes >= LANES && count == LANES && step == 1) {
        UNROLLED for (int l = 0; l < LANES; l++) v[l] = load(x + l * channel);
    } else {
        for (int l = 0; l < LANES; l++)
            v[l] = l < lanes ? load_stepped(x + l * channel, step, count, end) : (vec){0};
    }
    transpose(v);
    if (count == LANES)
        UNROLLED for (int i = 0; i < LANES; i++) store(out + i * row, v[i]);
    else
        for (ptrdiff_t i = 0; i < count; i++) store(out + i * row, v[i]);
}

/* out[(j * count + i) * row + c] = x[j * line + i * step + c * channel] for `lines` lines of `count`
 * pixels, channels filled up with zeros to whole vectors.  Reads before `end` only. */
static MAYBE_UNUSED void nhwc_of_nchw(const float *x, ptrdiff_t channel, ptrdiff_t channels,
                                      ptrdiff_t step, ptrdiff_t count, ptrdiff_t line,
                                      ptrdiff_t lines, const float *end, float *out, ptrdiff_t row)
{
    /* A few planes at a time, so that each is read in order. */
    for (ptrdiff_t c = 0; c < channels; c += LANES)
        for (ptrdiff_t j = 0; j < lines; j++) {
            const float *from = x + j * line + c * channel;
            float *to = out + j * count * row + c;
            if (channel == 1) {
                for (ptrdiff_t i = 0; i < count; i++)
                    store(to + i * row, load_up_to(from + i * step, channels - c));
                continue;
            }
            for (ptrdiff_t i = 0; i < count; i += LANES) {
                /* Where there are enough, the last pixels overlap those before: a whole vector. */
                if (count > LANES && i > count - LANES) i = count - LANES;
                turn_to_rows(from + i * step, channel, channels - c, step,
                             min_of(count - i, LANES), end, to + i * row, row);
            }
        }
}

/* y[i + c * channel] = rows[i * row + c] for `count` pixels; rows of whole vectors. */
static MAYBE_UNUSED void nchw_of_nhwc(const float *rows, ptrdiff_t row, ptrdiff_t count,
                                      float *y, ptrdiff_t channel, ptrdiff_t channels)
{
    for (ptrdiff_t c = 0; c < channels; c += LANES)
        for (ptrdiff_t i = 0; i < count; i += LANES) {
            if (count > LANES && i > count - LANES) i = count - LANES;
            vec v[LANES];
            const float *from = rows + i * row + c;
            float *to = y + i + c * channel;
            if (count - i >= LANES)
                UNROLLED for (int k = 0; k < LANES; k++) v[k] = load(from + k * row);
            else
                for (int k = 0; k < LANES; k++)
                    v[k] = k < count - i ? load(from + k * row) : (vec){0};
            transpose(v);
            if (count - i >= LANES && channels - c >= LANES)
                UNROLLED for (int k = 0; k < LANES; k++) store(to + k * channel, v[k]);
            else
                for (ptrdiff_t k = 0; k < LANES && k < channels - c; k++)
                    store_up_to(to + k * channel, v[k], min_of(count - i, LANES));
        }
}

/* As nhwc_of_nchw, of bfloat16 whose channels lie side by side. */
static MAYBE_UNUSED void rows_of_bfloat16(const float *x, ptrdiff_t channel, ptrdiff_t channels,
                                          ptrdiff_t step, ptrdiff_t count, ptrdiff_t line,
                                          ptrdiff_t lines, const float *end, float *out,
                                          ptrdiff_t row)
{
    (void)channel, (void)end;
    for (ptrdiff_t j = 0; j < lines; j++)
        for (ptrdiff_t i = 0; i < count; i++, out += row) {
            const void *from = element(1, x, j * line + i * step);
            for (ptrdiff_t c = 0; c < channels; c += LANES)
                store(out + c, load_elements(1, from, c, channels - c));
        }
}

/* The way back: pixel i of y, in bfloat16, begins i * step elements after the first. */
static MAYBE_UNUSED void bfloat16_of_rows(const float *rows, ptrdiff_t row, ptrdiff_t count,
                                          float *y, ptrdiff_t step, ptrdiff_t channels)
{
    for (ptrdiff_t i = 0; i < count; i++, rows += row)
        for (ptrdiff_t c = 0; c < channels; c += LANES)
            store_elements(1, y, i * step + c, load_up_to(rows + c, channels - c), channels - c);
}

/* Floats from what is turned to what is asked for: lanes lie pages apart. */
enum { AHEAD = 64 };

/* out[i][l] = w[l * lane + i] for `count` rows of `lanes` floats, filled up with zeros to whole
 * vectors.  Reads before `end` only. */
static MAYBE_UNUSED void rows_of_lanes(const float *w, const float *end, ptrdiff_t lane,
                                       ptrdiff_t lanes, ptrdiff_t count, float *const *out)
{
    for (ptrdiff_t l = 0; l < lanes; l += LANES)
        for (ptrdiff_t i = 0; i < count; i += LANES) {
            vec v[LANES];
            const float *from = w + l * lane + i;
            for (int k = 0; k < LANES; k++, from += lane) {
                PREFETCH(from + AHEAD);
                v[k] = k >= lanes - l        ? (vec){0}
                       : end - from >= LANES ? load(from)
                                             : load_first(from, end - from);
            }
            transpose(v);
            for (ptrdiff_t k = 0; k < LANES && k < count - i; k++) store(out[i + k] + l, v[k]);
        }
}

#endif
