/* Convolutions of few input channels: tiles of output pixels over a packed halo tile of input.
 *
 * A product of matrices would have few columns and, before it, a matrix of patches many times the
 * input.  Here the input of some rows of outputs is packed once, zeros of the padding included, and
 * all loops below read that halo in place: a term of the sum (a tap of a channel) is one offset
 * from the pixel's own place, from a table.  Where vectors of pixels are read, a row is packed in
 * `stride` phases, so that its pixels stand side by side under every tap.
 */
#include "conv/epilogue.h"
#include "few_channels.h"
#include "runtime/vec.h"

/* Sums in registers: FEW_ROWS by FEW_VECTORS, or by FEW_PAIR where vectors are of channels. */
#define FEW_ROWS (REGISTERS == 32 ? 8 : 4)
#define FEW_VECTORS 3
#define FEW_PAIR 2

#define FEW_CASE(R, call) case R: { enum { rows = R }; call; break; }
/* Do `call` with the constant `rows`, which is `count`, at most FEW_ROWS. */
#define FEW_SWITCH(count, call)                                                         \
    switch (count) {                                                                    \
    FEW_CASE(1, call) FEW_CASE(2, call) FEW_CASE(3, call) FEW_CASE(4, call)             \
    FEW_WIDE_CASES(call)                                                                \
    }
#if REGISTERS == 32
#define FEW_WIDE_CASES(call)                                                            \
    FEW_CASE(5, call) FEW_CASE(6, call) FEW_CASE(7, call) FEW_CASE(8, call)
#else
#define FEW_WIDE_CASES(call)
#endif

/* Floats from what is transposed to what is asked for. */
enum { FEW_AHEAD = 128 };

/* Store past the caches, at a multiple of a vector: for arrays that no cache could hold until they
 * are read, so that their old contents are not loaded first. */
INLINE void few_stream(float *p, vec v)
{
#if defined(__clang__) && LANES >= 8
    __builtin_nontemporal_store(v, (vec *)p);
#elif defined(__GNUC__) && LANES == 16
    __builtin_ia32_movntps512(p, v);
#elif defined(__GNUC__) && LANES == 8
    __builtin_ia32_movntps256(p, v);
#else
    store(p, v);
#endif
}

/* Before other threads may read what was streamed. */
INLINE void few_streamed(void)
{
#if defined(__GNUC__) && LANES >= 8
    __builtin_ia32_sfence();
#endif
}

/* Cut `total` into the fewest equal groups of at most `most`: where the group at `begin` ends. */
INLINE ptrdiff_t few_end(ptrdiff_t begin, ptrdiff_t total, ptrdiff_t most)
{
    ptrdiff_t groups = (total - begin + most - 1) / most;
    return begin + (total - begin + groups - 1) / groups;
}

/* One row of a halo: halo[p * pitch + i] = x[(first + i * stride + p) * step], 0 outside x. */
static void few_pack(const float *x, ptrdiff_t step, ptrdiff_t size, ptrdiff_t first,
                      ptrdiff_t stride, ptrdiff_t phases, float *halo, ptrdiff_t pitch)
{
    for (ptrdiff_t p = 0; p < phases; p++, halo += pitch) {
        ptrdiff_t at = first + p, i = 0;
        ptrdiff_t begin = at < 0 ? min_of((stride - 1 - at) / stride, pitch) : 0;
        ptrdiff_t end = at < size ? min_of((size - 1 - at) / stride + 1, pitch) : 0;
        if (end < begin) end = begin;
        for (; i < begin; i++) halo[i] = 0;
        const float *from = x + (at + i * stride) * step;
        ptrdiff_t jump = stride * step;
        if (jump == 1)
            memcpy(halo + i, from, (size_t)(end - i) * sizeof(float)), i = end;
        else if (jump == 2)
            for (; i < end; i++, from += 2) halo[i] = *from;
        for (; i + 4 <= end; i += 4, from += 4 * jump) {
            float four[4] = {from[0], from[jump], from[2 * jump], from[3 * jump]};
            memcpy(halo + i, four, sizeof four);
        }
        for (; i < end; i++, from += jump) halo[i] = *from;
        for (; i < pitch; i++) halo[i] = 0;
    }
}

