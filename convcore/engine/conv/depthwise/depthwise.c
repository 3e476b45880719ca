/* Depthwise convolutions: every channel has a kernel of its own.
 *
 * The common forms have loops of their own (depthwise_nchw.h, depthwise_nhwc.h).  All others are
 * made here: a work item copies halos of a few rows to scratch (halo_tile.h), where taps are plain
 * offsets, and sums them from there.  Vectors are neighbouring pixels of one channel, or, in
 * channels_last, neighbouring channels of one pixel: the loops are the same, but for how far apart
 * things are.
 */
#include "conv/epilogue.h"
#include "conv/halo_tile.h"
#include "depthwise.h"
#include "depthwise_nchw.h"
#include "depthwise_nhwc.h"

/* What the loops over one halo see. */
typedef struct {
    const float *halo;
    ptrdiff_t pitch;             /* floats from a row of the halo to the next */
    ptrdiff_t step;              /* and from what one output sees to what the next one does */
    const ptrdiff_t *column;     /* where the taps of a row read */
    const float *w;              /* of the first slice of inputs */
    ptrdiff_t w_tap;
    ptrdiff_t slices;            /* of inputs */
    ptrdiff_t slice;             /* floats of the halo of one, and from its weights to the next's */
    ptrdiff_t w_slice;
    ptrdiff_t j0;                /* the first row of outputs */
    ptrdiff_t count;             /* outputs of a row */
    ptrdiff_t lanes;             /* of a vector that are stored */
    float *y;
    ptrdiff_t y_row;
    ptrdiff_t y_step;
    const float *full;           /* the last place where a whole vector may be stored */
} view;

INLINE vec weight(const int last, const float *w) { return last ? load(w) : broadcast(*w); }

/* Taps of a row that are summed apart, so that the error of a long sum stays small. */
#define SUMMED_TAPS 64

/* R rows of one phase by any kernel, or, if `along`, one row by R vectors at a time.  `is_long`: whether
 * a row of the kernel is longer than MOST_UNTRIMMED.
 *
 * Vectors of a row begin at every output in channels_last, else LANES apart.  The last ones end with
 * the row: what they make twice is made of the same sums. */
INLINE void sum_taps(const int R, const int last, const int is_long, const int along,
                     const convcore_direct *d, ptrdiff_t phase, ptrdiff_t phase_column,
                     const view *given, ptrdiff_t r0, vec bias, const convcore_epilogue *e)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const view v = *given;
    const ptrdiff_t wide = last ? 1 : LANES, unit = along ? R * wide : wide;
    const ptrdiff_t apart = along ? wide * v.step : row->stride * v.pitch;
    const ptrdiff_t y_apart = along ? wide * v.y_step : v.y_row;
    const ptrdiff_t tap_step = column->tap_step * v.w_tap, line_step = row->step * v.pitch;
    const ptrdiff_t w_line = row->tap_step * d->kernel_columns * v.w_tap;
    const ptrdiff_t *places = v.column + column->begin[phase_column];
    const range lines = taps_seen(row, phase, v.j0 + r0, along ? 1 : R);
    range taps = {0, n_taps(column, phase_column)};
    const ptrdiff_t line = r0 * row->stride + offset_of(row, phase, lines.begin) - row->low;
    const ptrdiff_t tap = tap_of(row, phase, lines.begin) * d->kernel_columns;
    const float *halo = v.halo + line * v.pitch;
    const float *first = v.w + (tap + tap_of(column, phase_column, 0)) * v.w_tap;
    for (ptrdiff_t n = 0; n < v.count; n += unit) {
        const ptrdiff_t p = max_of(0, min_of(n, v.count - unit));
        if (is_long) taps = taps_seen(column, phase_column, p, unit);
        vec sums[SUMMED_ROWS];
        UNROLLED for (int r = 0; r < R; r++) sums[r] = bias;
        for (ptrdiff_t t = 0; t < v.slices; t++) {
            const float *at = halo + t * v.slice + p * v.step;
            const float *w_row = first + t * v.w_slice + taps.begin * tap_step;
            for (ptrdiff_t i = lines.begin; i < lines.end; i++) {
                const float *w = w_row;
                for (ptrdiff_t k = taps.begin; k < taps.end;) {
                    const ptrdiff_t end = is_long ? min_of(taps.end, k + SUMMED_TAPS) : taps.end;
                    vec part[SUMMED_ROWS];
                    UNROLLED for (int r = 0; r < R; r++) part[r] = (vec){0};
                    for (; k < end; k++, w += tap_step) {
                        const vec own = weight(last, w);
                        UNROLLED for (int r = 0; r < R; r++)
                            part[r] += own * load(at + r * apart + places[k]);
                    }
                    UNROLLED for (int r = 0; r < R; r++) sums[r] += part[r];
                }
                at += line_step;
                w_row += w_line;
            }
        }
        finish_rows(R, sums, e);
        UNROLLED for (int r = 0; r < R; r++)
            put(v.y + r0 * v.y_row + r * y_apart + p * v.y_step, sums[r], v.lanes, v.full);
    }
}

