/* Halo tiles (`halo`): rows of the input, copied with zeros around, so that taps are plain offsets.
 *
 * A direct convolution reads every input once for each tap.  The rows that a few rows of outputs see
 * are copied into a halo first: it stays in the first cache, its padding needs no test, and where
 * the stride is S every S-th column lies side by side, so that vectors of neighbouring outputs read
 * vectors of neighbouring inputs.
 */
#ifndef CONVCORE_HALO_TILE_H
#define CONVCORE_HALO_TILE_H

#include "arguments.h"
#include "runtime/vec.h"

/* Lanes 2 l + half of a pair of vectors, and the inverse. */
#define ALTERNATE(half, l) (2 * (l) + (half))
#define ZIPPED(half, l) ((half) + (l) / 2 + ((l) & 1) * LANES)

/* Keep a pointer: GCC would rather add up, and spill, every sum of offsets that loads are made at. */
#if defined(__GNUC__)
#define HOLD(p) __asm__("" : "+r"(p))
#else
#define HOLD(p)
#endif

/* Elements 0, 2, 4 ... and 1, 3, 5 ... of a pair of vectors. */
INLINE void unzip(vec a, vec b, vec *even, vec *odd)
{
#if LANES > 1
    *even = CHOOSE(a, b, ALTERNATE, 0);
    *odd = CHOOSE(a, b, ALTERNATE, 1);
#else
    *even = a, *odd = b;
#endif
}

INLINE void zip(vec even, vec odd, vec *a, vec *b)
{
#if LANES > 1
    *a = CHOOSE(even, odd, ZIPPED, 0);
    *b = CHOOSE(even, odd, ZIPPED, LANES / 2);
#else
    *a = even, *b = odd;
#endif
}

/* The first `count` lanes, and zeros. */
INLINE vec first_lanes(vec v, ptrdiff_t count)
{
#if LANES > 1
#define ALL_BITS(half, l) -1
    static const int masks[2 * LANES] = {EACH_LANE(ALL_BITS, 0)};
    return (vec)((lane_numbers)v & (lane_numbers)load((const float *)masks + LANES - count));
#else
    return count ? v : 0;
#endif
}

/* `count` < LANES floats and zeros, by one load where that stays before `end`. */
INLINE vec load_some(const float *p, ptrdiff_t count, const float *end)
{
    return p + LANES <= end ? first_lanes(load(p), count) : load_first(p, count);
}

INLINE void clear(float *p, ptrdiff_t count) { memset(p, 0, (size_t)count * sizeof(float)); }

/* Copy n floats; may write zeros to the LANES behind them. */
INLINE void copy_line(const float *from, ptrdiff_t n, const float *end, float *to)
{
    if (n < LANES) {
        store(to, load_some(from, n, end));
        return;
    }
    for (ptrdiff_t i = 0; i + LANES <= n; i += LANES) store(to + i, load(from + i));
    store(to + n - LANES, load(from + n - LANES));
}

/* Copy every other of n floats to `even`, from the first on, and the others to `odd`; may write
 * zeros to the LANES behind either. */
INLINE void halve_line(const float *from, ptrdiff_t n, const float *end, float *even, float *odd)
{
    vec a, b;
    ptrdiff_t half = n / 2, i = 0;
    if (half < LANES) {
        if (n < LANES) {
            a = load_some(from, n, end);
            b = (vec){0};
        } else {
            a = load(from);
            b = n < 2 * LANES ? load_some(from + LANES, n - LANES, end) : load(from + LANES);
        }
        unzip(a, b, &a, &b);
        store(even, a);
        store(odd, b);
    } else {
        for (;;) {
            unzip(load(from + 2 * i), load(from + 2 * i + LANES), &a, &b);
            store(even + i, a);
            store(odd + i, b);
            if (i + LANES == half) break;
            i = i + 2 * LANES <= half ? i + LANES : half - LANES;
        }
    }
    if (n & 1) even[half] = from[n - 1];
}

/* Copy n inputs, the first of which is at place q, to a line of a halo. */
INLINE void split_line(const float *from, ptrdiff_t n, const float *end, ptrdiff_t stride,
                       ptrdiff_t q, ptrdiff_t segment, float *line)
{
    if (stride == 1) {
        copy_line(from, n, end, line + q);
    } else if (stride == 2) {
        halve_line(from, n, end, line + q % 2 * segment + q / 2,
                   line + (q + 1) % 2 * segment + (q + 1) / 2);
    } else {
        for (ptrdiff_t i = 0; i < n; i++, q++) line[q % stride * segment + q / stride] = from[i];
    }
}