/* out[i * n + j] = rows[j * row + i]. */
INLINE void few_interleave_of(const ptrdiff_t n, const float *rows, ptrdiff_t row, ptrdiff_t count,
                              float *out)
{
    for (ptrdiff_t i = 0; i < count; i++)
        for (ptrdiff_t j = 0; j < n; j++) out[i * n + j] = rows[j * row + i];
}

/* The same; n is the channels of a pixel, or the phases of a row. */
static void few_interleave(ptrdiff_t n, const float *rows, ptrdiff_t row, ptrdiff_t count,
                           float *out)
{
    switch (n) {
    case 1: memcpy(out, rows, (size_t)count * sizeof(float)); break;
    case 2: few_interleave_of(2, rows, row, count, out); break;
    case 3: few_interleave_of(3, rows, row, count, out); break;
    case 4: few_interleave_of(4, rows, row, count, out); break;
    default: few_interleave_of(n, rows, row, count, out);
    }
}

/* Transpose a block of LANES by LANES, zeros beyond `rows` rows of `columns` floats; store `kept`
 * rows of what comes out. */
static void few_turn(const float *from, ptrdiff_t from_row, ptrdiff_t rows, ptrdiff_t columns,
                     float *to, ptrdiff_t to_row, ptrdiff_t kept)
{
    vec lanes[LANES];
    if (rows == LANES && columns == LANES) {
        UNROLLED for (int i = 0; i < LANES; i++) {
            PREFETCH(from + i * from_row + FEW_AHEAD);
            lanes[i] = load(from + i * from_row);
        }
    } else {
        for (ptrdiff_t i = 0; i < LANES; i++)
            lanes[i] = i < rows ? load_first(from + i * from_row, columns) : (vec){0};
    }
    transpose(lanes);
    if (kept == LANES) {
        UNROLLED for (int i = 0; i < LANES; i++) store(to + i * to_row, lanes[i]);
    } else {
        for (ptrdiff_t i = 0; i < kept; i++) store(to + i * to_row, lanes[i]);
    }
}

/* ---- forward, contiguous memory: vectors of pixels by broadcast weights ---- */

/* y = activation(w (R, terms) @ halo + bias) for R output channels of FEW_VECTORS vectors. */
INLINE void few_forward_vectors(const int R, const convcore_tile *t, const float *const *from,
                                const float *w, const float *bias,
                                const convcore_epilogue *epilogue, float *const *to,
                                ptrdiff_t y_channel, ptrdiff_t count)
{
    vec sums[FEW_ROWS][FEW_VECTORS];
    UNROLLED for (int i = 0; i < R; i++) {
        vec first = broadcast(bias ? bias[i] : 0.0f);
        UNROLLED for (int j = 0; j < FEW_VECTORS; j++) sums[i][j] = first;
    }
    for (ptrdiff_t l = 0; l < t->terms; l++, w += R) {
        vec right[FEW_VECTORS];
        UNROLLED for (int j = 0; j < FEW_VECTORS; j++) right[j] = load(from[j] + t->offset[l]);
        UNROLLED for (int i = 0; i < R; i++) {
            vec left = broadcast(w[i]);
            UNROLLED for (int j = 0; j < FEW_VECTORS; j++) sums[i][j] += left * right[j];
        }
    }
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < FEW_VECTORS; j++) {
            vec y = activated(sums[i][j], epilogue);
            if (t->stream)
                few_stream(to[j] + i * y_channel, y);
            else if (count == LANES)
                store(to[j] + i * y_channel, y);
            else
                store_first(to[j] + i * y_channel, y, count);
        }
}

