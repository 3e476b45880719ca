/* Convolutions of few channels a group, where a matrix product for each group would be narrow.
 *
 * A work item copies a few rows of all channels of some groups to halo tiles (halo_tile.h): planes
 * of neighbouring pixels, in either memory format, for channels_last is transposed on the way in
 * and out.  Up to four output channels by some rows of vectors are summed at a time.
 */
#include "conv/epilogue.h"
#include "conv/halo_tile.h"
#include "grouped.h"

/* Output channels by rows of sums, vectors of a row and a weight fill the registers. */
#define GROUPED_CHANNELS 4
#define GROUPED_ROWS (REGISTERS == 32 ? 4 : 2)
/* Taps of a row that the weight gradient sums at a time. */
#define GROUPED_TAPS 3

/* ---- planes ---- */

/* Transpose count <= LANES pixels, `step` floats apart, of `channels` <= LANES channels. */
INLINE void gather_pixels(const float *from, ptrdiff_t step, ptrdiff_t count, ptrdiff_t channels,
                          const float *end, vec *v)
{
    UNROLLED for (int i = 0; i < LANES; i++) {
        const float *at = from + i * step;
        if (i >= count) v[i] = (vec){0};
        else v[i] = channels < LANES ? load_some(at, channels, end) : load(at);
    }
    transpose(v);
}

/* Split a row of pixels into the lines of its channels, `plane` floats apart. */
static void split_pixels(const convcore_direct *d, const plane_shape *s, const float *from,
                         ptrdiff_t channels, const float *end, float *lines, ptrdiff_t plane)
{
    const ptrdiff_t stride = d->column.stride, step = stride * d->channels;
    for (ptrdiff_t i = 0; i < min_of(stride, s->columns.count); i++) {
        const ptrdiff_t q = s->columns.at + i, n = (s->columns.count - i + stride - 1) / stride;
        float *to = lines + q % stride * s->segment + q / stride;
        for (ptrdiff_t c = 0; c < channels; c += LANES)
            for (ptrdiff_t m = 0; m < n; m += LANES) {
                vec v[LANES];
                gather_pixels(from + i * d->channels + m * step + c, step, n - m, channels - c, end,
                              v);
                UNROLLED for (int l = 0; l < LANES; l++)
                    if (c + l < channels) store(to + (c + l) * plane + m, v[l]);
            }
    }
}

/* Copy the rows that outputs j0 to j1 of each phase see, of channels c0 to c0 + channels, to halos
 * `plane` floats apart, whose padding columns are zeros. */
INLINE void fill_planes(const convcore_direct *d, const plane_shape *s, ptrdiff_t c0,
                        ptrdiff_t channels, ptrdiff_t j0, ptrdiff_t j1, const float *image,
                        const float *end, float *halos, ptrdiff_t plane)
{
    const convcore_direct_axis *axis = &d->row;
    const ptrdiff_t rows = reach(axis, j1 - j0);
    if (!d->channels_last) {
        for (ptrdiff_t c = 0; c < channels; c++)
            fill_plane(d, s, j0, j1,
                       image + (c0 + c) * d->depth.size * axis->size * d->column.size, end,
                       halos + c * plane);
        return;
    }
    run seen = inputs_of(axis, j0 * axis->stride + axis->low, rows);
    if (s->columns.count == 0) return;
    for (ptrdiff_t c = 0; c < channels; c++) {
        float *halo = halos + c * plane;
        clear(halo, seen.at * s->pitch);
        clear(halo + (seen.at + seen.count) * s->pitch,
              (rows - seen.at - seen.count) * s->pitch);
    }
    for (ptrdiff_t i = 0; i < seen.count; i++)
        split_pixels(d, s, image + ((seen.first + i) * d->column.size + s->columns.first) * d->channels
                               + c0,
                     channels, end, halos + (seen.at + i) * s->pitch, plane);
}

