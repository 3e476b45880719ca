/* Winograd's transforms of tiles, for F(M x M, 3 x 3): included once for each M.
 *
 * Channels are the lanes of the vectors.  In channels_last memory they lie so; in contiguous memory
 * a strip of tiles is transposed into a small buffer first, or last.
 */
#include "epilogue.h"
#include "leaves.h"
#include "vec.h"
#include "winograd_lines.h"

#define EDGE (M + 2)
#define POINTS (EDGE * EDGE)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(name##_, M)

#ifndef CONVCORE_WINOGRAD_PLACES
#define CONVCORE_WINOGRAD_PLACES

/* Columns of pixels that the buffer of a strip holds. */
#define STRIP 72

/* Where a tile is. */
typedef struct {
    ptrdiff_t n, class_row, class_column, row, column;
} place;

INLINE place place_of(const convcore_tiling *at, ptrdiff_t tile)
{
    place p;
    p.column = tile % at->tiles[1], tile /= at->tiles[1];
    p.row = tile % at->tiles[0], tile /= at->tiles[0];
    p.class_column = tile % at->classes[1], tile /= at->classes[1];
    p.class_row = tile % at->classes[0];
    p.n = tile / at->classes[0];
    return p;
}

/* Go on by `count` tiles, which stay within the row of tiles or just reach its end. */
INLINE void step_on(const convcore_tiling *at, place *p, ptrdiff_t count)
{
    p->column += count;
    if (p->column < at->tiles[1]) return;
    p->column = 0;
    if (++p->row < at->tiles[0]) return;
    p->row = 0;
    if (++p->class_column < at->classes[1]) return;
    p->class_column = 0;
    if (++p->class_row < at->classes[0]) return;
    p->class_row = 0;
    p->n++;
}

INLINE ptrdiff_t first_row(const convcore_tiling *at, const place *p)
{
    return at->first[0] + p->class_row * at->class_step[0] + p->row * at->advance[0];
}

INLINE ptrdiff_t first_column(const convcore_tiling *at, const place *p)
{
    return at->first[1] + p->class_column * at->class_step[1] + p->column * at->advance[1];
}

INLINE ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