/* Put n outputs together from lines of every `phases`-th, `segment` apart. */
INLINE void merge_line(const float *from, ptrdiff_t segment, ptrdiff_t phases, ptrdiff_t n,
                       float *to)
{
    if (phases == 2) {
        vec a, b;
        ptrdiff_t half = n / 2, i = 0;
        for (; i + LANES <= half; i += LANES) {
            zip(load(from + i), load(from + segment + i), &a, &b);
            store(to + 2 * i, a);
            store(to + 2 * i + LANES, b);
        }
        if (i < half) {
            zip(load(from + i), load(from + segment + i), &a, &b);
            store_up_to(to + 2 * i, a, 2 * (half - i));
            if (2 * (half - i) > LANES)
                store_up_to(to + 2 * i + LANES, b, 2 * (half - i) - LANES);
        }
        if (n & 1) to[n - 1] = from[half];
    } else {
        for (ptrdiff_t b = 0; b < phases; b++)
            for (ptrdiff_t j = 0; b + phases * j < n; j++) to[b + phases * j] = from[b * segment + j];
    }
}

/* Outputs of one phase, of which there are `out` in all. */
INLINE ptrdiff_t outputs_of(const convcore_direct_axis *axis, ptrdiff_t phase)
{
    return (axis->out - phase + axis->phases - 1) / axis->phases;
}

/* Inputs between the first and the last that any output sees, with the padding. */
INLINE ptrdiff_t reach(const convcore_direct_axis *axis, ptrdiff_t outputs)
{
    return (outputs - 1) * axis->stride + axis->span;
}

/* Taps of one phase; where its tap i reads from output 0 on; and which tap of the kernel it is. */
INLINE ptrdiff_t n_taps(const convcore_direct_axis *axis, ptrdiff_t phase)
{
    return axis->begin[phase + 1] - axis->begin[phase];
}

INLINE ptrdiff_t offset_of(const convcore_direct_axis *axis, ptrdiff_t phase, ptrdiff_t i)
{
    return axis->first[phase] + i * axis->step;
}

INLINE ptrdiff_t tap_of(const convcore_direct_axis *axis, ptrdiff_t phase, ptrdiff_t i)
{
    return axis->tap[phase] + i * axis->tap_step;
}

/* A range of taps of one phase, or of outputs. */
typedef struct {
    ptrdiff_t begin, end;
} range;

/* Those of `count` places, `step` apart from `at` on, that may lie in [0, size) when they are moved
 * by 0 to `moved`. */
INLINE range places_within(ptrdiff_t at, ptrdiff_t step, ptrdiff_t count, ptrdiff_t moved,
                           ptrdiff_t size)
{
    range seen;
    seen.begin = at + moved < 0 ? min_of(count, (step - 1 - at - moved) / step) : 0;
    seen.end = at < size ? min_of(count, (size - 1 - at) / step + 1) : 0;
    seen.end = max_of(seen.begin, seen.end);
    return seen;
}

/* Kernels of more taps than this leave out those that fall on padding alone. */
#define MOST_UNTRIMMED 8

/* The taps of a phase that `outputs` outputs from j on see. */
INLINE range taps_seen(const convcore_direct_axis *axis, ptrdiff_t phase, ptrdiff_t j,
                       ptrdiff_t outputs)
{
    const ptrdiff_t count = n_taps(axis, phase);
    if (count <= MOST_UNTRIMMED) return (range){0, count};
    return places_within(j * axis->stride + axis->first[phase], axis->step, count,
                         (outputs - 1) * axis->stride, axis->size);
}

/* One slice of outputs, and the slices of inputs under it, `step` apart. */
typedef struct {
    ptrdiff_t image;
    ptrdiff_t output;            /* its number in the image */
    ptrdiff_t input;             /* the first input's */
    ptrdiff_t count;             /* of inputs */
    ptrdiff_t phase;
    ptrdiff_t tap;               /* of the phase, over the first of them */
} slice_view;

INLINE slice_view view_slice(const convcore_direct_axis *depth, ptrdiff_t slice)
{
    slice_view s = {.image = slice / depth->out, .output = slice % depth->out};
    s.phase = s.output % depth->phases;
    const ptrdiff_t at = s.output / depth->phases * depth->stride + depth->first[s.phase];
    const range seen = places_within(at, depth->step, n_taps(depth, s.phase), 0, depth->size);
    s.tap = seen.begin;
    s.count = seen.end - seen.begin;
    s.input = s.count > 0 ? at + s.tap * depth->step : 0;
    return s;
}

/* Floats from a slice of an image to the next. */
INLINE ptrdiff_t slice_step(const convcore_direct *d, ptrdiff_t channels, ptrdiff_t pixels)
{
    return d->channels_last ? channels * pixels : pixels;
}

/* Which inputs of an axis a halo holds: `count` from `first` on, at place `at`. */
typedef struct {
    ptrdiff_t first, count, at;
} run;

/* Those of places [0, places), place 0 being that of input `low`. */
INLINE run inputs_of(const convcore_direct_axis *axis, ptrdiff_t low, ptrdiff_t places)
{
    run seen;
    seen.first = max_of(0, low);
    seen.at = min_of(places, seen.first - low);
    seen.count = max_of(0, min_of(axis->size, low + places) - seen.first);
    return seen;
}