/* Put pixels together from the lines of `channels` channels: pixels `step` floats apart. */
static void merge_pixels(const float *lines, ptrdiff_t plane, ptrdiff_t count, ptrdiff_t channels,
                         float *y, ptrdiff_t step)
{
    for (ptrdiff_t c = 0; c < channels; c += LANES)
        for (ptrdiff_t m = 0; m < count; m += LANES) {
            vec v[LANES];
            UNROLLED for (int l = 0; l < LANES; l++)
                v[l] = c + l < channels ? load(lines + (c + l) * plane + m) : (vec){0};
            transpose(v);
            UNROLLED for (int l = 0; l < LANES; l++)
                if (m + l < count) store_up_to(y + (m + l) * step + c, v[l], channels - c);
        }
}

/* ---- forward, and the input gradient ---- */

/* What the sums of one group see. */
typedef struct {
    const float *halos;
    ptrdiff_t plane;             /* floats from a channel's halo to the next */
    ptrdiff_t slices;            /* of inputs */
    ptrdiff_t slice;             /* floats of the halo of one */
    ptrdiff_t pitch;
    const ptrdiff_t *column;
    const float *w;              /* (c, taps of the phase, output channels of the block) */
    ptrdiff_t w_channel;         /* taps of a channel, and those before the first slice */
    ptrdiff_t w_first;
    float *to;                   /* lines of sums */
    ptrdiff_t to_channel;
    ptrdiff_t to_row;
    ptrdiff_t count;             /* outputs of a row; whole vectors are stored */
} group_view;

/* sums[o][r] += weight of o * input of row r. */
INLINE void add_tap(const int O, const int R, const float *const *lines, ptrdiff_t column,
                    const float *w, vec sums[GROUPED_CHANNELS][4])
{
    vec x[4];
    UNROLLED for (int r = 0; r < R; r++) {
        x[r] = load(lines[r] + column);
        KEEP(x[r]);
    }
    UNROLLED for (int o = 0; o < O; o++) {
        vec tap = broadcast(w[o]);
        UNROLLED for (int r = 0; r < R; r++) sums[o][r] += x[r] * tap;
    }
}

/* O output channels by R rows of one phase, from row r0 on.  K: taps of a row, or 0 for any number. */
INLINE void sum_group(const int O, const int R, const int K, const convcore_grouped *g,
                      ptrdiff_t phase, ptrdiff_t phase_column, const group_view *given,
                      ptrdiff_t r0, const float *bias, const convcore_epilogue *e)
{
    const convcore_direct_axis *row = &g->direct.row;
    const group_view v = *given;
    const convcore_epilogue own = *e;
    const ptrdiff_t apart = row->stride * v.pitch;
    const ptrdiff_t row_taps = n_taps(row, phase);
    const ptrdiff_t taps = n_taps(&g->direct.column, phase_column);
    const ptrdiff_t first = g->direct.column.begin[phase_column];
    ptrdiff_t column[GROUPED_TAPS];
    UNROLLED for (int k = 0; k < K; k++) column[k] = v.column[first + k];
    for (ptrdiff_t p = 0; p < v.count; p += LANES) {
        vec sums[GROUPED_CHANNELS][4];
        const float *channel = v.halos + r0 * apart + p;
        UNROLLED for (int o = 0; o < O; o++)
            UNROLLED for (int r = 0; r < R; r++) sums[o][r] = broadcast(bias[o]);
        for (ptrdiff_t c = 0; c < g->c; c++) {
            const float *w = v.w + (c * v.w_channel + v.w_first) * O;
            for (ptrdiff_t t = 0; t < v.slices; t++)
                for (ptrdiff_t i = 0; i < row_taps; i++) {
                    const float *lines[4];
                    lines[0] = channel + t * v.slice
                               + (offset_of(row, phase, i) - row->low) * v.pitch;
                    UNROLLED for (int r = 0; r < R; r++) {
                        HOLD(lines[r]);
                        if (r + 1 < R) lines[r + 1] = lines[r] + apart;
                    }
                    if (K > 0) {
                        UNROLLED for (int k = 0; k < K; k++, w += O)
                            add_tap(O, R, lines, column[k], w, sums);
                    } else {
                        for (ptrdiff_t k = 0; k < taps; k++, w += O)
                            add_tap(O, R, lines, v.column[first + k], w, sums);
                    }
                }
            channel += v.plane;
        }
        float *to = v.to + r0 * v.to_row + p;
        UNROLLED for (int o = 0; o < O; o++) {
            UNROLLED for (int r = 0; r < R; r++)
                store(to + r * v.to_row, own.kind ? activated(sums[o][r], &own) : sums[o][r]);
            to += v.to_channel;
        }
    }
}

