/* Depthwise convolutions: every channel has a kernel of its own.
 *
 * The common forms have loops of their own (depthwise_nchw.h, depthwise_nhwc.h).  All others are
 * made here: a work item copies halos of a few rows to scratch (halo_tile.h), where taps are plain
 * offsets, and sums them from there.  Vectors are neighbouring pixels of one channel, or, in
 * channels_last, neighbouring channels of one pixel: the loops are the same, but for how far apart
 * things are.
 */
#ifndef CONVCORE_DEPTHWISE_H
#define CONVCORE_DEPTHWISE_H

#include "halo_tile.h"
#include "depthwise_nchw.h"
#include "depthwise_nhwc.h"
#include "epilogue.h"

/* What the loops over one halo see. */
typedef struct {
    const float *halo;
    ptrdiff_t pitch;             /* floats from a row of the halo to the next */
    ptrdiff_t step;              /* and from what one output sees to what the next one does */
    const ptrdiff_t *column;     /* where the taps of a row read */
    const float *w;
    ptrdiff_t w_tap;
    ptrdiff_t count;             /* outputs of a row */
    ptrdiff_t lanes;             /* of a vector that are stored */
    float *y;
    ptrdiff_t y_row;
    ptrdiff_t y_step;
    const float *full;           /* the last place where a whole vector may be stored */
} view;

/* Vectors of a row begin at every output in channels_last; else LANES apart, the last one so that it
 * ends with the row: what it makes twice is made of the same sums. */
INLINE ptrdiff_t n_vectors(const int last, const view *v)
{
    return last ? v->count : (v->count + LANES - 1) / LANES;
}

INLINE ptrdiff_t begin_of(const int last, const view *v, ptrdiff_t i)
{
    return last ? i : max_of(0, min_of(i * LANES, v->count - LANES));
}

INLINE vec weight(const int last, const float *w) { return last ? load(w) : broadcast(*w); }

/* R rows of one phase by any kernel; the taps of a kernel's row are summed apart. */
INLINE void sum_taps(const int R, const int last, const convcore_direct *d, ptrdiff_t phase,
                     ptrdiff_t phase_column, const view *v, ptrdiff_t r0, vec bias,
                     const convcore_epilogue *e)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t apart = row->stride * v->pitch;
    for (ptrdiff_t n = 0; n < n_vectors(last, v); n++) {
        ptrdiff_t p = begin_of(last, v, n);
        vec sums[SUMMED_ROWS];
        UNROLLED for (int r = 0; r < R; r++) sums[r] = bias;
        for (ptrdiff_t i = row->begin[phase]; i < row->begin[phase + 1]; i++) {
            vec part[SUMMED_ROWS];
            const float *at = v->halo + (r0 * row->stride + row->offset[i] - row->low) * v->pitch
                              + p * v->step;
            const float *w = v->w + row->tap[i] * d->kernel_columns * v->w_tap;
            UNROLLED for (int r = 0; r < R; r++) part[r] = (vec){0};
            for (ptrdiff_t k = column->begin[phase_column]; k < column->begin[phase_column + 1]; k++) {
                vec tap = weight(last, w + column->tap[k] * v->w_tap);
                UNROLLED for (int r = 0; r < R; r++)
                    part[r] += tap * load(at + r * apart + v->column[k]);
            }
            UNROLLED for (int r = 0; r < R; r++) sums[r] += part[r];
        }
        finish_rows(R, sums, e);
        UNROLLED for (int r = 0; r < R; r++)
            put(v->y + (r0 + r) * v->y_row + p * v->y_step, sums[r], v->lanes, v->full);
    }
}


#define SUM_TAPS(name, R, last)                                                                \
    static void name(const convcore_direct *d, ptrdiff_t phase, ptrdiff_t phase_column,        \
                     const view *v, ptrdiff_t r0, vec bias, const convcore_epilogue *e)        \
    {                                                                                          \
        sum_taps(R, last, d, phase, phase_column, v, r0, bias, e);                             \
    }
