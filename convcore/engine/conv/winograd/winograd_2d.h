/* Winograd's transforms of tiles, for F(M x M, R x R): included once for each pair of M and R.
 *
 * Channels are the lanes of the vectors.  In channels_last memory they lie so; in contiguous memory
 * a strip of tiles is transposed into a small buffer first, or last.
 */
#include "conv/epilogue.h"
#include "runtime/bfloat16_memory.h"
#include "runtime/vec.h"
#include "winograd.h"
#include "winograd_1d.h"

#define EDGE (M + R - 1)
#define POINTS (EDGE * EDGE)
#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define OF(name) JOIN(name, M, R)
/* The lines' transforms are called after their number of inputs. */
#if M + R == 7
#define LINE(name) name##_6
#else
#define LINE(name) name##_4
#endif

#ifndef CONVCORE_WINOGRAD_PLACES
#define CONVCORE_WINOGRAD_PLACES

/* Where a tile is. */
typedef struct {
    ptrdiff_t n, residue_row, residue_column, row, column;
} place;

INLINE place place_of(const convcore_tiling *at, ptrdiff_t tile)
{
    place p;
    p.column = tile % at->tiles[1], tile /= at->tiles[1];
    p.row = tile % at->tiles[0], tile /= at->tiles[0];
    p.residue_column = tile % at->residues[1], tile /= at->residues[1];
    p.residue_row = tile % at->residues[0];
    p.n = tile / at->residues[0];
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
    if (++p->residue_column < at->residues[1]) return;
    p->residue_column = 0;
    if (++p->residue_row < at->residues[0]) return;
    p->residue_row = 0;
    p->n++;
}

INLINE ptrdiff_t first_row(const convcore_tiling *at, const place *p)
{
    return at->first[0] + p->residue_row * at->residue_step[0] + p->row * at->advance[0];
}

INLINE ptrdiff_t first_column(const convcore_tiling *at, const place *p)
{
    return at->first[1] + p->residue_column * at->residue_step[1] + p->column * at->advance[1];
}

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
    ptrdiff_t fit = span >= CONVCORE_MAX_STRIP ? 1 : (CONVCORE_MAX_STRIP - span) / at->advance[1] + 1;
    return min_of(min_of(most, at->tiles[1] - p->column), max_of(fit, 1));
}

/* Pixels [0, count) of up to LANES planes, a stride apart, as vectors of one pixel each. */
static void planes_to_vectors(const float *x, ptrdiff_t plane, ptrdiff_t planes, ptrdiff_t count,
                              float *out)
{
    for (ptrdiff_t at = 0; at < count; at += LANES) {
        vec v[LANES];
        ptrdiff_t few = count - at;
        /* The last vector overlaps the one before it where there is one. */
        if (few < LANES && count >= LANES) at = count - LANES, few = LANES;
        if (few < LANES)
            for (int l = 0; l < LANES; l++)
                v[l] = l < planes ? load_first(x + l * plane + at, few) : (vec){0};
        else
            UNROLLED for (int l = 0; l < LANES; l++)
                v[l] = l < planes ? load(x + l * plane + at) : (vec){0};
        transpose(v);
        for (int l = 0; l < LANES && l < few; l++) store(out + (at + l) * LANES, v[l]);
    }
}

/* The way back: vectors of one pixel each to pixels of up to LANES planes. */
static void vectors_to_planes(const float *in, ptrdiff_t count, float *y, ptrdiff_t plane,
                              ptrdiff_t planes)
{
    for (ptrdiff_t at = 0; at < count; at += LANES) {
        vec v[LANES];
        ptrdiff_t few = count - at;
        if (few < LANES && count >= LANES) at = count - LANES, few = LANES;
        UNROLLED for (int l = 0; l < LANES; l++)
            v[l] = l < few ? load(in + (at + l) * LANES) : (vec){0};
        transpose(v);
        for (int l = 0; l < LANES && l < planes; l++)
            store_up_to(y + l * plane + at, v[l], few);
    }
}