/* A tile of contiguous y.  w: groups of output channels, as few_end cuts them, each (terms, R). */
static void few_forward_nchw(const convcore_tile *t, const float *halo, const float *w,
                               ptrdiff_t o, const convcore_epilogue *epilogue, float *y,
                               ptrdiff_t y_row, ptrdiff_t y_channel)
{
    ptrdiff_t a_row = (t->columns + LANES - 1) / LANES, vectors = t->rows * a_row;
    /* The last vector of a row ends with it, and does some pixels of the one before again. */
    ptrdiff_t count = min_of(t->columns, LANES), last = t->columns - count;
    for (ptrdiff_t v = 0; v < vectors; v += FEW_VECTORS) {
        const float *from[FEW_VECTORS];
        float *to[FEW_VECTORS];
        UNROLLED for (int j = 0; j < FEW_VECTORS; j++) {
            ptrdiff_t at = min_of(v + j, vectors - 1), r = at / a_row;
            ptrdiff_t q = min_of((at - r * a_row) * LANES, last);
            from[j] = halo + r * t->row + q;
            to[j] = y + r * y_row + q;
        }
        for (ptrdiff_t begin = 0, end; begin < o; begin = end) {
            end = few_end(begin, o, FEW_ROWS);
            const float *bias = epilogue->bias ? epilogue->bias + begin : NULL;
            FEW_SWITCH(end - begin,
                       few_forward_vectors(rows, t, from, w + begin * t->terms, bias, epilogue, to,
                                           y_channel, count));
            UNROLLED for (int j = 0; j < FEW_VECTORS; j++) to[j] += (end - begin) * y_channel;
        }
    }
    if (t->stream) few_streamed();
}

/* ---- forward, channels_last memory: vectors of output channels by broadcast inputs ---- */

/* y = activation(halo @ w (terms, V * LANES) + bias) for R pixels. */
INLINE void few_forward_channels(const int R, const int V, const convcore_tile *t,
                                 const float *halo, const float *w, const float *bias,
                                 const convcore_epilogue *epilogue, ptrdiff_t count, float *y,
                                 ptrdiff_t y_pixel)
{
    vec sums[FEW_ROWS][FEW_PAIR];
    vec right[FEW_PAIR];
    UNROLLED for (int j = 0; j < V; j++) {
        right[j] = load(bias + j * LANES);
        UNROLLED for (int i = 0; i < R; i++) sums[i][j] = right[j];
    }
    const ptrdiff_t step = t->pixel;
    for (ptrdiff_t l = 0; l < t->terms; l++, w += V * LANES) {
        const float *from = halo + t->offset[l];
        UNROLLED for (int j = 0; j < V; j++) right[j] = load(w + j * LANES);
        UNROLLED for (int i = 0; i < R; i++) {
            vec left = broadcast(from[i * step]);
            UNROLLED for (int j = 0; j < V; j++) sums[i][j] += left * right[j];
        }
    }
    UNROLLED for (int i = 0; i < R; i++, y += y_pixel)
        UNROLLED for (int j = 0; j < V; j++) {
            vec out = activated(sums[i][j], epilogue);
            if (t->stream)
                few_stream(y + j * LANES, out);
            else if (count >= (j + 1) * LANES)
                store(y + j * LANES, out);
            else
                store_first(y + j * LANES, out, count - j * LANES);
        }
}

/* A tile of channels_last y.  w: panels of FEW_PAIR vectors, the last perhaps of one, each
 * (terms, V * LANES), filled up with zeros. */
static void few_forward_nhwc(const convcore_tile *t, const float *halo, const float *w,
                               ptrdiff_t o, const convcore_epilogue *epilogue, float *y,
                               ptrdiff_t y_row, ptrdiff_t y_pixel)
{
    for (ptrdiff_t c = 0; c < o; c += FEW_PAIR * LANES) {
        ptrdiff_t count = min_of(o - c, FEW_PAIR * LANES);
        ALIGNED float bias[FEW_PAIR * LANES] = {0};
        if (epilogue->bias)
            memcpy(bias, epilogue->bias + c, (size_t)count * sizeof(float));
        for (ptrdiff_t r = 0; r < t->rows; r++)
            for (ptrdiff_t q = 0, end; q < t->columns; q = end) {
                end = few_end(q, t->columns, FEW_ROWS);
                const float *from = halo + r * t->row + q * t->pixel, *panel = w + c * t->terms;
                float *to = y + r * y_row + q * y_pixel + c;
                if (count > LANES)
                    FEW_SWITCH(end - q, few_forward_channels(rows, FEW_PAIR, t, from, panel, bias,
                                                             epilogue, count, to, y_pixel))
                else
                    FEW_SWITCH(end - q, few_forward_channels(rows, 1, t, from, panel, bias,
                                                             epilogue, count, to, y_pixel))
            }
    }
    if (t->stream) few_streamed();
}

/* ---- input gradient: columns of a panel of pixels, added to the halo at once ---- */