SUM_TAPS(sum_taps_of_four_rows, SUMMED_ROWS, 0)
SUM_TAPS(sum_taps_of_a_row, 1, 0)
SUM_TAPS(sum_channels_of_four_rows, SUMMED_ROWS, 1)
SUM_TAPS(sum_channels_of_a_row, 1, 1)

/* All rows of one phase of one halo. */
static void sum_rows(const convcore_direct *d, ptrdiff_t phase, ptrdiff_t phase_column,
                     const view *v, ptrdiff_t rows, vec bias, const convcore_epilogue *e)
{
    const int last = d->channels_last;
    ptrdiff_t r = 0;
    for (; r + SUMMED_ROWS <= rows; r += SUMMED_ROWS)
        (last ? sum_channels_of_four_rows : sum_taps_of_four_rows)(d, phase, phase_column, v, r,
                                                                   bias, e);
    for (; r < rows; r++)
        (last ? sum_channels_of_a_row : sum_taps_of_a_row)(d, phase, phase_column, v, r, bias, e);
}

/* ---- forward, and the input gradient ---- */

/* One halo of one channel: rows j0 to j1 of each phase. */
static void depthwise_plane(const convcore_direct *d, const plane_shape *s, ptrdiff_t j0,
                            ptrdiff_t j1, const float *halo, const float *w, float *plane,
                            vec bias, const convcore_epilogue *e, const float *full,
                            float *lines)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t phases = column->phases, length = column->out;
    const ptrdiff_t segment = (outputs_of(column, 0) + 2 * LANES - 1) / LANES * LANES;
    for (ptrdiff_t a = 0; a < row->phases; a++) {
        ptrdiff_t rows = min_of(j1, outputs_of(row, a)) - j0;
        float *y = plane + (a + row->phases * j0) * length;
        view v = {halo, s->pitch, 1, s->column, w, 1, 0, 0, y, row->phases * length, 1, full};
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

static void depthwise_bands(const convcore_direct *d, ptrdiff_t c, ptrdiff_t j0, ptrdiff_t j1,
                            const float *x, const float *end, const float *w, float *y,
                            const float *full, const convcore_epilogue *e, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t rows = reach(row, min_of(d->rows, j1 - j0));
    const plane_shape s = shape_plane(column);
    clear(scratch, rows * s.pitch + LANES);
    for (ptrdiff_t j = j0; j < j1; j += d->rows) {
        ptrdiff_t stop = min_of(j1, j + d->rows);
        fill_plane(d, &s, j, stop, x + c * row->size * column->size, end, scratch);
        depthwise_plane(d, &s, j, stop, scratch, w + c * d->taps, y + c * row->out * column->out,
                        broadcast(e->bias ? e->bias[c] : 0.0f), e, full,
                        scratch + rows * s.pitch + LANES);
    }
}

static void depthwise_channel_bands(const convcore_direct *d, ptrdiff_t b0, ptrdiff_t b1,
                                    ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *end,
                                    const float *w, float *y, const convcore_epilogue *e,
                                    float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t rows = reach(row, min_of(d->rows, j1 - j0)), C = d->channels;
    const ptrdiff_t c0 = block_channel(C, b0), c1 = min_of(C, block_channel(C, b1 - 1) + LANES);
    const channel_shape s = shape_channels(column, c1 - c0);
    const ptrdiff_t lanes = min_of(LANES, C);
    clear(scratch, rows * s.pitch + LANES);
    for (ptrdiff_t j = j0; j < j1; j += d->rows) {
        ptrdiff_t stop = min_of(j1, j + d->rows);
        fill_channels(d, &s, c1 - c0, j, stop, x + c0, end, scratch);
        for (ptrdiff_t b = b0; b < b1; b++) {
            const ptrdiff_t c = block_channel(C, b);
            view v = {.halo = scratch + c - c0, .pitch = s.pitch, .step = column->stride * s.width,
                      .column = s.column, .w = w + b * d->taps * LANES, .w_tap = LANES,
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

/* Outputs of one image: rows j0 to j1 of each phase, of channels c0 to c1, or, in channels_last, of
 * blocks c0 to c1 of LANES channels.
 *
 * w: (channels, taps); in channels_last (blocks, taps, LANES). */
static void depthwise(const convcore_direct *d, ptrdiff_t image, ptrdiff_t c0, ptrdiff_t c1,
                      ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *w, float *y,
                      const convcore_epilogue *e, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t pixels = row->size * column->size, outputs = row->out * column->out;
    const float *end = x + d->size;
    x = element(d->narrow, x, image * d->channels * pixels);
    y = (float *)element(d->narrow, y, image * d->channels * outputs);
    if (d->channels_last) {
        if (!is_by_pixels(d)) {
            depthwise_channel_bands(d, c0, c1, j0, j1, x, end, w, y, e, scratch);
            return;
        }
        pixel_view v = {x, row->size, column->size, row->low, column->low, d->channels, c0, c1, w,
                        y, row->out, column->out, j0, j1};
        depthwise_pixels(d, &v, e);
        return;
    }
    for (ptrdiff_t c = c0; c < c1; c++) {
        /* What lies behind the rows of this item may be made by another thread. */
        const int all = j0 == 0 && j1 * row->phases >= row->out;
        const ptrdiff_t own = c * outputs + min_of(row->out, j1 * row->phases) * column->out;
        const float *full = y + (all ? c1 * outputs : own) - LANES;
        if (!is_by_lines(d) || !has_rows(d, j0, j1)) {
            depthwise_bands(d, c, j0, j1, x, end, w, y, full, e, scratch);
            continue;
        }
        line_view v = {x + c * pixels, row->size, column->size, row->low, end, w + c * d->taps,
                       y + c * outputs, row->out, j0, j1, column->out, full};
        for (; v.j0 < j1; v.j0 = v.j1) {
            v.j1 = j1 - v.j0 < d->rows + SUMMED_ROWS ? j1 : v.j0 + d->rows;
            depthwise_lines(d, &v, broadcast(e->bias ? e->bias[c] : 0.0f), e);
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
    ptrdiff_t rows;
    ptrdiff_t count;             /* outputs of a row */
    ptrdiff_t lanes;             /* channels_last: of a vector that are channels */
    float *sums;                 /* (taps, LANES) */
} grad_view;

/* sums[k] += gradient * input under tap k of K, along one row of outputs; where `partial`, of the first
 * `lanes` lanes. */
INLINE void add_products(const int K, const int partial, const grad_view *v,
                         const ptrdiff_t *column, const float *x, const float *g, ptrdiff_t lanes,
                         vec *sums)
{
    vec own = partial ? load_some(g, lanes, v->end) : load(g);
    UNROLLED for (int k = 0; k < K; k++) {
        vec under = load(x + column[k]);
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
        const float *g = v.g + r * v.g_row, *line = x + r * row_step;
        ptrdiff_t p = 0;
        for (; p + apart <= stop; p += apart)
            add_products(K, 0, &v, column, line + p * v.step, g + p * v.g_step, 0, sums);
        for (; p < v.count; p += apart)
            add_products(K, 1, &v, column, line + p * v.step, g + p * v.g_step,
                         last ? v.lanes : v.count - p, sums);
    }
    UNROLLED for (int k = 0; k < K; k++) store(to + k * LANES, sums[k]);
}

/* All taps, up to four of a row at a time. */
INLINE void add_taps(const int last, const convcore_direct *d, const grad_view *v,
                     const ptrdiff_t *column)
{
    const ptrdiff_t row_step = d->row.stride * v->pitch, taps = d->kernel_columns;
    for (ptrdiff_t i = 0; i < d->row.begin[1]; i++) {
        const float *x = v->halo + (d->row.offset[i] - d->row.low) * v->pitch;
        for (ptrdiff_t k = 0; k < taps; k += 4) {
            float *to = v->sums + (i * taps + k) * LANES;
            switch (min_of(4, taps - k)) {
            case 4: add_halo(4, last, v, column + k, x, row_step, to); break;
            case 3: add_halo(3, last, v, column + k, x, row_step, to); break;
            case 2: add_halo(2, last, v, column + k, x, row_step, to); break;
            case 1: add_halo(1, last, v, column + k, x, row_step, to); break;
            }
        }
    }
}

static void grad_bands(const convcore_direct *d, ptrdiff_t c0, ptrdiff_t c1, ptrdiff_t j0,
                       ptrdiff_t j1, const float *x, const float *end, const float *gy,
                       const float *g_end, float *sums, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const plane_shape s = shape_plane(column);
    clear(scratch, reach(row, min_of(d->rows, j1 - j0)) * s.pitch + LANES);
    for (ptrdiff_t c = c0; c < c1; c++)
        for (ptrdiff_t j = j0; j < j1; j += d->rows) {
            ptrdiff_t stop = min_of(j1, j + d->rows);
            fill_plane(d, &s, j, stop, x + c * row->size * column->size, end, scratch);
            grad_view v = {scratch, s.pitch, 1, gy + (c * row->out + j) * column->out, column->out,
                           1, g_end, stop - j, column->out, LANES,
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
    const channel_shape s = shape_channels(column, c1 - c0);
    clear(scratch, reach(row, min_of(d->rows, j1 - j0)) * s.pitch + LANES);
    for (ptrdiff_t j = j0; j < j1; j += d->rows) {
        ptrdiff_t stop = min_of(j1, j + d->rows);
        fill_channels(d, &s, c1 - c0, j, stop, x + c0, end, scratch);
        for (ptrdiff_t b = b0; b < b1; b++) {
            const ptrdiff_t c = block_channel(C, b);
            grad_view v = {scratch + c - c0, s.pitch, column->stride * s.width, gy + j * g_row + c,
                           g_row, C, g_end, stop - j, column->out, min_of(LANES, C),
                           sums + (b - b0) * d->taps * LANES};
            add_taps(1, d, &v, s.column);
        }
    }
}

/* Add the products of rows j0 to j1 of one image's gradients with the inputs under them to
 * sums (channels, taps, LANES), to be summed over the lanes; in channels_last to
 * sums (blocks, taps, LANES).  c0 and c1: as for `depthwise`; sums begin with c0's. */
static void depthwise_gradient(const convcore_direct *d, ptrdiff_t image, ptrdiff_t c0,
                               ptrdiff_t c1, ptrdiff_t j0, ptrdiff_t j1, const float *x,
                               const float *gy, float *sums, float *scratch)
{
    const convcore_direct_axis *row = &d->row, *column = &d->column;
    const ptrdiff_t pixels = row->size * column->size, outputs = row->out * column->out;
    const float *end = x + d->size, *g_end = gy + d->size / pixels * outputs;
    x += image * d->channels * pixels;
    gy += image * d->channels * outputs;
    if (d->channels_last && d->specialisation != 71 && is_by_pixels(d)) {
        grad_pixel_view v = {x, row->size, column->size, row->low, column->low, d->channels, c0, c1,
                             gy, column->out, j0, j1, sums};
        depthwise_grad_pixels(d, &v);
    } else if (d->channels_last) {
        grad_channel_bands(d, c0, c1, j0, j1, x, end, gy, g_end, sums, scratch);
    } else if (d->specialisation != 71 && is_by_lines(d)) {
        for (ptrdiff_t c = c0; c < c1; c++) {
            grad_line_view v = {x + c * pixels, row->size, column->size, row->low, end,
                                gy + c * outputs, g_end, j0, j1, column->out,
                                sums + (c - c0) * d->taps * LANES};
            depthwise_grad_lines(d, &v);
        }
    } else {
        grad_bands(d, c0, c1, j0, j1, x, end, gy, g_end, sums, scratch);
    }
}

/* out[i] = the sum over the lanes of vector i of v. */
static void sum_lanes(const float *v, ptrdiff_t count, float *out)
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