#define SUM_TAPS(name, R, last, is_long)                                                       \
    static void name(const int along, const convcore_direct *d, ptrdiff_t phase,               \
                     ptrdiff_t phase_column, const view *v, ptrdiff_t r0, vec bias,            \
                     const convcore_epilogue *e)                                               \
    {                                                                                          \
        sum_taps(R, last, is_long, along, d, phase, phase_column, v, r0, bias, e);             \
    }
SUM_TAPS(sum_taps_by_fours, SUMMED_ROWS, 0, 0)
SUM_TAPS(sum_taps_by_ones, 1, 0, 0)
SUM_TAPS(sum_channels_by_fours, SUMMED_ROWS, 1, 0)
SUM_TAPS(sum_channels_by_ones, 1, 1, 0)
SUM_TAPS(sum_long_taps_by_fours, SUMMED_ROWS, 0, 1)
SUM_TAPS(sum_long_taps_by_ones, 1, 0, 1)
SUM_TAPS(sum_long_channels_by_fours, SUMMED_ROWS, 1, 1)
SUM_TAPS(sum_long_channels_by_ones, 1, 1, 1)

typedef void (*summing)(const int along, const convcore_direct *d, ptrdiff_t phase,
                        ptrdiff_t phase_column, const view *v, ptrdiff_t r0, vec bias,
                        const convcore_epilogue *e);

/* By channels_last, and whether rows of the kernel are long: by fours, and by ones. */
static const summing summings[2][2][2] = {
    {{sum_taps_by_fours, sum_taps_by_ones}, {sum_long_taps_by_fours, sum_long_taps_by_ones}},
    {{sum_channels_by_fours, sum_channels_by_ones},
     {sum_long_channels_by_fours, sum_long_channels_by_ones}},
};

/* All rows of one phase of one halo. */
static void sum_rows(const convcore_direct *d, ptrdiff_t phase, ptrdiff_t phase_column,
                     const view *v, ptrdiff_t rows, vec bias, const convcore_epilogue *e)
{
    const int last = d->channels_last, along = v->count >= SUMMED_ROWS * (last ? 1 : LANES);
    const int is_long = n_taps(&d->column, phase_column) > MOST_UNTRIMMED;
    const summing fours = summings[last][is_long][0], ones = summings[last][is_long][1];
    ptrdiff_t r = 0;
    for (; r + SUMMED_ROWS <= rows; r += SUMMED_ROWS)
        fours(0, d, phase, phase_column, v, r, bias, e);
    for (; r < rows; r++) (along ? fours : ones)(along, d, phase, phase_column, v, r, bias, e);
}

/* ---- forward, and the input gradient ---- */

/* One halo of one channel: rows v.j0 to j1 of each phase. */
static void depthwise_plane(const convcore_direct *d, view v, ptrdiff_t j1, float *plane, vec bias,
                            const convcore_epilogue *e, const float *full, float *lines)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t phases = column->phases, length = column->out;
    const ptrdiff_t segment = (outputs_of(column, 0) + 2 * LANES - 1) / LANES * LANES;
    for (ptrdiff_t a = 0; a < row->phases; a++) {
        ptrdiff_t rows = min_of(j1, outputs_of(row, a)) - v.j0;
        float *y = plane + (a + row->phases * v.j0) * length;
        v.y = y;
        v.y_row = row->phases * length;
        v.full = full;
        if (phases > 1) {
            v.y = lines;
            v.y_row = phases * segment;
            v.full = lines + rows * phases * segment;
        }
        for (ptrdiff_t b = 0; b < phases; b++) {
            v.count = outputs_of(column, b);
            v.lanes = min_of(LANES, v.count);
            /* The row behind is another phase's, and may be made already. */
            if (phases == 1 && row->phases > 1 && v.lanes < LANES) v.full = NULL;
            sum_rows(d, a, b, &v, rows, bias, e);
            v.y += segment;
        }
        if (phases > 1)
            for (ptrdiff_t r = 0; r < rows; r++)
                merge_line(lines + r * phases * segment, segment, phases, length,
                           y + r * row->phases * length);
    }
}