INLINE ptrdiff_t larger(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* The elements i of a tile with 0 <= start + i * step < size are [from, to). */
INLINE void inside(ptrdiff_t start, ptrdiff_t step, ptrdiff_t size, ptrdiff_t edge,
                   ptrdiff_t *from, ptrdiff_t *to)
{
    *from = 0, *to = edge;
    while (*from < edge && start + *from * step < 0) ++*from;
    while (*to > *from && start + (*to - 1) * step >= size) --*to;
}

/* How many of the tiles from p on, up to `most`, one strip takes: of one row, and of few columns. */
INLINE ptrdiff_t strip_of(const convcore_tiling *at, const place *p, ptrdiff_t edge, ptrdiff_t most)
{
    ptrdiff_t span = (edge - 1) * at->step[1] + 1;
    ptrdiff_t fit = span >= STRIP ? 1 : (STRIP - span) / at->advance[1] + 1;
    return smaller(smaller(most, at->tiles[1] - p->column), larger(fit, 1));
}

/* Pixels [0, count) of up to LANES planes, a stride apart, as vectors of one pixel each. */
INLINE void planes_to_vectors(const float *x, ptrdiff_t plane, ptrdiff_t planes, ptrdiff_t count,
                              float *out)
{
    for (ptrdiff_t at = 0; at < count; at += LANES) {
        vec v[LANES];
        ptrdiff_t few = count - at;
        /* The last vector overlaps the one before it where there is one. */
        if (few < LANES && count >= LANES) at = count - LANES, few = LANES;
        UNROLLED for (int l = 0; l < LANES; l++)
            v[l] = l >= planes ? (vec){0}
                   : few < LANES ? load_first(x + l * plane + at, few)
                                 : load(x + l * plane + at);
        transpose(v);
        for (int l = 0; l < LANES && l < few; l++) store(out + (at + l) * LANES, v[l]);
    }
}

/* The way back: vectors of one pixel each to pixels of up to LANES planes. */
INLINE void vectors_to_planes(const float *in, ptrdiff_t count, float *y, ptrdiff_t plane,
                              ptrdiff_t planes)
{
    for (ptrdiff_t at = 0; at < count; at += LANES) {
        vec v[LANES];
        ptrdiff_t few = count - at;
        if (few < LANES && count >= LANES) at = count - LANES, few = LANES;
        UNROLLED for (int l = 0; l < LANES; l++)
            v[l] = l < few ? load(in + (at + l) * LANES) : (vec){0};
        transpose(v);
        for (int l = 0; l < LANES && l < planes; l++) {
            if (few < LANES)
                store_first(y + l * plane + at, v[l], few);
            else
                store(y + l * plane + at, v[l]);
        }
    }
}

/* The rows of a strip in contiguous memory, as vectors, with zeros outside the image. */
INLINE void stage_strip(const convcore_tiling *at, const float *x, ptrdiff_t channels,
                        ptrdiff_t row, ptrdiff_t column, ptrdiff_t rows, ptrdiff_t columns,
                        float *out)
{
    ptrdiff_t from = smaller(larger(0, -column), columns);
    ptrdiff_t to = larger(smaller(columns, at->size[1] - column), from);
    for (ptrdiff_t i = 0; i < rows; i++, out += columns * LANES) {
        ptrdiff_t r = row + i * at->step[0], some = 0 <= r && r < at->size[0] ? to - from : 0;
        const float *line = x + r * at->line[0] + column + from;
        for (ptrdiff_t j = 0; j < (some ? from : columns); j++) store(out + j * LANES, (vec){0});
        if (!some) continue;
        planes_to_vectors(line, at->channel, smaller(channels, LANES), some, out + from * LANES);
        for (ptrdiff_t j = to; j < columns; j++) store(out + j * LANES, (vec){0});
    }
}

#endif

/* ---- tiles of data, and of gradients, to points ---- */

typedef void (*OF(lines))(vec *, const int);

/* Transform `edge` x `edge` vectors, at row and column strides, into POINTS vectors.  Elements
 * outside [from, to) are zeros; `few` lanes, if any, are all there is to load. */
INLINE void OF(to_points)(const int edge, OF(lines) line, const float *x, ptrdiff_t row,
                          ptrdiff_t column, const ptrdiff_t *from, const ptrdiff_t *to,
                          ptrdiff_t few, float *v, ptrdiff_t point)
{
    vec t[POINTS];
    UNROLLED for (int j = 0; j < edge; j++) {
        UNROLLED for (int i = 0; i < edge; i++) {
            const float *p = x + i * row + j * column;
            int there = from == NULL
                        || (from[0] <= i && i < to[0] && from[1] <= j && j < to[1]);
            t[i * EDGE + j] = !there ? (vec){0} : few ? load_first(p, few) : load(p);
        }
        line(t + j, EDGE);
    }
    UNROLLED for (int i = 0; i < EDGE; i++) {
        line(t + i * EDGE, 1);
        UNROLLED for (int j = 0; j < EDGE; j++) store(v + (i * EDGE + j) * point, t[i * EDGE + j]);
    }
}

/* One tile in channels_last memory. */
INLINE void OF(tile_to_points)(const convcore_tiling *at, const int edge, OF(lines) line,
                               const float *x, const place *p, ptrdiff_t channels, float *v,
                               ptrdiff_t point)
{
    ptrdiff_t row = first_row(at, p), column = first_column(at, p), from[2], to[2], c = 0;
    ptrdiff_t rows = at->line[0] * at->step[0], columns = at->line[1] * at->step[1];
    inside(row, at->step[0], at->size[0], edge, &from[0], &to[0]);
    inside(column, at->step[1], at->size[1], edge, &from[1], &to[1]);
    x += p->n * at->image + row * at->line[0] + column * at->line[1];
    if (from[0] == 0 && to[0] == edge && from[1] == 0 && to[1] == edge)
        for (; c + LANES <= channels; c += LANES)
            OF(to_points)(edge, line, x + c, rows, columns, NULL, NULL, 0, v + c, point);
    for (; c + LANES <= channels; c += LANES)
        OF(to_points)(edge, line, x + c, rows, columns, from, to, 0, v + c, point);
    if (c < channels)
        OF(to_points)(edge, line, x + c, rows, columns, from, to, channels - c, v + c, point);
}

/* A strip of tiles in contiguous memory. */
INLINE void OF(strip_to_points)(const convcore_tiling *at, const int edge, OF(lines) line,
                                const float *x, const place *p, ptrdiff_t count,
                                ptrdiff_t channels, float *v, ptrdiff_t tile, ptrdiff_t point)
{
    ALIGNED float strip[EDGE * STRIP * LANES];
    ptrdiff_t columns = (count - 1) * at->advance[1] + (edge - 1) * at->step[1] + 1;
    x += p->n * at->image;
    for (ptrdiff_t c = 0; c < channels; c += LANES) {
        stage_strip(at, x + c * at->channel, channels - c, first_row(at, p), first_column(at, p),
                    edge, columns, strip);
        for (ptrdiff_t i = 0; i < count; i++)
            OF(to_points)(edge, line, strip + i * at->advance[1] * LANES, columns * LANES,
                          at->step[1] * LANES, NULL, NULL, 0, v + i * tile + c, point);
    }
}

INLINE void OF(all_to_points)(const convcore_tiling *at, const int edge, OF(lines) line,
                              const float *x, ptrdiff_t channels, ptrdiff_t first, ptrdiff_t end,
                              float *v, ptrdiff_t tile, ptrdiff_t point)
{
    place p = place_of(at, first);
    while (first < end) {
        ptrdiff_t count = 1;
        if (at->channel == 1) {
            OF(tile_to_points)(at, edge, line, x, &p, channels, v, point);
        } else {
            count = strip_of(at, &p, edge, end - first);
            OF(strip_to_points)(at, edge, line, x, &p, count, channels, v, tile, point);
        }
        step_on(at, &p, count);
        first += count;
        v += count * tile;
    }
}

static void OF(winograd_data)(const convcore_tiling *at, const float *x, ptrdiff_t channels,
                              ptrdiff_t first, ptrdiff_t end, float *v, ptrdiff_t tile,
                              ptrdiff_t point)
{
    OF(all_to_points)(at, EDGE, OF(data), x, channels, first, end, v, tile, point);
}

static void OF(winograd_gradients)(const convcore_tiling *at, const float *gy, ptrdiff_t channels,
                                   ptrdiff_t first, ptrdiff_t end, float *v, ptrdiff_t tile,
                                   ptrdiff_t point)
{
    OF(all_to_points)(at, M, OF(gradients), gy, channels, first, end, v, tile, point);
}

/* ---- points to tiles of outputs ---- */

/* Transform POINTS vectors into M x M finished ones. */
INLINE void OF(from_points)(const float *m, ptrdiff_t point, const convcore_epilogue *epilogue,
                            vec bias, vec t[POINTS])
{
    UNROLLED for (int i = 0; i < EDGE; i++) {
        UNROLLED for (int j = 0; j < EDGE; j++)
            t[i * EDGE + j] = load(m + (i * EDGE + j) * point);
        OF(outputs)(t + i * EDGE, 1);
    }
    UNROLLED for (int j = 0; j < M; j++) {
        OF(outputs)(t + j, EDGE);
        UNROLLED for (int i = 0; i < M; i++)
            t[i * EDGE + j] = activated(t[i * EDGE + j] + bias, epilogue);
    }
}

INLINE vec OF(bias_of)(const convcore_epilogue *epilogue, ptrdiff_t c, ptrdiff_t channels)
{
    if (epilogue->bias == NULL) return (vec){0};
    return channels - c < LANES ? load_first(epilogue->bias + c, channels - c)
                                : load(epilogue->bias + c);
}

/* One tile to channels_last memory. */
INLINE void OF(tile_from_points)(const convcore_tiling *at, const float *m, ptrdiff_t point,
                                 ptrdiff_t channels, const place *p,
                                 const convcore_epilogue *epilogue, float *y)
{
    ptrdiff_t row = first_row(at, p), column = first_column(at, p), from[2], to[2];
    ptrdiff_t rows = at->line[0] * at->step[0], columns = at->line[1] * at->step[1];
    inside(row, at->step[0], at->size[0], M, &from[0], &to[0]);
    inside(column, at->step[1], at->size[1], M, &from[1], &to[1]);
    y += p->n * at->image + row * at->line[0] + column * at->line[1];
    for (ptrdiff_t c = 0; c < channels; c += LANES) {
        vec t[POINTS];
        ptrdiff_t few = channels - c < LANES ? channels - c : 0;
        OF(from_points)(m + c, point, epilogue, OF(bias_of)(epilogue, c, channels), t);
        UNROLLED for (int i = 0; i < M; i++)
            UNROLLED for (int j = 0; j < M; j++) {
                if (i >= to[0] || j >= to[1]) continue;
                float *out = y + i * rows + j * columns + c;
                if (few)
                    store_first(out, t[i * EDGE + j], few);
                else
                    store(out, t[i * EDGE + j]);
            }
    }
}

/* A strip of tiles to contiguous memory. */
INLINE void OF(strip_from_points)(const convcore_tiling *at, const float *m, ptrdiff_t tile,
                                  ptrdiff_t point, ptrdiff_t channels, const place *p,
                                  ptrdiff_t count, const convcore_epilogue *epilogue, float *y)
{
    ALIGNED float strip[M * STRIP * LANES];
    ptrdiff_t row = first_row(at, p), column = first_column(at, p), step = at->step[1];
    ptrdiff_t columns = larger(0, (at->size[1] - column + step - 1) / step);
    y += p->n * at->image + column;
    columns = smaller(columns, count * M);
    for (ptrdiff_t c = 0; c < channels; c += LANES) {
        ptrdiff_t planes = smaller(channels - c, LANES);
        for (ptrdiff_t k = 0; k < count; k++) {
            vec t[POINTS];
            OF(from_points)(m + k * tile + c, point, epilogue, OF(bias_of)(epilogue, c, channels),
                            t);
            UNROLLED for (int i = 0; i < M; i++)
                UNROLLED for (int j = 0; j < M; j++)
                    store(strip + ((i * count + k) * M + j) * LANES, t[i * EDGE + j]);
        }
        for (ptrdiff_t i = 0; i < M && row + i * at->step[0] < at->size[0]; i++) {
            const float *in = strip + i * count * M * LANES;
            float *out = y + c * at->channel + (row + i * at->step[0]) * at->line[0];
            if (step == 1)
                vectors_to_planes(in, columns, out, at->channel, planes);
            else
                for (ptrdiff_t l = 0; l < planes; l++)
                    for (ptrdiff_t j = 0; j < columns; j++)
                        out[l * at->channel + j * step] = in[j * LANES + l];
        }
    }
}

static void OF(winograd_outputs)(const convcore_tiling *at, const float *m, ptrdiff_t tile,
                                 ptrdiff_t point, ptrdiff_t channels, ptrdiff_t first,
                                 ptrdiff_t end, const convcore_epilogue *epilogue, float *y)
{
    place p = place_of(at, first);
    while (first < end) {
        ptrdiff_t count = 1;
        if (at->channel == 1) {
            OF(tile_from_points)(at, m, point, channels, &p, epilogue, y);
        } else {
            count = smaller(strip_of(at, &p, M, end - first), STRIP / M);
            OF(strip_from_points)(at, m, tile, point, channels, &p, count, epilogue, y);
        }
        step_on(at, &p, count);
        first += count;
        m += count * tile;
    }
}

/* ---- weights ---- */

/* LANES filters to points, as one row of each point's panel. */
INLINE void OF(filters_to_points)(const vec taps[9], float *u, ptrdiff_t point)
{
    wide t[POINTS];
    UNROLLED for (int j = 0; j < 3; j++) {
        UNROLLED for (int i = 0; i < 3; i++) t[i * EDGE + j] = WIDEN(taps[i * 3 + j]);
        OF(weights)(t + j, EDGE);
    }
    UNROLLED for (int i = 0; i < EDGE; i++) {
        OF(weights)(t + i * EDGE, 1);
        UNROLLED for (int j = 0; j < EDGE; j++)
            store(u + (i * EDGE + j) * point, NARROW(t[i * EDGE + j]));
    }
}

#ifndef CONVCORE_WINOGRAD_FILTERS
#define CONVCORE_WINOGRAD_FILTERS

/* LANES floats, or as many as come before the end. */
INLINE vec load_before(const float *p, const float *end)
{
    return end - p >= LANES ? load(p) : load_first(p, larger(end - p, 0));
}

/* How filters lie in memory: strides of channels that become lanes, that are summed, of taps. */
typedef struct {
    const float *end;
    ptrdiff_t lane, sum, row, column;
} filters;

/* Filters of one summed channel, each nine floats in a row, perhaps from the last to the first. */
INLINE void load_runs(const filters *f, const float *w, ptrdiff_t lanes, vec taps[9])
{
    const float *start = f->column > 0 ? w : w - 8;
    for (int t = 0; t < 9; t += LANES) {
        vec v[LANES];
        UNROLLED for (int l = 0; l < LANES; l++)
            v[l] = l < lanes ? load_before(start + l * f->lane + t, f->end) : (vec){0};
        transpose(v);
        for (int l = 0; l < LANES && t + l < 9; l++)
            taps[f->column > 0 ? t + l : 8 - t - l] = v[l];
    }
}

/* One tap of `sums` summed channels that lie side by side. */
INLINE void load_sums(const filters *f, const float *w, ptrdiff_t lanes, ptrdiff_t sums,
                      vec (*taps)[9])
{
    vec v[LANES];
    UNROLLED for (int l = 0; l < LANES; l++)
        v[l] = l < lanes ? load_before(w + l * f->lane, f->end) : (vec){0};
    transpose(v);
    for (int k = 0; k < LANES && k < sums; k++) taps[k][0] = v[k];
}

/* One tap of one summed channel. */
INLINE vec load_lanes(const filters *f, const float *w, ptrdiff_t lanes)
{
    ALIGNED float v[LANES] = {0};
    if (f->lane == 1) return lanes < LANES ? load_first(w, lanes) : load(w);
    for (ptrdiff_t l = 0; l < lanes; l++) v[l] = w[l * f->lane];
    return load(v);
}

/* taps[k][t]: the nine taps of up to LANES filters, for each of up to LANES summed channels. */
INLINE void load_filters(const filters *f, const float *w, ptrdiff_t lanes, ptrdiff_t sums,
                         vec (*taps)[9])
{
    int run = (f->row == 3 && f->column == 1) || (f->row == -3 && f->column == -1);
    if (run && f->lane != 1) {
        for (ptrdiff_t k = 0; k < sums; k++) load_runs(f, w + k * f->sum, lanes, taps[k]);
        return;
    }
    for (int t = 0; t < 9; t++) {
        const float *tap = w + t / 3 * f->row + t % 3 * f->column;
        if (f->sum == 1 && f->lane != 1)
            load_sums(f, tap, lanes, sums, (vec(*)[9]) & taps[0][t]);
        else
            for (ptrdiff_t k = 0; k < sums; k++)
                taps[k][t] = load_lanes(f, tap + k * f->sum, lanes);
    }
}

/* The nine taps of `lanes` filters. */
INLINE void store_filters(const vec taps[9], ptrdiff_t lanes, float *gw, ptrdiff_t lane,
                          ptrdiff_t row, ptrdiff_t column)
{
    if (lane == 1) {
        for (int t = 0; t < 9; t++) {
            float *out = gw + t / 3 * row + t % 3 * column;
            if (lanes < LANES)
                store_first(out, taps[t], lanes);
            else
                store(out, taps[t]);
        }
        return;
    }
    ALIGNED float all[9][LANES];
    for (int t = 0; t < 9; t++) store(all[t], taps[t]);
    for (ptrdiff_t l = 0; l < lanes; l++)
        for (int t = 0; t < 9; t++) gw[l * lane + t / 3 * row + t % 3 * column] = all[t][l];
}

#endif

/* Filters w[lane, sum, row, column], of `lanes` channels that are made and `sums` that are summed,
 * to rows of panels: u[point, sum, lane], rows `panel` floats apart.  `end` is w's memory's. */
static void OF(winograd_weights)(const float *w, const float *end, ptrdiff_t lane,
                                 ptrdiff_t lanes, ptrdiff_t sum, ptrdiff_t sums, ptrdiff_t row,
                                 ptrdiff_t column, float *u, ptrdiff_t panel, ptrdiff_t point)
{
    filters f = {end, lane, sum, row, column};
    for (ptrdiff_t l = 0; l < panel; l += LANES)
        for (ptrdiff_t k = 0; k < sums; k += LANES) {
            vec taps[LANES][9];
            ptrdiff_t some = smaller(sums - k, LANES);
            load_filters(&f, w + k * sum + l * lane, larger(smaller(lanes - l, LANES), 0), some,
                         taps);
            for (ptrdiff_t i = 0; i < some; i++)
                OF(filters_to_points)(taps[i], u + (k + i) * panel + l, point);
        }
}

/* Sums over tiles at each point to the gradients of `lanes` filters that are `lane` apart. */
static void OF(winograd_weight_sums)(const float *p, ptrdiff_t point, ptrdiff_t lanes, float *gw,
                                     ptrdiff_t lane, ptrdiff_t row, ptrdiff_t column)
{
    for (ptrdiff_t l = 0; l < lanes; l += LANES, gw += LANES * lane) {
        vec t[POINTS];
        vec taps[9];
        UNROLLED for (int i = 0; i < EDGE; i++) {
            UNROLLED for (int j = 0; j < EDGE; j++)
                t[i * EDGE + j] = load(p + l + (i * EDGE + j) * point);
            OF(weight_sums)(t + i * EDGE, 1);
        }
        UNROLLED for (int j = 0; j < 3; j++) {
            OF(weight_sums)(t + j, EDGE);
            UNROLLED for (int i = 0; i < 3; i++) taps[i * 3 + j] = t[i * EDGE + j];
        }
        store_filters(taps, smaller(lanes - l, LANES), gw, lane, row, column);
    }
}

#undef EDGE
#undef POINTS
#undef OF
#undef JOIN
#undef JOIN_