/* Vectors of pixels of a tile: where they stand in the halo and in gy, how many of them count. */
typedef struct {
    ptrdiff_t place[FEW_VECTORS];
    ptrdiff_t count[FEW_VECTORS];
    const float *gy[FEW_VECTORS];
} few_panel;

/* The panel that begins with vector v of a tile, or, past the end, ends with its last one. */
static few_panel few_panel_at(const convcore_tile *t, ptrdiff_t v, const float *gy,
                              ptrdiff_t gy_row, ptrdiff_t gy_pixel)
{
    few_panel p;
    ptrdiff_t a_row = (t->columns + LANES - 1) / LANES, vectors = t->rows * a_row;
    for (int j = 0; j < FEW_VECTORS; j++) {
        ptrdiff_t at = min_of(v + j, vectors - 1), r = at / a_row;
        ptrdiff_t q = (at - r * a_row) * LANES;
        p.place[j] = r * t->row + q;
        p.count[j] = v + j < vectors ? min_of(t->columns - q, LANES) : 0;
        p.gy[j] = gy + r * gy_row + q * gy_pixel;
    }
    return p;
}

/* The first `count` lanes, and zeros, NaN or not. */
INLINE vec few_keep(vec v, ptrdiff_t count)
{
#if LANES > 1
    ALIGNED static const int ones[2 * LANES] = {
#if LANES == 16
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1
#elif LANES == 8
        -1, -1, -1, -1, -1, -1, -1, -1
#else
        -1, -1, -1, -1
#endif
    };
    lane_numbers mask;
    memcpy(&mask, ones + LANES - count, sizeof mask);
    return (vec)((lane_numbers)v & mask);
#else
    return count ? v : 0.0f;
#endif
}

/* Copy the panel's pixels of gy into (o, FEW_VECTORS * LANES), zeros where there are none. */
static void few_gather(const few_panel *p, ptrdiff_t gy_pixel, ptrdiff_t gy_channel, ptrdiff_t o,
                       float *out)
{
    const ptrdiff_t step = FEW_VECTORS * LANES;
    for (int j = 0; j < FEW_VECTORS; j++, out += LANES) {
        const float *from = p->gy[j];
        ptrdiff_t count = p->count[j], c;
        if (gy_pixel != 1)
            for (c = 0; c < o; c += LANES)
                few_turn(from + c, gy_pixel, count, min_of(o - c, LANES), out + c * step, step,
                         min_of(o - c, LANES));
        else if (count == LANES)
            for (c = 0; c < o; c++) store(out + c * step, load(from + c * gy_channel));
        else
            for (c = 0; c < o; c++) store(out + c * step, load_first(from + c * gy_channel, count));
    }
}

/* halo[term's place] += w (R, o) @ panel (o, pixels); ask for o lines of what comes `next`. */
INLINE void few_input_vectors(const int R, const few_panel *p, ptrdiff_t o, const float *panel,
                              const float *w, const ptrdiff_t *kept, const ptrdiff_t *offset,
                              const float *next, ptrdiff_t next_step, float *halo)
{
    vec sums[FEW_ROWS][FEW_VECTORS];
    const float *left[FEW_ROWS];
    UNROLLED for (int i = 0; i < R; i++) {
        left[i] = w + kept[i] * o;
        UNROLLED for (int j = 0; j < FEW_VECTORS; j++) sums[i][j] = (vec){0};
    }
    for (ptrdiff_t c = 0; c < o; c++, panel += FEW_VECTORS * LANES, next += next_step) {
        vec right[FEW_VECTORS];
        PREFETCH(next);
        UNROLLED for (int j = 0; j < FEW_VECTORS; j++) right[j] = load(panel + j * LANES);
        UNROLLED for (int i = 0; i < R; i++) {
            vec weight = broadcast(left[i][c]);
            UNROLLED for (int j = 0; j < FEW_VECTORS; j++) sums[i][j] += weight * right[j];
        }
    }
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < FEW_VECTORS; j++) {
            float *to = halo + offset[kept[i]] + p->place[j];
            store(to, load(to) + few_keep(sums[i][j], p->count[j]));
        }
}