/* All rows; the last ones may be made twice. */
INLINE void sum_group_rows(const int O, const int K, const convcore_grouped *g, ptrdiff_t phase,
                           ptrdiff_t phase_column, const group_view *v, ptrdiff_t rows,
                           const float *bias, const convcore_epilogue *e)
{
    if (rows < GROUPED_ROWS) {
        for (ptrdiff_t r = 0; r < rows; r++)
            sum_group(O, 1, 0, g, phase, phase_column, v, r, bias, e);
        return;
    }
    for (ptrdiff_t r = 0;; r = min_of(r + GROUPED_ROWS, rows - GROUPED_ROWS)) {
        sum_group(O, GROUPED_ROWS, K, g, phase, phase_column, v, r, bias, e);
        if (r + GROUPED_ROWS == rows) break;
    }
}

#define SUM_GROUP(O)                                                                              \
    static void sum_group_##O(const convcore_grouped *g, ptrdiff_t phase, ptrdiff_t phase_column, \
                              const group_view *v, ptrdiff_t rows, const float *bias,             \
                              const convcore_epilogue *e)                                         \
    {                                                                                             \
        const convcore_direct_axis *column = &g->direct.column;                                          \
        if (n_taps(column, phase_column) == 3)                                                    \
            sum_group_rows(O, 3, g, phase, phase_column, v, rows, bias, e);                       \
        else                                                                                      \
            sum_group_rows(O, 0, g, phase, phase_column, v, rows, bias, e);                       \
    }
SUM_GROUP(1) SUM_GROUP(2) SUM_GROUP(3) SUM_GROUP(4)

/* All output channels of one group, of one phase, into lines.  w: those of one group. */
static void sum_channels(const convcore_grouped *g, const slice_view *z, ptrdiff_t phase,
                         ptrdiff_t phase_column, group_view v, ptrdiff_t rows, const float *bias,
                         const convcore_epilogue *e)
{
    const convcore_direct_axis *depth = &g->direct.depth;
    const convcore_direct_axis *row = &g->direct.row, *column = &g->direct.column;
    const ptrdiff_t slices = n_taps(depth, z->phase), row_taps = n_taps(row, phase);
    const ptrdiff_t plane = row_taps * n_taps(column, phase_column);
    /* The taps of the phases before this one. */
    const ptrdiff_t columns = column->begin[column->phases];
    const ptrdiff_t before = depth->begin[z->phase] * row->begin[row->phases] * columns
                             + slices * (row->begin[phase] * columns
                                         + row_taps * column->begin[phase_column]);
    v.w += before * g->c * g->o;
    v.w_channel = slices * plane;
    v.w_first = z->tap * plane;
    for (ptrdiff_t o = 0; o < g->o; o += GROUPED_CHANNELS) {
        float own[GROUPED_CHANNELS] = {0};
        const ptrdiff_t count = min_of(GROUPED_CHANNELS, g->o - o);
        if (bias)
            for (ptrdiff_t i = 0; i < count; i++) own[i] = bias[o + i];
        switch (count) {
        case 1: sum_group_1(g, phase, phase_column, &v, rows, own, e); break;
        case 2: sum_group_2(g, phase, phase_column, &v, rows, own, e); break;
        case 3: sum_group_3(g, phase, phase_column, &v, rows, own, e); break;
        case 4: sum_group_4(g, phase, phase_column, &v, rows, own, e); break;
        }
        v.w += g->c * v.w_channel * count;
        v.to += count * v.to_channel;
    }
}

/* Lines of sums: (channels, rows, phases of columns, segment). */
INLINE ptrdiff_t line_segment(const convcore_direct_axis *column)
{
    return (outputs_of(column, 0) + LANES - 1) / LANES * LANES;
}