/* One channel of one slice.  x: its first slice of inputs; w and y: of the channel. */
static void depthwise_bands(const convcore_direct *d, const slice_view *z, ptrdiff_t j0,
                            ptrdiff_t j1, const float *x, const float *end, const float *w, float *y,
                            const float *full, float bias, const convcore_epilogue *e,
                            float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column, *depth = &d->depth;
    plane_shape s;
    shape_plane(column, &s);
    const ptrdiff_t slice = reach(row, min_of(d->rows, j1 - j0)) * s.pitch;
    clear(scratch, z->count * slice + LANES);
    for (ptrdiff_t j = j0; j < j1; j += d->rows) {
        ptrdiff_t stop = min_of(j1, j + d->rows);
        for (ptrdiff_t t = 0; t < z->count; t++)
            fill_plane(d, &s, j, stop, x + t * depth->step * row->size * column->size, end,
                       scratch + t * slice);
        const view v = {.halo = scratch, .pitch = s.pitch, .step = 1, .column = s.column,
                        .w = w + tap_of(depth, z->phase, z->tap) * d->kernel_plane, .w_tap = 1,
                        .slices = z->count, .slice = slice,
                        .w_slice = depth->tap_step * d->kernel_plane, .j0 = j, .y_step = 1};
        depthwise_plane(d, v, stop, y, broadcast(bias), e, full,
                        scratch + z->count * slice + LANES);
    }
}

static void depthwise_channel_bands(const convcore_direct *d, const slice_view *z, ptrdiff_t b0,
                                    ptrdiff_t b1, ptrdiff_t j0, ptrdiff_t j1, const float *x,
                                    const float *end, const float *w, float *y,
                                    const convcore_epilogue *e, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column, *depth = &d->depth;
    const ptrdiff_t C = d->channels, lanes = min_of(LANES, C);
    const ptrdiff_t c0 = block_channel(C, b0), c1 = min_of(C, block_channel(C, b1 - 1) + LANES);
    channel_shape s;
    shape_channels(column, c1 - c0, &s);
    const ptrdiff_t slice = reach(row, min_of(d->rows, j1 - j0)) * s.pitch;
    clear(scratch, z->count * slice + LANES);
    for (ptrdiff_t j = j0; j < j1; j += d->rows) {
        ptrdiff_t stop = min_of(j1, j + d->rows);
        for (ptrdiff_t t = 0; t < z->count; t++)
            fill_channels(d, &s, c1 - c0, j, stop,
                          x + t * depth->step * row->size * column->size * C + c0, end,
                          scratch + t * slice);
        for (ptrdiff_t b = b0; b < b1; b++) {
            const ptrdiff_t c = block_channel(C, b);
            const ptrdiff_t first = tap_of(depth, z->phase, z->tap) * d->kernel_plane;
            view v = {.halo = scratch + c - c0, .pitch = s.pitch, .step = column->stride * s.width,
                      .column = s.column, .w = w + (b * d->taps + first) * LANES, .w_tap = LANES,
                      .slices = z->count, .slice = slice,
                      .w_slice = depth->tap_step * d->kernel_plane * LANES, .j0 = j,
                      .lanes = lanes, .y_row = row->phases * column->out * C,
                      .y_step = column->phases * C,
                      .full = lanes < LANES ? NULL : y + row->out * column->out * C};
            vec bias = {0};
            if (e->bias) bias = load_up_to(e->bias + c, lanes);
            for (ptrdiff_t i = 0; i < row->phases * column->phases; i++) {
                ptrdiff_t phase = i / column->phases, phase_column = i % column->phases;
                v.count = outputs_of(column, phase_column);
                v.y = y + ((phase + row->phases * j) * column->out + phase_column) * C + c;
                sum_rows(d, phase, phase_column, &v, min_of(stop, outputs_of(row, phase)) - j, bias,
                         e);
            }
        }
    }
}