/* Number the terms that reach rows [low, high) of the halo from any of a tile's rows. */
static ptrdiff_t few_reaching(const convcore_tile *t, const ptrdiff_t *term_row, ptrdiff_t first,
                              ptrdiff_t last, ptrdiff_t low, ptrdiff_t high, ptrdiff_t *kept)
{
    ptrdiff_t n = 0;
    for (ptrdiff_t l = 0; l < t->terms; l++)
        if (first + term_row[l] < high && last + term_row[l] >= low) kept[n++] = l;
    return n;
}

/* Add a tile of gy to the halo, of which only rows [low, high) are wanted; term l adds to the row
 * term_row[l] rows further than its pixel's, and rows of pixels are `stride` rows apart.
 * w: (terms, o).  scratch: o * FEW_VECTORS * LANES floats.  kept: room for `terms` numbers. */
static void few_input(const convcore_tile *t, const ptrdiff_t *term_row, ptrdiff_t stride,
                      ptrdiff_t low, ptrdiff_t high, const float *gy, ptrdiff_t gy_row,
                      ptrdiff_t gy_pixel, ptrdiff_t gy_channel, ptrdiff_t o, const float *w,
                      float *scratch, ptrdiff_t *kept, float *halo)
{
    ptrdiff_t a_row = (t->columns + LANES - 1) / LANES, vectors = t->rows * a_row;
    few_panel p = few_panel_at(t, 0, gy, gy_row, gy_pixel);
    for (ptrdiff_t v = 0; v < vectors; v += FEW_VECTORS) {
        few_panel next = few_panel_at(t, v + FEW_VECTORS, gy, gy_row, gy_pixel);
        ptrdiff_t last_row = min_of(v + FEW_VECTORS - 1, vectors - 1) / a_row;
        ptrdiff_t n = few_reaching(t, term_row, v / a_row * stride, last_row * stride, low, high,
                                   kept);
        few_gather(&p, gy_pixel, gy_channel, o, scratch);
        ptrdiff_t group = 0;
        for (ptrdiff_t begin = 0, end; begin < n; begin = end, group++) {
            end = few_end(begin, n, FEW_ROWS);
            /* The first groups ask for the next panel between them: a vector's channels each, or
             * in channels_last memory, where it is one run, a share of its lines. */
            int asks = group < FEW_VECTORS;
            const float *ahead = !asks           ? scratch
                                 : gy_pixel == 1 ? next.gy[group]
                                                 : next.gy[0] + group * o * LANES;
            ptrdiff_t step = !asks ? 0 : gy_pixel == 1 ? gy_channel : LANES;
            FEW_SWITCH(end - begin, few_input_vectors(rows, &p, o, scratch, w, kept + begin,
                                                      t->offset, ahead, step, halo));
        }
        p = next;
    }
}

/* ---- weight gradient: vectors of output channels by broadcast inputs ---- */

/* out (R, V * LANES) += the sums over `n_rows` rows of pixels; ask for a line of each pixel as far
 * on as `next` is from gy. */
INLINE void few_outer(const int R, const int V, const ptrdiff_t *offset, const float *halo,
                      ptrdiff_t halo_row, ptrdiff_t halo_pixel, ptrdiff_t n_rows,
                      ptrdiff_t columns, const float *gy,
                      ptrdiff_t gy_row, ptrdiff_t gy_pixel, ptrdiff_t next, float *out,
                      ptrdiff_t out_term)
{
    vec sums[FEW_ROWS][FEW_PAIR];
    const float *from[FEW_ROWS];
    UNROLLED for (int i = 0; i < R; i++) {
        from[i] = halo + offset[i];
        UNROLLED for (int j = 0; j < V; j++) sums[i][j] = (vec){0};
    }
    for (ptrdiff_t r = 0; r < n_rows; r++, gy += gy_row) {
        const float *pixel = gy;
        for (ptrdiff_t q = 0; q < columns * halo_pixel; q += halo_pixel, pixel += gy_pixel) {
            vec right[FEW_PAIR];
            PREFETCH(pixel + next);
            UNROLLED for (int j = 0; j < V; j++) right[j] = load(pixel + j * LANES);
            UNROLLED for (int i = 0; i < R; i++) {
                vec left = broadcast(from[i][q]);
                UNROLLED for (int j = 0; j < V; j++) sums[i][j] += left * right[j];
            }
        }
        UNROLLED for (int i = 0; i < R; i++) from[i] += halo_row;
    }
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < V; j++) {
            float *to = out + i * out_term + j * LANES;
            store(to, load(to) + sums[i][j]);
        }
}