/* The rows of a strip in contiguous memory, as vectors, with zeros outside the image. */
static void pack_strip(const convcore_tiling *at, const float *x, ptrdiff_t channels,
                        ptrdiff_t row, ptrdiff_t column, ptrdiff_t rows, ptrdiff_t columns,
                        float *out)
{
    ptrdiff_t from = min_of(max_of(0, -column), columns);
    ptrdiff_t to = max_of(min_of(columns, at->size[1] - column), from);
    for (ptrdiff_t i = 0; i < rows; i++, out += columns * LANES) {
        ptrdiff_t r = row + i * at->step[0], some = 0 <= r && r < at->size[0] ? to - from : 0;
        const float *line = x + r * at->line[0] + column + from;
        for (ptrdiff_t j = 0; j < (some ? from : columns); j++) store(out + j * LANES, (vec){0});
        if (!some) continue;
        planes_to_vectors(line, at->channel, min_of(channels, LANES), some, out + from * LANES);
        for (ptrdiff_t j = to; j < columns; j++) store(out + j * LANES, (vec){0});
    }
}

#endif

/* ---- tiles of data, and of gradients, to points ---- */

typedef void (*OF(lines))(vec *, const int);

INLINE void OF(data_line)(vec *d, const int s) { LINE(data)(d, s); }

INLINE void OF(gradient_line)(vec *g, const int s) { LINE(gradients)(g, s, M); }

/* Transform `edge` x `edge` vectors, at row and column strides, into POINTS vectors.  Elements
 * outside [from, to) are zeros; `few` lanes, if any, are all there is to load. */
INLINE void OF(to_points)(const int narrow, const int edge, OF(lines) line, const void *x,
                          ptrdiff_t row, ptrdiff_t column, const ptrdiff_t *from,
                          const ptrdiff_t *to, ptrdiff_t few, float *v, ptrdiff_t point)
{
    vec t[POINTS];
    UNROLLED for (int j = 0; j < edge; j++) {
        UNROLLED for (int i = 0; i < edge; i++) {
            int there = from == NULL
                        || (from[0] <= i && i < to[0] && from[1] <= j && j < to[1]);
            t[i * EDGE + j] = !there ? (vec){0}
                                     : load_elements(narrow, x, i * row + j * column,
                                                     few ? few : LANES);
        }
        line(t + j, EDGE);
    }
    UNROLLED for (int i = 0; i < EDGE; i++) {
        line(t + i * EDGE, 1);
        UNROLLED for (int j = 0; j < EDGE; j++) store(v + (i * EDGE + j) * point, t[i * EDGE + j]);
    }
}

/* One tile in channels_last memory. */
INLINE void OF(tile_to_points)(const convcore_tiling *at, const int narrow, const int edge,
                               OF(lines) line, const void *x, const place *p, ptrdiff_t channels,
                               float *v, ptrdiff_t point)
{
    ptrdiff_t row = first_row(at, p), column = first_column(at, p), from[2], to[2], c = 0;
    ptrdiff_t rows = at->line[0] * at->step[0], columns = at->line[1] * at->step[1];
    inside(row, at->step[0], at->size[0], edge, &from[0], &to[0]);
    inside(column, at->step[1], at->size[1], edge, &from[1], &to[1]);
    x = element(narrow, x, p->n * at->image + row * at->line[0] + column * at->line[1]);
#define CHANNELS(from, to, few)                                                                \
    OF(to_points)(narrow, edge, line, element(narrow, x, c), rows, columns, from, to, few,     \
                  v + c, point)
    if (from[0] == 0 && to[0] == edge && from[1] == 0 && to[1] == edge)
        for (; c + LANES <= channels; c += LANES) CHANNELS(NULL, NULL, 0);
    for (; c + LANES <= channels; c += LANES) CHANNELS(from, to, 0);
    if (c < channels) CHANNELS(from, to, channels - c);
#undef CHANNELS
}

/* A strip of tiles in contiguous memory. */
INLINE void OF(strip_to_points)(const convcore_tiling *at, const int edge, OF(lines) line,
                                const float *x, const place *p, ptrdiff_t count,
                                ptrdiff_t channels, float *v, ptrdiff_t tile, ptrdiff_t point)
{
    ALIGNED float strip[EDGE * CONVCORE_MAX_STRIP * LANES];
    ptrdiff_t columns = (count - 1) * at->advance[1] + (edge - 1) * at->step[1] + 1;
    x += p->n * at->image;
    for (ptrdiff_t c = 0; c < channels; c += LANES) {
        pack_strip(at, x + c * at->channel, channels - c, first_row(at, p), first_column(at, p),
                    edge, columns, strip);
        for (ptrdiff_t i = 0; i < count; i++)
            OF(to_points)(0, edge, line, strip + i * at->advance[1] * LANES, columns * LANES,
                          at->step[1] * LANES, NULL, NULL, 0, v + i * tile + c, point);
    }
}