/* Copy the lines of one row of all channels of some groups to y. */
static void put_lines(const convcore_grouped *g, const float *lines, ptrdiff_t line_channel,
                      ptrdiff_t channels, float *y)
{
    const convcore_direct_axis *row = &g->direct.row, *column = &g->direct.column;
    const ptrdiff_t segment = line_segment(column), made = g->groups * g->o;
    const ptrdiff_t y_channel = g->direct.depth.out * row->out * column->out;
    if (g->direct.channels_last) {
        for (ptrdiff_t b = 0; b < column->phases; b++)
            merge_pixels(lines + b * segment, line_channel, outputs_of(column, b), channels,
                         y + b * made, column->phases * made);
        return;
    }
    for (ptrdiff_t c = 0; c < channels; c++) {
        const float *from = lines + c * line_channel;
        float *to = y + c * y_channel;
        if (column->phases == 1) memcpy(to, from, (size_t)column->out * sizeof(float));
        else merge_line(from, segment, column->phases, column->out, to);
    }
}

/* Outputs of one slice: rows j0 to j1 of each phase, of groups g0 to g1.
 *
 * w: for each group and phase of slices, rows and columns (blocks of four output channels, c, taps of
 * the phase, the block's channels).
 * scratch: halos of g1 - g0 groups, then their lines of sums. */
static void grouped(const convcore_grouped *g, ptrdiff_t slice, ptrdiff_t g0, ptrdiff_t g1,
                    ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *w, float *y,
                    const convcore_epilogue *e, float *scratch)
{
    const convcore_direct *d = &g->direct;
    const convcore_direct_axis *row = &d->row, *column = &d->column, *depth = &d->depth;
    const ptrdiff_t made = g->groups * g->o, block = min_of(d->rows, j1 - j0);
    const ptrdiff_t pixels = row->size * column->size, outputs = row->out * column->out;
    const slice_view z = view_slice(depth, slice);
    const ptrdiff_t x_slice = slice_step(d, d->channels, pixels);
    plane_shape s;
    shape_plane(column, &s);
    const ptrdiff_t halo = reach(row, block) * s.pitch, plane = z.count * halo + LANES;
    const ptrdiff_t segment = line_segment(column);
    const ptrdiff_t line_row = column->phases * segment, line_channel = block * line_row;
    const float *end = x + d->size;
    float *lines = scratch + (g1 - g0) * g->c * plane;
    x += z.image * d->channels * depth->size * pixels + z.input * x_slice;
    y += z.image * made * depth->out * outputs + z.output * slice_step(d, made, outputs)
         + g0 * g->o * (d->channels_last ? 1 : depth->out * outputs);
    clear(scratch, (g1 - g0) * g->c * plane);
    for (ptrdiff_t j = j0; j < j1; j += block) {
        const ptrdiff_t stop = min_of(j1, j + block);
        for (ptrdiff_t t = 0; t < z.count; t++)
            fill_planes(d, &s, g0 * g->c, (g1 - g0) * g->c, j, stop, x + t * depth->step * x_slice,
                        end, scratch + t * halo, plane);
        for (ptrdiff_t a = 0; a < row->phases; a++) {
            const ptrdiff_t rows = min_of(stop, outputs_of(row, a)) - j;
            for (ptrdiff_t i = g0; i < g1; i++)
                for (ptrdiff_t b = 0; b < column->phases; b++) {
                    group_view v = {.halos = scratch + (i - g0) * g->c * plane, .plane = plane,
                                    .slices = z.count, .slice = halo, .pitch = s.pitch,
                                    .column = s.column, .w = w + i * g->o * g->c * d->taps,
                                    .to = lines + (i - g0) * g->o * line_channel + b * segment,
                                    .to_channel = line_channel, .to_row = line_row,
                                    .count = outputs_of(column, b)};
                    sum_channels(g, &z, a, b, v, rows, e->bias ? e->bias + i * g->o : NULL, e);
                }
            for (ptrdiff_t r = 0; r < rows; r++)
                put_lines(g, lines + r * line_row, line_channel, (g1 - g0) * g->o,
                          y + (a + row->phases * (j + r)) * column->out * (d->channels_last ? made : 1));
        }
    }
}

/* ---- the weight gradient ---- */

/* What the sums of one group's products see. */
typedef struct {
    const float *halo;           /* of one input channel */
    ptrdiff_t pitch;
    const float *g;              /* lines of gradients of O output channels */
    ptrdiff_t g_channel;
    ptrdiff_t g_row;
    ptrdiff_t rows;
    ptrdiff_t count;
    ptrdiff_t row_step;          /* of the halo, from a row of outputs to the next */
    float *sums;
    ptrdiff_t sums_channel;      /* floats from an output channel's sums to the next one's */
} group_grad_view;