/* Pixels whose gradients are summed in registers before they are added to memory. */
enum { FEW_PIXELS = 128 };

/* Copy `count` channels of a run of pixels of gy to (columns, wide), filled up with zeros. */
static void few_pixels(const float *gy, ptrdiff_t columns, ptrdiff_t gy_pixel,
                       ptrdiff_t gy_channel, ptrdiff_t count, ptrdiff_t wide, float *out)
{
    for (ptrdiff_t c = 0; c < wide; c += LANES) {
        ptrdiff_t channels = min_of(count - c, LANES);
        const float *from = gy + c * gy_channel;
        float *to = out + c;
        if (gy_pixel != 1) {
            for (ptrdiff_t q = 0; q < columns; q++, from += gy_pixel, to += wide)
                store(to, load_up_to(from, channels));
            continue;
        }
        for (ptrdiff_t q = 0; q < columns; q += LANES) {
            /* Where there are enough, the last pixels overlap those before: a whole vector. */
            if (columns > LANES && q > columns - LANES) q = columns - LANES;
            ptrdiff_t pixels = min_of(columns - q, LANES);
            few_turn(from + q, gy_channel, channels, pixels, to + q * wide, wide, pixels);
        }
    }
}

/* Add a tile to sums (terms, sums_term), sums_term being o rounded up to whole vectors.
 * scratch: max(FEW_PIXELS, columns) * FEW_PAIR * LANES floats. */
static void few_weight(const convcore_tile *t, const float *halo, const float *gy, ptrdiff_t gy_row,
                       ptrdiff_t gy_pixel, ptrdiff_t gy_channel, ptrdiff_t o, float *scratch,
                       float *sums, ptrdiff_t sums_term)
{
    ptrdiff_t chunk = t->columns < FEW_PIXELS ? FEW_PIXELS / t->columns : 1;
    for (ptrdiff_t r = 0; r < t->rows; r += chunk)
        for (ptrdiff_t c = 0; c < o; c += FEW_PAIR * LANES) {
            ptrdiff_t n_rows = min_of(t->rows - r, chunk);
            ptrdiff_t count = min_of(o - c, FEW_PAIR * LANES);
            ptrdiff_t wide = count > LANES ? FEW_PAIR * LANES : LANES;
            const float *from = gy + r * gy_row + c * gy_channel;
            ptrdiff_t from_row = gy_row, from_pixel = gy_pixel;
            if (gy_channel != 1 || count < wide) {
                from_pixel = wide;
                from_row = t->columns * wide;
                /* Rows that follow on each other are one run. */
                ptrdiff_t joined = gy_row == t->columns * gy_pixel ? n_rows : 1;
                for (ptrdiff_t i = 0; i < n_rows; i += joined)
                    few_pixels(from + i * gy_row, joined * t->columns, gy_pixel, gy_channel, count,
                               wide, scratch + i * from_row);
                from = scratch;
            }
            ptrdiff_t group = 0;
            for (ptrdiff_t begin = 0, end; begin < t->terms; begin = end, group++) {
                end = few_end(begin, t->terms, FEW_ROWS);
                /* The first groups ask for the next rows, a vector of every pixel each. */
                int asks = from != scratch && group * LANES < wide;
                ptrdiff_t next = asks ? chunk * gy_row + group * LANES : 0;
                const ptrdiff_t *offset = t->offset + begin;
                float *out = sums + begin * sums_term + c;
                if (wide > LANES)
                    FEW_SWITCH(end - begin,
                               few_outer(rows, FEW_PAIR, offset, halo + r * t->row, t->row,
                                         t->pixel, n_rows, t->columns, from, from_row, from_pixel,
                                         next, out, sums_term))
                else
                    FEW_SWITCH(end - begin,
                               few_outer(rows, 1, offset, halo + r * t->row, t->row, t->pixel,
                                         n_rows, t->columns, from, from_row, from_pixel, next, out,
                                         sums_term))
            }
        }
}

const convcore_few_channels CONVCORE_TABLE(convcore_few_channels) = {
    FEW_ROWS, FEW_PAIR * LANES, FEW_VECTORS * LANES, few_pack, few_interleave,
    few_forward_nchw, few_forward_nhwc, few_input, few_weight,
};