INLINE void OF(all_to_points)(const convcore_tiling *at, const int narrow, const int edge,
                              OF(lines) line, const float *x, ptrdiff_t channels,
                              ptrdiff_t first, ptrdiff_t end, float *v, ptrdiff_t tile,
                              ptrdiff_t point)
{
    place p = place_of(at, first);
    while (first < end) {
        ptrdiff_t count = 1;
        if (narrow || at->channel == 1) {
            OF(tile_to_points)(at, narrow, edge, line, x, &p, channels, v, point);
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
    if (at->narrow)
        OF(all_to_points)(at, 1, EDGE, OF(data_line), x, channels, first, end, v, tile, point);
    else
        OF(all_to_points)(at, 0, EDGE, OF(data_line), x, channels, first, end, v, tile, point);
}

static void OF(winograd_gradients)(const convcore_tiling *at, const float *gy, ptrdiff_t channels,
                                   ptrdiff_t first, ptrdiff_t end, float *v, ptrdiff_t tile,
                                   ptrdiff_t point)
{
    /* What memory holds is asked at each load: gradients' tiles are few beside the products. */
    OF(all_to_points)(at, at->narrow, M, OF(gradient_line), gy, channels, first, end, v, tile,
                      point);
}

/* ---- points to tiles of outputs ---- */

/* Transform POINTS vectors into M x M outputs, and add the bias. */
INLINE void OF(from_points)(const float *m, ptrdiff_t point, vec bias, vec t[POINTS])
{
    UNROLLED for (int i = 0; i < EDGE; i++) {
        UNROLLED for (int j = 0; j < EDGE; j++)
            t[i * EDGE + j] = load(m + (i * EDGE + j) * point);
        LINE(outputs)(t + i * EDGE, 1, M);
    }
    UNROLLED for (int j = 0; j < M; j++) {
        LINE(outputs)(t + j, EDGE, M);
        UNROLLED for (int i = 0; i < M; i++)
            t[i * EDGE + j] += bias;
    }
}

INLINE vec OF(bias_of)(const convcore_epilogue *epilogue, ptrdiff_t c, ptrdiff_t channels)
{
    if (epilogue->bias == NULL) return (vec){0};
    return load_up_to(epilogue->bias + c, channels - c);
}

/* One tile to channels_last memory. */
INLINE void OF(tile_from_points)(const convcore_tiling *at, const int narrow, const float *m,
                                 ptrdiff_t point, ptrdiff_t channels, const place *p,
                                 const convcore_epilogue *epilogue, float *y)
{
    ptrdiff_t row = first_row(at, p), column = first_column(at, p), from[2], to[2];
    ptrdiff_t rows = at->line[0] * at->step[0], columns = at->line[1] * at->step[1];
    inside(row, at->step[0], at->size[0], M, &from[0], &to[0]);
    inside(column, at->step[1], at->size[1], M, &from[1], &to[1]);
    const ptrdiff_t start = p->n * at->image + row * at->line[0] + column * at->line[1];
    for (ptrdiff_t c = 0; c < channels; c += LANES) {
        vec t[POINTS];
        OF(from_points)(m + c, point, OF(bias_of)(epilogue, c, channels), t);
        UNROLLED for (int i = 0; i < M; i++)
            UNROLLED for (int j = 0; j < M; j++) {
                if (i < from[0] || i >= to[0] || j < from[1] || j >= to[1]) continue;
                const ptrdiff_t out = start + i * rows + j * columns + c;
                vec v = t[i * EDGE + j];
                if (epilogue->add) v += load_elements(narrow, y, out, channels - c);
                store_elements(narrow, y, out, activated(v, epilogue), channels - c);
            }
    }
}

/* A strip of tiles to contiguous memory. */
INLINE void OF(strip_from_points)(const convcore_tiling *at, const float *m, ptrdiff_t tile,
                                  ptrdiff_t point, ptrdiff_t channels, const place *p,
                                  ptrdiff_t count, const convcore_epilogue *epilogue, float *y)
{
    ALIGNED float strip[M * CONVCORE_MAX_STRIP * LANES];
    ptrdiff_t row = first_row(at, p), column = first_column(at, p), step = at->step[1];
    ptrdiff_t columns, before;
    inside(column, step, at->size[1], count * M, &before, &columns);
    columns = max_of(columns - before, 0);
    y += p->n * at->image + column + before * step;
    for (ptrdiff_t c = 0; c < channels; c += LANES) {
        ptrdiff_t planes = min_of(channels - c, LANES);
        for (ptrdiff_t k = 0; k < count; k++) {
            vec t[POINTS];
            OF(from_points)(m + k * tile + c, point, OF(bias_of)(epilogue, c, channels), t);
            UNROLLED for (int i = 0; i < M; i++)
                UNROLLED for (int j = 0; j < M; j++)
                    store(strip + ((i * count + k) * M + j) * LANES,
                          activated(t[i * EDGE + j], epilogue));
        }
        for (ptrdiff_t i = 0; i < M && row + i * at->step[0] < at->size[0]; i++) {
            const float *in = strip + (i * count * M + before) * LANES;
            if (row + i * at->step[0] < 0) continue;
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
        if (at->narrow) {
            OF(tile_from_points)(at, 1, m, point, channels, &p, epilogue, y);
        } else if (at->channel == 1) {
            OF(tile_from_points)(at, 0, m, point, channels, &p, epilogue, y);
        } else {
            count = min_of(strip_of(at, &p, M, end - first), CONVCORE_MAX_STRIP / M);
            OF(strip_from_points)(at, m, tile, point, channels, &p, count, epilogue, y);
        }
        step_on(at, &p, count);
        first += count;
        m += count * tile;
    }
}

/* ---- weights ---- */

/* LANES filters to points, as one row of each point's panel. */
INLINE void OF(filters_to_points)(const vec taps[R * R], float *u, ptrdiff_t point)
{
    wide t[POINTS];
    UNROLLED for (int j = 0; j < R; j++) {
        UNROLLED for (int i = 0; i < R; i++) t[i * EDGE + j] = WIDEN(taps[i * R + j]);
        LINE(weights)(t + j, EDGE, R);
    }
    UNROLLED for (int i = 0; i < EDGE; i++) {
        LINE(weights)(t + i * EDGE, 1, R);
        UNROLLED for (int j = 0; j < EDGE; j++)
            store(u + (i * EDGE + j) * point, NARROW(t[i * EDGE + j]));
    }
}

#ifndef CONVCORE_WINOGRAD_FILTERS
#define CONVCORE_WINOGRAD_FILTERS

/* LANES floats, or as many as come before the end. */
INLINE vec load_before(const float *p, const float *end)
{
    return end - p >= LANES ? load(p) : load_first(p, max_of(end - p, 0));
}

/* Whether tap (i, j) is one, or a zero that fills up the tile. */
INLINE int is_tap(const convcore_filters *f, int i, int j)
{
    return f->begin[0] <= i && i < f->to[0] && f->begin[1] <= j && j < f->to[1];
}

/* Filters of one summed channel, each of `f->run` floats side by side. */
INLINE void load_runs(const convcore_filters *f, const int edge, const float *w, ptrdiff_t lanes,
                      vec *taps)
{
    vec all[CONVCORE_MAX_RUN + LANES];
    const int back = f->line[1] < 0;
    /* Whether the filter is the tile's: all its taps, from the first to the last or back. */
    const int whole = f->run == edge * edge && f->line[1] == (back ? -1 : 1)
                      && f->line[0] == edge * f->line[1];
    for (int t = 0; t < (whole ? edge * edge : f->run); t += LANES) {
        UNROLLED for (int l = 0; l < LANES; l++)
            all[t + l] = l < lanes ? load_before(w + l * f->lane + t, f->end) : (vec){0};
        transpose(all + t);
    }
    if (whole) {
        UNROLLED for (int t = 0; t < edge * edge; t++)
            taps[t] = all[back ? edge * edge - 1 - t : t];
        return;
    }
    for (int i = 0; i < edge; i++)
        for (int j = 0; j < edge; j++)
            taps[i * edge + j] =
                is_tap(f, i, j) ? all[f->first + i * f->line[0] + j * f->line[1]] : (vec){0};
}

/* One tap of `sums` summed channels that lie side by side, `step` vectors apart. */
INLINE void load_sums(const convcore_filters *f, const float *w, ptrdiff_t lanes, ptrdiff_t sums,
                      vec *taps, ptrdiff_t step)
{
    vec v[LANES];
    UNROLLED for (int l = 0; l < LANES; l++)
        v[l] = l < lanes ? load_before(w + l * f->lane, f->end) : (vec){0};
    transpose(v);
    for (int k = 0; k < LANES && k < sums; k++) taps[k * step] = v[k];
}

/* One tap of one summed channel. */
INLINE vec load_lanes(const convcore_filters *f, const float *w, ptrdiff_t lanes)
{
    ALIGNED float v[LANES] = {0};
    if (f->lane == 1) return load_up_to(w, lanes);
    for (ptrdiff_t l = 0; l < lanes; l++) v[l] = w[l * f->lane];
    return load(v);
}

/* taps[k][i][j] of up to LANES filters, for each of up to LANES summed channels. */
INLINE void load_filters(const convcore_filters *f, const int edge, const float *w,
                         ptrdiff_t lanes, ptrdiff_t sums, vec *taps)
{
    if (f->run && f->lane != 1) {
        for (ptrdiff_t k = 0; k < sums; k++)
            load_runs(f, edge, w + k * f->sum, lanes, taps + k * edge * edge);
        return;
    }
    for (int i = 0; i < edge; i++)
        for (int j = 0; j < edge; j++) {
            const float *tap = w + f->first + i * f->line[0] + j * f->line[1];
            vec *out = taps + i * edge + j;
            if (is_tap(f, i, j) && f->sum == 1 && f->lane != 1)
                load_sums(f, tap, lanes, sums, out, edge * edge);
            else
                for (ptrdiff_t k = 0; k < sums; k++)
                    out[k * edge * edge] = is_tap(f, i, j)
                                               ? load_lanes(f, tap + k * f->sum, lanes)
                                               : (vec){0};
        }
}

/* The taps of `lanes` filters, those that are filled up left out. */
static void store_filters(const convcore_filters *f, const int edge, const vec *taps,
                          ptrdiff_t lanes, float *gw)
{
    ALIGNED float all[LANES];
    for (int i = f->begin[0]; i < f->to[0]; i++)
        for (int j = f->begin[1]; j < f->to[1]; j++) {
            float *out = gw + f->first + i * f->line[0] + j * f->line[1];
            if (f->lane == 1 && lanes == LANES) {
                store(out, taps[i * edge + j]);
                continue;
            }
            store(all, taps[i * edge + j]);
            for (ptrdiff_t l = 0; l < lanes; l++) out[l * f->lane] = all[l];
        }
}

#endif

/* Filters of `lanes` channels that are made and `sums` that are summed to rows of panels:
 * u[point, sum, lane], rows `panel` floats apart. */
static void OF(winograd_weights)(const convcore_filters *f, const float *w, ptrdiff_t lanes,
                                 ptrdiff_t sums, float *u, ptrdiff_t panel, ptrdiff_t point)
{
    for (ptrdiff_t l = 0; l < panel; l += LANES)
        for (ptrdiff_t k = 0; k < sums; k += LANES) {
            vec taps[LANES][R * R];
            ptrdiff_t some = min_of(sums - k, LANES);
            load_filters(f, R, w + k * f->sum + l * f->lane,
                         max_of(min_of(lanes - l, LANES), 0), some, taps[0]);
            for (ptrdiff_t i = 0; i < some; i++)
                OF(filters_to_points)(taps[i], u + (k + i) * panel + l, point);
        }
}

/* Sums over tiles at each point to the gradients of `lanes` filters. */
static void OF(winograd_weight_sums)(const convcore_filters *f, const float *p, ptrdiff_t point,
                                     ptrdiff_t lanes, float *gw)
{
    for (ptrdiff_t l = 0; l < lanes; l += LANES) {
        vec t[POINTS], taps[R * R];
        UNROLLED for (int i = 0; i < EDGE; i++) {
            UNROLLED for (int j = 0; j < EDGE; j++)
                t[i * EDGE + j] = load(p + l + (i * EDGE + j) * point);
            LINE(weight_sums)(t + i * EDGE, 1, R);
        }
        UNROLLED for (int j = 0; j < R; j++) {
            LINE(weight_sums)(t + j, EDGE, R);
            UNROLLED for (int i = 0; i < R; i++) taps[i * R + j] = t[i * EDGE + j];
        }
        store_filters(f, R, taps, min_of(lanes - l, LANES), gw + l * f->lane);
    }
}

#undef EDGE
#undef POINTS
#undef OF
#undef LINE
#undef JOIN
#undef JOIN_