/* Whether the rows that are asked for can be made without a halo. */
INLINE int has_rows(const convcore_direct *d, ptrdiff_t j0, ptrdiff_t j1)
{
    return j1 - j0 >= (d->specialisation < 0 ? SPREAD_ROWS : SUMMED_ROWS);
}

/* Outputs of one slice: rows j0 to j1 of each phase, of channels c0 to c1, or, in channels_last, of
 * blocks c0 to c1 of LANES channels.
 *
 * w: (channels, taps); in channels_last (blocks, taps, LANES). */
static void depthwise(const convcore_direct *d, ptrdiff_t slice, ptrdiff_t c0, ptrdiff_t c1,
                      ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *w, float *y,
                      const convcore_epilogue *e, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t pixels = row->size * column->size, outputs = row->out * column->out;
    /* Floats from a channel to the next, in contiguous memory. */
    const ptrdiff_t x_channel = d->depth.size * pixels, y_channel = d->depth.out * outputs;
    const slice_view z = view_slice(&d->depth, slice);
    const float *end = x + d->size;
    if (d->channels_last) {
        x = element(d->narrow, x, (z.image * d->depth.size + z.input) * d->channels * pixels);
        y = (float *)element(d->narrow, y, slice * d->channels * outputs);
        if (!is_by_pixels(d)) {
            depthwise_channel_bands(d, &z, c0, c1, j0, j1, x, end, w, y, e, scratch);
            return;
        }
        pixel_view v = {x, row->size, column->size, row->low, column->low, d->channels, c0, c1, w,
                        y, row->out, column->out, j0, j1};
        depthwise_pixels(d, &v, e);
        return;
    }
    x += z.image * d->channels * x_channel + z.input * pixels;
    y += z.image * d->channels * y_channel + z.output * outputs;
    for (ptrdiff_t c = c0; c < c1; c++) {
        /* What lies behind the rows of this item may be made by another thread. */
        const int all = d->depth.out == 1 && j0 == 0 && j1 * row->phases >= row->out;
        const ptrdiff_t own = c * y_channel + min_of(row->out, j1 * row->phases) * column->out;
        const float *full = y + (all ? c1 * y_channel : own) - LANES;
        const float bias = e->bias ? e->bias[c] : 0.0f;
        if (!is_by_lines(d) || !has_rows(d, j0, j1)) {
            depthwise_bands(d, &z, j0, j1, x + c * x_channel, end, w + c * d->taps,
                            y + c * y_channel, full, bias, e, scratch);
            continue;
        }
        line_view v = {x + c * x_channel, row->size, column->size, row->low, end, w + c * d->taps,
                       y + c * y_channel, row->out, j0, j1, column->out, full};
        for (; v.j0 < j1; v.j0 = v.j1) {
            v.j1 = j1 - v.j0 < d->rows + SUMMED_ROWS ? j1 : v.j0 + d->rows;
            depthwise_lines(d, &v, broadcast(bias), e);
        }
    }
}

/* ---- the weight gradient ---- */

/* What the loops over one halo see: an output's gradient, the inputs under it, sums of products. */
typedef struct {
    const float *halo;
    ptrdiff_t pitch;
    ptrdiff_t step;
    const float *g;              /* of the halo's first output */
    ptrdiff_t g_row;
    ptrdiff_t g_step;
    const float *end;            /* of the array of gradients */
    ptrdiff_t j0;                /* the first row of outputs */
    ptrdiff_t rows;
    ptrdiff_t count;             /* outputs of a row */
    ptrdiff_t lanes;             /* channels_last: of a vector that are channels */
    float *sums;                 /* (taps of a slice of the kernel, LANES) */
} grad_view;

/* sums[k] += gradient * input under tap k of K, `at` after the first of one row of outputs; where
 * `partial`, of the first `lanes` lanes. */
INLINE void add_products(const int K, const int partial, const grad_view *v, const float *const *x,
                         ptrdiff_t at, const float *g, ptrdiff_t lanes, vec *sums)
{
    vec own = partial ? load_some(g, lanes, v->end) : load(g);
    UNROLLED for (int k = 0; k < K; k++) {
        vec under = load(x[k] + at);
        /* Zero times what lies beyond the row could be NaN. */
        sums[k] += own * (partial ? first_lanes(under, lanes) : under);
    }
}