/* sums[o, k] += gradient * input under tap k, for O output channels and K taps of a row. */
INLINE void add_group(const int O, const int K, const group_grad_view *given,
                      const ptrdiff_t *columns)
{
    const group_grad_view v = *given;
    const ptrdiff_t rest = v.count % LANES, whole = v.count - rest;
    vec sums[GROUPED_CHANNELS][GROUPED_TAPS];
    UNROLLED for (int o = 0; o < O; o++)
        UNROLLED for (int k = 0; k < K; k++)
            sums[o][k] = load(v.sums + o * v.sums_channel + k * LANES);
    for (ptrdiff_t r = 0; r < v.rows; r++) {
        const float *at = v.halo + r * v.row_step, *g = v.g + r * v.g_row;
        const float *of[GROUPED_CHANNELS], *under[GROUPED_TAPS];
        UNROLLED for (int k = 0; k < K; k++) {
            under[k] = at + columns[k];
            HOLD(under[k]);
        }
        UNROLLED for (int o = 0; o < O; o++) {
            of[o] = g + o * v.g_channel;
            HOLD(of[o]);
        }
        for (ptrdiff_t p = 0; p < whole; p += LANES) {
            vec x[GROUPED_TAPS];
            UNROLLED for (int k = 0; k < K; k++) {
                x[k] = load(under[k] + p);
                KEEP(x[k]);
            }
            UNROLLED for (int o = 0; o < O; o++) {
                vec own = load(of[o] + p);
                UNROLLED for (int k = 0; k < K; k++) sums[o][k] += own * x[k];
            }
        }
        if (rest > 0) {
            vec x[GROUPED_TAPS];
            /* Zero times what lies beyond the row could be NaN. */
            UNROLLED for (int k = 0; k < K; k++) {
                x[k] = first_lanes(load(under[k] + whole), rest);
                KEEP(x[k]);
            }
            UNROLLED for (int o = 0; o < O; o++) {
                vec own = load(of[o] + whole);
                UNROLLED for (int k = 0; k < K; k++) sums[o][k] += own * x[k];
            }
        }
    }
    UNROLLED for (int o = 0; o < O; o++)
        UNROLLED for (int k = 0; k < K; k++)
            store(v.sums + o * v.sums_channel + k * LANES, sums[o][k]);
}

#define ADD_GROUP(O)                                                                        \
    static void add_group_##O(const group_grad_view *v, ptrdiff_t taps, const ptrdiff_t *column) \
    {                                                                                       \
        group_grad_view own = *v;                                                           \
        for (ptrdiff_t k = 0; k < taps; k += GROUPED_TAPS) {                                \
            switch (min_of(GROUPED_TAPS, taps - k)) {                                        \
            case 3: add_group(O, 3, &own, column + k); break;                               \
            case 2: add_group(O, 2, &own, column + k); break;                               \
            case 1: add_group(O, 1, &own, column + k); break;                               \
            }                                                                               \
            own.sums += GROUPED_TAPS * LANES;                                               \
        }                                                                                   \
    }
ADD_GROUP(1) ADD_GROUP(2) ADD_GROUP(4)

/* All output channels of one group with one row of taps of one input channel. */
static void add_channels(const convcore_grouped *g, group_grad_view v, const ptrdiff_t *column)
{
    const int most_channels = REGISTERS == 32 ? 4 : 2;
    for (ptrdiff_t o = 0; o < g->o;) {
        ptrdiff_t left = min_of(most_channels, g->o - o), count = left == 3 ? 2 : left;
        switch (count) {
        case 1: add_group_1(&v, g->direct.kernel_columns, column); break;
        case 2: add_group_2(&v, g->direct.kernel_columns, column); break;
        case 4: add_group_4(&v, g->direct.kernel_columns, column); break;
        }
        o += count;
        v.g += count * v.g_channel;
        v.sums += count * v.sums_channel;
    }
}

/* Copy rows j0 to j1 of the gradients of some channels to lines, filled up with zeros to whole
 * vectors. */