/* ---- one channel, pixels side by side ---- */

typedef struct {
    ptrdiff_t segment, pitch;    /* floats of the columns of one remainder, and of a row */
    run columns;
    ptrdiff_t column[CONVCORE_MAX_TAPS];     /* where each tap reads */
} plane_shape;

INLINE void shape_plane(const convcore_direct_axis *axis, plane_shape *s)
{
    ptrdiff_t places = reach(axis, outputs_of(axis, 0));
    s->segment = ((places + axis->stride - 1) / axis->stride + 2 * LANES - 1) / LANES * LANES;
    s->pitch = axis->stride * s->segment;
    s->columns = inputs_of(axis, axis->low, places);
    for (ptrdiff_t b = 0; b < axis->phases; b++)
        for (ptrdiff_t i = 0; i < n_taps(axis, b); i++) {
            ptrdiff_t q = offset_of(axis, b, i) - axis->low;
            s->column[axis->begin[b] + i] = q % axis->stride * s->segment + q / axis->stride;
        }
}

/* Copy the rows that outputs j0 to j1 of each phase see of one channel, to a halo whose padding
 * columns are zeros. */
INLINE void fill_plane(const convcore_direct *d, const plane_shape *s, ptrdiff_t j0, ptrdiff_t j1,
                       const float *plane, const float *end, float *halo)
{
    const convcore_direct_axis *axis = &d->row;
    ptrdiff_t rows = reach(axis, j1 - j0);
    run seen = inputs_of(axis, j0 * axis->stride + axis->low, rows);
    if (s->columns.count == 0) return;
    clear(halo, seen.at * s->pitch);
    float *line = halo + seen.at * s->pitch;
    const float *from = plane + seen.first * d->column.size + s->columns.first;
    for (ptrdiff_t i = 0; i < seen.count; i++) {
        split_line(from, s->columns.count, end, d->column.stride, s->columns.at, s->segment, line);
        from += d->column.size;
        line += s->pitch;
    }
    clear(line, halo + rows * s->pitch - line);
}

/* ---- channels side by side ---- */

typedef struct {
    ptrdiff_t width, pitch;      /* floats of a place, and of a row */
    run columns;
    ptrdiff_t column[CONVCORE_MAX_TAPS];     /* where each tap reads */
} channel_shape;

INLINE void shape_channels(const convcore_direct_axis *axis, ptrdiff_t channels, channel_shape *s)
{
    ptrdiff_t places = reach(axis, outputs_of(axis, 0));
    s->width = (channels + LANES - 1) / LANES * LANES;
    s->pitch = places * s->width;
    s->columns = inputs_of(axis, axis->low, places);
    for (ptrdiff_t b = 0; b < axis->phases; b++)
        for (ptrdiff_t i = 0; i < n_taps(axis, b); i++)
            s->column[axis->begin[b] + i] = (offset_of(axis, b, i) - axis->low) * s->width;
}

/* As fill_plane, of some channels of an image. */
INLINE void fill_channels(const convcore_direct *d, const channel_shape *s, ptrdiff_t channels,
                          ptrdiff_t j0, ptrdiff_t j1, const float *image, const float *end,
                          float *halo)
{
    const convcore_direct_axis *axis = &d->row;
    const ptrdiff_t rows = reach(axis, j1 - j0);
    run seen = inputs_of(axis, j0 * axis->stride + axis->low, rows);
    if (s->columns.count == 0) return;
    clear(halo, seen.at * s->pitch);
    for (ptrdiff_t i = 0; i < seen.count; i++) {
        const float *from = image + ((seen.first + i) * d->column.size + s->columns.first) * d->channels;
        float *to = halo + (seen.at + i) * s->pitch + s->columns.at * s->width;
        for (ptrdiff_t q = 0; q < s->columns.count; q++)
            copy_line(from + q * d->channels, channels, end, to + q * s->width);
    }
    clear(halo + (seen.at + seen.count) * s->pitch, (rows - seen.at - seen.count) * s->pitch);
}

/* out[i] = the sum over the lanes of vector i of v. */
static MAYBE_UNUSED void sum_lanes(const float *v, ptrdiff_t count, float *out)
{
    for (ptrdiff_t i = 0; i < count; i += LANES) {
        vec rows[LANES];
        UNROLLED for (int l = 0; l < LANES; l++)
            rows[l] = i + l < count ? load(v + (i + l) * LANES) : (vec){0};
        transpose(rows);
        UNROLLED for (int half = LANES / 2; half > 0; half /= 2)
            UNROLLED for (int l = 0; l < half; l++) rows[l] += rows[l + half];
        store_up_to(out + i, rows[0], count - i);
    }
}

#endif