/* K taps of a row of the kernel along all rows of one halo. */
INLINE void add_halo(const int K, const int last, const grad_view *given, const ptrdiff_t *column,
                     const float *x, ptrdiff_t row_step, float *to)
{
    const grad_view v = *given;
    const ptrdiff_t apart = last ? 1 : LANES, stop = last && v.lanes < LANES ? 0 : v.count;
    vec sums[4];
    UNROLLED for (int k = 0; k < K; k++) sums[k] = load(to + k * LANES);
    for (ptrdiff_t r = 0; r < v.rows; r++) {
        const float *g = v.g + r * v.g_row, *under[4];
        ptrdiff_t p = 0;
        UNROLLED for (int k = 0; k < K; k++) {
            under[k] = x + r * row_step + column[k];
            HOLD(under[k]);
        }
        for (; p + apart <= stop; p += apart)
            add_products(K, 0, &v, under, p * v.step, g + p * v.g_step, 0, sums);
        for (; p < v.count; p += apart)
            add_products(K, 1, &v, under, p * v.step, g + p * v.g_step,
                         last ? v.lanes : v.count - p, sums);
    }
    UNROLLED for (int k = 0; k < K; k++) store(to + k * LANES, sums[k]);
}

/* The outputs of `count` from j on that see the input under one of `taps` taps from tap i on. */
INLINE range outputs_seen(const convcore_direct_axis *axis, ptrdiff_t i, ptrdiff_t taps, ptrdiff_t j,
                          ptrdiff_t count)
{
    return places_within(j * axis->stride + offset_of(axis, 0, i), axis->stride, count,
                         (taps - 1) * axis->step, axis->size);
}

/* Narrow a view to the outputs that see the input under `count` taps from (i, k) on; return how far
 * the first of them is from the halo's first. */
static ptrdiff_t trim(const convcore_direct *d, ptrdiff_t i, ptrdiff_t k, ptrdiff_t count,
                      grad_view *v)
{
    const range lines = outputs_seen(&d->row, i, 1, v->j0, v->rows);
    range seen = outputs_seen(&d->column, k, count, 0, v->count);
    if (!d->channels_last) {
        seen.begin -= seen.begin % LANES;
        seen.end = min_of(v->count, (seen.end + LANES - 1) / LANES * LANES);
    }
    v->g += lines.begin * v->g_row + seen.begin * v->g_step;
    v->rows = lines.end - lines.begin;
    v->count = seen.end - seen.begin;
    return lines.begin * d->row.stride * v->pitch + seen.begin * v->step;
}

/* All taps of a slice of the kernel, up to four of a row at a time. */
INLINE void add_taps(const int last, const convcore_direct *d, const grad_view *v,
                     const ptrdiff_t *column)
{
    const ptrdiff_t row_step = d->row.stride * v->pitch, taps = d->kernel_columns;
    const int is_long = max_of(taps, n_taps(&d->row, 0)) > MOST_UNTRIMMED;
    for (ptrdiff_t i = 0; i < n_taps(&d->row, 0); i++) {
        const float *x = v->halo + (offset_of(&d->row, 0, i) - d->row.low) * v->pitch;
        for (ptrdiff_t k = 0; k < taps; k += 4) {
            float *to = v->sums + (i * taps + k) * LANES;
            const float *at = x;
            grad_view own = *v;
            if (is_long) at += trim(d, i, k, min_of(4, taps - k), &own);
            switch (min_of(4, taps - k)) {
            case 4: add_halo(4, last, &own, column + k, at, row_step, to); break;
            case 3: add_halo(3, last, &own, column + k, at, row_step, to); break;
            case 2: add_halo(2, last, &own, column + k, at, row_step, to); break;
            case 1: add_halo(1, last, &own, column + k, at, row_step, to); break;
            }
        }
    }
}