static void fill_gradients(const convcore_grouped *g, ptrdiff_t c0, ptrdiff_t channels,
                           ptrdiff_t j0, ptrdiff_t j1, const float *image, const float *end,
                           float *lines, ptrdiff_t line_channel, ptrdiff_t segment)
{
    const ptrdiff_t made = g->groups * g->o, out = g->direct.column.out;
    const ptrdiff_t y_channel = g->direct.depth.out * g->direct.row.out * out;
    for (ptrdiff_t j = j0; j < j1; j++, lines += segment) {
        if (!g->direct.channels_last) {
            for (ptrdiff_t c = 0; c < channels; c++)
                copy_line(image + (c0 + c) * y_channel + j * out, out, end,
                          lines + c * line_channel);
            continue;
        }
        for (ptrdiff_t c = 0; c < channels; c += LANES)
            for (ptrdiff_t m = 0; m < out; m += LANES) {
                vec v[LANES];
                gather_pixels(image + (j * out + m) * made + c0 + c, made, out - m, channels - c,
                              end, v);
                UNROLLED for (int l = 0; l < LANES; l++)
                    if (c + l < channels) store(lines + (c + l) * line_channel + m, v[l]);
            }
    }
}

/* Add to sums (groups, o, c, taps, LANES) of groups g0 to g1 the products of rows j0 to j1 of one
 * slice's gradients with the inputs under them.
 *
 * scratch: halos of g1 - g0 groups, then lines of their gradients. */
static void grouped_gradient(const convcore_grouped *g, ptrdiff_t slice, ptrdiff_t g0,
                             ptrdiff_t g1, ptrdiff_t j0, ptrdiff_t j1, const float *x,
                             const float *gy, float *sums, float *scratch)
{
    const convcore_direct *d = &g->direct;
    const convcore_direct_axis *row = &d->row, *column = &d->column, *depth = &d->depth;
    const ptrdiff_t pixels = row->size * column->size, outputs = row->out * column->out;
    const ptrdiff_t made = g->groups * g->o, block = min_of(d->rows, j1 - j0);
    plane_shape s;
    shape_plane(column, &s);
    const ptrdiff_t plane = reach(row, block) * s.pitch + LANES, segment = line_segment(column);
    const ptrdiff_t line_channel = block * segment + LANES;
    const slice_view z = view_slice(depth, slice);
    const ptrdiff_t x_slice = slice_step(d, d->channels, pixels);
    const float *end = x + d->size;
    const float *g_end = gy + d->size / (d->channels * depth->size * pixels) * made * depth->out * outputs;
    float *lines = scratch + (g1 - g0) * g->c * plane;
    x += z.image * d->channels * depth->size * pixels + z.input * x_slice;
    gy += z.image * made * depth->out * outputs + z.output * slice_step(d, made, outputs);
    clear(scratch, (g1 - g0) * (g->c * plane + g->o * line_channel));
    for (ptrdiff_t j = j0; j < j1; j += block) {
        const ptrdiff_t stop = min_of(j1, j + block);
        for (ptrdiff_t t = 0; t < z.count; t++) {
            fill_planes(d, &s, g0 * g->c, (g1 - g0) * g->c, j, stop, x + t * depth->step * x_slice,
                        end, scratch, plane);
            if (t == 0)
                fill_gradients(g, g0 * g->o, (g1 - g0) * g->o, j, stop, gy, g_end, lines,
                               line_channel, segment);
            for (ptrdiff_t i = 0; i < (g1 - g0) * g->c; i++)
                for (ptrdiff_t k = 0; k < n_taps(row, 0); k++) {
                    const ptrdiff_t sum = (i / g->c * g->o * g->c + i % g->c) * d->taps
                                          + (z.tap + t) * d->kernel_plane + k * d->kernel_columns;
                    group_grad_view v = {
                        scratch + i * plane + (offset_of(row, 0, k) - row->low) * s.pitch, s.pitch,
                        lines + i / g->c * g->o * line_channel, line_channel, segment, stop - j,
                        column->out, row->stride * s.pitch, sums + sum * LANES,
                        g->c * d->taps * LANES};
                    add_channels(g, v, s.column);
                }
        }
    }
}

const convcore_grouped_kernels CONVCORE_TABLE(convcore_grouped) = {
    grouped, grouped_gradient, sum_lanes
};