/* Of channels c0 to c1 under one tap of the depth. */
static void grad_bands(const convcore_direct *d, ptrdiff_t c0, ptrdiff_t c1, ptrdiff_t j0,
                       ptrdiff_t j1, const float *x, const float *end, const float *gy,
                       const float *g_end, float *sums, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t pixels = row->size * column->size, outputs = row->out * column->out;
    plane_shape s;
    shape_plane(column, &s);
    clear(scratch, reach(row, min_of(d->rows, j1 - j0)) * s.pitch + LANES);
    for (ptrdiff_t c = c0; c < c1; c++)
        for (ptrdiff_t j = j0; j < j1; j += d->rows) {
            ptrdiff_t stop = min_of(j1, j + d->rows);
            fill_plane(d, &s, j, stop, x + c * d->depth.size * pixels, end, scratch);
            grad_view v = {scratch, s.pitch, 1,
                           gy + c * d->depth.out * outputs + j * column->out, column->out,
                           1, g_end, j, stop - j, column->out, LANES,
                           sums + (c - c0) * d->taps * LANES};
            add_taps(0, d, &v, s.column);
        }
}

static void grad_channel_bands(const convcore_direct *d, ptrdiff_t b0, ptrdiff_t b1, ptrdiff_t j0,
                               ptrdiff_t j1, const float *x, const float *end, const float *gy,
                               const float *g_end, float *sums, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t C = d->channels, g_row = column->out * C;
    const ptrdiff_t c0 = block_channel(C, b0), c1 = min_of(C, block_channel(C, b1 - 1) + LANES);
    channel_shape s;
    shape_channels(column, c1 - c0, &s);
    clear(scratch, reach(row, min_of(d->rows, j1 - j0)) * s.pitch + LANES);
    for (ptrdiff_t j = j0; j < j1; j += d->rows) {
        ptrdiff_t stop = min_of(j1, j + d->rows);
        fill_channels(d, &s, c1 - c0, j, stop, x + c0, end, scratch);
        for (ptrdiff_t b = b0; b < b1; b++) {
            const ptrdiff_t c = block_channel(C, b);
            grad_view v = {scratch + c - c0, s.pitch, column->stride * s.width, gy + j * g_row + c,
                           g_row, C, g_end, j, stop - j, column->out, min_of(LANES, C),
                           sums + (b - b0) * d->taps * LANES};
            add_taps(1, d, &v, s.column);
        }
    }
}

/* Add the products of rows j0 to j1 of one slice's gradients with the inputs under them to
 * sums (channels, taps, LANES), to be summed over the lanes; in channels_last to
 * sums (blocks, taps, LANES).  c0 and c1: as for `depthwise`; sums begin with c0's. */
static void depthwise_gradient(const convcore_direct *d, ptrdiff_t slice, ptrdiff_t c0,
                               ptrdiff_t c1, ptrdiff_t j0, ptrdiff_t j1, const float *x,
                               const float *gy, float *sums, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t pixels = row->size * column->size, outputs = row->out * column->out;
    const ptrdiff_t x_channel = d->depth.size * pixels, y_channel = d->depth.out * outputs;
    const slice_view z = view_slice(&d->depth, slice);
    const float *end = x + d->size, *g_end = gy + d->size / x_channel * y_channel;
    const ptrdiff_t x_slice = slice_step(d, d->channels, pixels);
    x += z.image * d->channels * x_channel + z.input * x_slice;
    gy += z.image * d->channels * y_channel + z.output * slice_step(d, d->channels, outputs);
    for (ptrdiff_t t = 0; t < z.count; t++, x += d->depth.step * x_slice) {
        float *to = sums + (z.tap + t) * d->kernel_plane * LANES;
        if (d->channels_last && d->specialisation != 71 && is_by_pixels(d)) {
            grad_pixel_view v = {x, row->size, column->size, row->low, column->low, d->channels, c0,
                                 c1, gy, column->out, j0, j1, to, d->taps * LANES};
            depthwise_grad_pixels(d, &v);
        } else if (d->channels_last) {
            grad_channel_bands(d, c0, c1, j0, j1, x, end, gy, g_end, to, scratch);
        } else if (d->specialisation != 71 && is_by_lines(d)) {
            for (ptrdiff_t c = c0; c < c1; c++) {
                grad_line_view v = {x + c * x_channel, row->size, column->size, row->low, end,
                                    gy + c * y_channel, g_end, j0, j1, column->out,
                                    to + (c - c0) * d->taps * LANES};
                depthwise_grad_lines(d, &v);
            }
        } else {
            grad_bands(d, c0, c1, j0, j1, x, end, gy, g_end, to, scratch);
        }
    }
}

const convcore_depthwise CONVCORE_TABLE(convcore_depthwise) = {
    depthwise, depthwise_gradient, sum_lanes
};
