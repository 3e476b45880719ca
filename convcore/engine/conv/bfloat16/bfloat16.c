/* Products in bfloat16 pairs with float32 sums, in one order of additions on every instruction set.
 *
 * Both factors are rounded to bfloat16 (nearest, ties to even; subnormal numbers count as zeros).
 * Terms are taken in blocks of BLOCK.  Terms 1, 0, 5, 4, 9, 8 ... of a block are one chain of fused
 * multiply-adds that begins at zero, terms 3, 2, 7, 6, 11, 10 ... another, and their sum is added to
 * the total.  That is the order of vdpbf16ps where it multiplies neighbours as they lie in memory,
 * for two sums in turn: it adds the upper product of a pair first.  A product of two bfloat16
 * numbers is exact in float32, so a plain multiply-add does the same without the instruction.
 *
 * AMX multiplies tiles in the same order: see tiles.h.
 *
 * A word is what one vector instruction multiplies: two bfloat16 numbers, or one float that was
 * rounded.  They are in the order of the terms.
 */
#include "bfloat16.h"
#include "conv/epilogue.h"
#include "conv/indirect/nhwc_rows.h"
#include "conv/packed_gemm.h"
#include "runtime/bfloat16_memory.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

enum { BLOCK = CONVCORE_BFLOAT16_BLOCK };

/* Vectors of sums side by side: both chains' sums, and a vector of each, fill the registers. */
#define ACROSS (REGISTERS == 32 ? 2 : 1)

/* ---- words ---- */

/* Every lane the word at p, whatever its bits are as a float. */
INLINE vec broadcast_word(const float *p)
{
    unsigned word;
    memcpy(&word, p, sizeof word);
    return vec_of(word + (bits){0});
}

/* Each lane rounded to bfloat16, as a float. */
INLINE vec rounded(vec v)
{
    const bits u = bits_of(v), magnitude = u & 0x7fffffffu;
    const bits nearest = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
    const bits quiet = (u | 0x00400000u) & 0xffff0000u;
    const bits number = SELECT(magnitude < 0x00800000u, u & 0x80000000u, nearest);
    return vec_of(SELECT(magnitude > 0x7f800000u, quiet, number));
}

#if defined(__AVX512BF16__)

enum { WORDS = BLOCK / 2 };

/* The upper half of a word is multiplied first. */
INLINE vec multiply_add(vec sum, vec a, vec b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

/* Word number p of those that are taken after `l`, an even number of them. */
INLINE ptrdiff_t word_after(ptrdiff_t l, ptrdiff_t p) { return l + p; }

/* The words of a block of terms. */
INLINE void store_words(float *to, const float *terms)
{
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(load(terms + 16), load(terms)));
}

/* The same of a block that is bfloat16 in memory. */
INLINE void store_words_of_bfloat16(float *to, const bfloat16 *terms)
{
    memcpy(to, terms, BLOCK * sizeof *terms);
}

/* Lanes to bfloat16, rounded.  Subnormal numbers are zeros. */
INLINE void store_half(bfloat16 *to, vec v)
{
    _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh((__m512)v));
}

/* Two terms as words. */
INLINE vec paired(vec upper, vec lower)
{
    const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(upper));
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(lower));
    return (vec)_mm512_or_si512(_mm512_slli_epi32(high, 16), low);
}

/* The same of terms that are bfloat16 in memory. */
INLINE vec paired_halves(const bfloat16 *upper, const bfloat16 *lower)
{
    static const short order[32] ALIGNED = {
        0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31,
    };
    const __m512i low = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)lower));
    const __m512i both = _mm512_inserti64x4(low, _mm256_loadu_si256((const __m256i *)upper), 1);
    return (vec)_mm512_permutexvar_epi16(_mm512_load_si512(order), both);
}

/* Which terms of a block a word holds: term lower_term(l) in the lower half of word l and the term
 * APART after it in the upper half; word_of_term and in_upper_half are the way back. */
#if defined(__AMX_BF16__)
enum { APART = 2 };
INLINE int lower_term(int l) { return l / 2 * 4 + 1 - l % 2; }
INLINE ptrdiff_t word_of_term(ptrdiff_t term) { return term / 4 * 2 + 1 - term % 2; }
INLINE int in_upper_half(ptrdiff_t term) { return term % 4 / 2; }
#else
enum { APART = 1 };
INLINE int lower_term(int l) { return 2 * l; }
INLINE ptrdiff_t word_of_term(ptrdiff_t term) { return term / 2; }
INLINE int in_upper_half(ptrdiff_t term) { return term % 2; }
#endif

/* Word `l` of a block of terms, a row each, of the lanes from `at` on. */
INLINE vec word_of_rows(const int narrow, const float *const *rows, int l, ptrdiff_t at)
{
    const float *lower = rows[lower_term(l)], *upper = rows[lower_term(l) + APART];
    if (narrow)
        return paired_halves((const bfloat16 *)upper + at, (const bfloat16 *)lower + at);
    return paired(load(upper + at), load(lower + at));
}

#else

enum { WORDS = BLOCK };

INLINE vec multiply_add(vec sum, vec a, vec b) { return sum + a * b; }

/* Terms 1, 3, 0, 2 of each four. */
INLINE ptrdiff_t word_after(ptrdiff_t l, ptrdiff_t p) { return l / 4 * 4 + 2 * p + (l % 4 == 0); }

INLINE vec word_of_rows(const int narrow, const float *const *rows, int l, ptrdiff_t at)
{
    return rounded(load_elements(narrow, rows[l], at, LANES));
}

INLINE void store_words(float *to, const float *terms)
{
    UNROLLED for (int i = 0; i < BLOCK; i += LANES) store(to + i, rounded(load(terms + i)));
}

INLINE void store_words_of_bfloat16(float *to, const bfloat16 *terms)
{
    UNROLLED for (int i = 0; i < BLOCK; i += LANES)
        store(to + i, rounded(load_elements(1, terms, i, LANES)));
}

INLINE void store_half(bfloat16 *to, vec v) { store_elements(1, to, 0, v, LANES); }

#endif

/* ---- packing ---- */

/* One pixel's channels as words, filled up with zeros to whole blocks. */
INLINE void words_of_row(const float *x, ptrdiff_t channels, float *out)
{
    for (; channels >= BLOCK; channels -= BLOCK, x += BLOCK, out += WORDS) store_words(out, x);
    if (channels > 0) {
        ALIGNED float terms[BLOCK] = {0};
        memcpy(terms, x, channels * sizeof *x);
        store_words(out, terms);
    }
}

/* As nhwc_of_nchw, but out has words: blocks of BLOCK channels. */
static void words_of_nchw(const float *x, ptrdiff_t channel, ptrdiff_t channels, ptrdiff_t step,
                          ptrdiff_t count, ptrdiff_t line, ptrdiff_t lines, const float *end,
                          float *out, ptrdiff_t row)
{
    ALIGNED float terms[LANES * BLOCK];
    if (channel == 1) {
        for (ptrdiff_t i = 0; i < lines * count; i++)
            words_of_row(x + i / count * line + i % count * step, channels, out + i * row);
        return;
    }
    for (ptrdiff_t c = 0; c < channels; c += BLOCK, out += WORDS)
        for (ptrdiff_t j = 0; j < lines; j++)
            for (ptrdiff_t i = 0; i < count; i += LANES) {
                const float *from = x + j * line + c * channel + i * step;
                const ptrdiff_t some = min_of(count - i, LANES);
                if (channels - c < BLOCK) memset(terms, 0, sizeof terms);
                for (ptrdiff_t l = 0; l < min_of(channels - c, BLOCK); l += LANES)
                    turn_to_rows(from + l * channel, channel, channels - c - l, step, some, end,
                                 terms + l, BLOCK);
                for (ptrdiff_t k = 0; k < some; k++)
                    store_words(out + (j * count + i + k) * row, terms + k * BLOCK);
            }
}

/* As rows_of_bfloat16, but out has words. */
static void words_of_bfloat16(const float *x, ptrdiff_t channel, ptrdiff_t channels, ptrdiff_t step,
                              ptrdiff_t count, ptrdiff_t line, ptrdiff_t lines, const float *end,
                              float *out, ptrdiff_t row)
{
    ALIGNED bfloat16 last[BLOCK] = {0};
    const ptrdiff_t whole = channels / BLOCK * BLOCK;
    (void)channel, (void)end;
    for (ptrdiff_t i = 0; i < lines * count; i++, out += row) {
        const bfloat16 *pixel = element(1, x, i / count * line + i % count * step);
        for (ptrdiff_t c = 0; c < whole; c += BLOCK)
            store_words_of_bfloat16(out + c / BLOCK * WORDS, pixel + c);
        if (whole == channels) continue;
        memcpy(last, pixel + whole, (channels - whole) * sizeof *pixel);
        store_words_of_bfloat16(out + whole / BLOCK * WORDS, last);
    }
}

/* Term number `term` of a block, for `width` lanes, into the block's words: (WORDS, width). */
static void words_of_weights(const float *w, ptrdiff_t width, ptrdiff_t term, float *block)
{
#if defined(__AVX512BF16__)
    const ptrdiff_t word = word_of_term(term);
    const int upper = in_upper_half(term);
    const bits kept = (bits){0} + (upper ? 0x0000ffffu : 0xffff0000u);
    for (ptrdiff_t j = 0; j < width; j += LANES) {
        float *to = block + word * width + j;
        const bits half = bits_of(rounded(load(w + j)));
        store(to, vec_of((bits_of(load(to)) & kept) | (upper ? half : half >> 16)));
    }
#else
    for (ptrdiff_t j = 0; j < width; j += LANES)
        store(block + term * width + j, rounded(load(w + j)));
#endif
}

/* Blocks of terms, each a row of `lanes` floats, or bfloat16 numbers where they are `narrow`, as words
 * in panels of a vector's lanes, each (words, LANES), or (blocks, LANES, WORDS) for tiles.  Rows are read from end to end, few at a time,
 * for they may come from main memory. */
static void words_of_rows(const float *const *rows, int narrow, ptrdiff_t blocks, ptrdiff_t lanes,
                          float *out)
{
    const ptrdiff_t panel = blocks * WORDS * LANES;
    for (ptrdiff_t k = 0; k < blocks; k++, rows += BLOCK, out += WORDS * LANES)
#if defined(__AMX_BF16__)
        for (ptrdiff_t j = 0; j < lanes; j += LANES) {
            vec v[WORDS];
            for (int l = 0; l < WORDS; l++)
                v[l] = narrow ? word_of_rows(1, rows, l, j) : word_of_rows(0, rows, l, j);
            transpose(v);
            UNROLLED for (int l = 0; l < LANES; l++)
                store(out + j / LANES * panel + l * WORDS, v[l]);
        }
#else
        for (int l = 0; l < WORDS; l++)
            for (ptrdiff_t j = 0; j < lanes; j += LANES)
                store(out + j / LANES * panel + l * LANES,
                      narrow ? word_of_rows(1, rows, l, j) : word_of_rows(0, rows, l, j));
#endif
}

/* ---- products ---- */

/* Subnormal results are zeros while this is in force, as the instructions have it.  What is computed
 * meanwhile is computed in functions that are not inlined: nothing can be moved out. */
INLINE unsigned flush_subnormal(void)
{
#if defined(__SSE2__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    return before;
#else
    return 0;
#endif
}

INLINE void restore_subnormal(unsigned before)
{
#if defined(__SSE2__)
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

/* Where a tile of a product goes: rows of floats or bfloat16, with n more of them from `column` on. */
typedef struct {
    float *const *rows;
    ptrdiff_t column, n;
    int narrow;
} tile_of_output;

/* totals (R, ACROSS) = the outputs. */
static NOINLINE void read_totals(int R, const tile_of_output *to, float *totals)
{
    for (int i = 0; i < R; i++)
        for (int j = 0; j < ACROSS && j * LANES < to->n; j++) {
            const ptrdiff_t at = to->column + j * LANES, some = to->n - j * LANES;
            const vec y = to->narrow ? load_elements(1, to->rows[i], at, some)
                                     : load_elements(0, to->rows[i], at, some);
            store(totals + (i * ACROSS + j) * LANES, y);
        }
}

/* The outputs = totals, and the epilogue of them if there is one. */
static NOINLINE void write_totals(int R, const float *totals, const tile_of_output *to,
                                  const convcore_epilogue *e)
{
    for (int i = 0; i < R; i++)
        for (int j = 0; j < ACROSS && j * LANES < to->n; j++) {
            const ptrdiff_t at = to->column + j * LANES, some = to->n - j * LANES;
            vec y = load(totals + (i * ACROSS + j) * LANES);
            if (e && e->bias) y += load_up_to(e->bias + at, some);
            if (e) y = activated(y, e);
            if (to->narrow)
                store_elements(1, to->rows[i], at, y, some);
            else
                store_up_to(to->rows[i] + at, y, some);
        }
}

/* Where the second factor of a gradient lies: rows of terms, from column `first` on. */
typedef struct {
    const float *const *rows;
    ptrdiff_t first;
    int narrow;
} rows_of_terms;

/* out = the words of W vectors of some blocks of terms. */
static NOINLINE void words_of_terms(int W, ptrdiff_t blocks, rows_of_terms from, float *out)
{
    for (ptrdiff_t k = 0; k < blocks; k++, from.rows += BLOCK)
        for (int l = 0; l < WORDS; l++, out += W * LANES)
            for (int j = 0; j < W; j++) {
                const ptrdiff_t at = from.first + j * LANES;
                store(out + j * LANES, from.narrow ? word_of_rows(1, from.rows, l, at)
                                                   : word_of_rows(0, from.rows, l, at));
            }
}

#if defined(__AMX_BF16__)
#include "tiles.h"
#else

/* totals (R, across) += the chains of one block. */
#define ADD_CHAINS(R, W, across)                                                              \
    UNROLLED for (int i = 0; i < R; i++)                                                      \
        UNROLLED for (int j = 0; j < W; j++) {                                                \
            float *to = totals + (i * (across) + j) * LANES;                                  \
            store(to, load(to) + (sums[0][i][j] + sums[1][i][j]));                            \
        }

#define CLEAR_CHAINS(R, W)                                                                    \
    UNROLLED for (int p = 0; p < 2; p++)                                                      \
        UNROLLED for (int i = 0; i < R; i++)                                                  \
            UNROLLED for (int j = 0; j < W; j++) sums[p][i][j] = (vec){0};

/* out (R, n) = or += patches (R, taps * blocks) @ b (taps * blocks, n); R and W are constants.  If it
 * `asks`, then for the rows after these, if they follow in memory. */
INLINE void bfloat16_tile(const int R, const int W, ptrdiff_t taps, ptrdiff_t blocks,
                          const float *const *rows, ptrdiff_t pitch, ptrdiff_t first,
                          const float *b, ptrdiff_t b_row, tile_of_output out, int add,
                          const convcore_epilogue *e, int asks)
{
    ALIGNED float totals[ROWS * ACROSS * LANES];
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < W; j++) store(totals + (i * ACROSS + j) * LANES, (vec){0});
    if (add) read_totals(R, &out, totals);
    for (ptrdiff_t t = 0; t < taps; t++, rows += pitch) {
        const float *a[ROWS];
        UNROLLED for (int i = 0; i < R; i++) a[i] = rows[i] + first;
        for (ptrdiff_t k = 0; k < blocks; k++) {
            vec sums[2][ROWS][ACROSS];
            CLEAR_CHAINS(R, W)
            if (asks) UNROLLED for (int i = 0; i < R; i++) PREFETCH(a[i] + R * blocks * WORDS);
            for (int l = 0; l < WORDS; l += 2)
                UNROLLED for (int p = 0; p < 2; p++) {
                    const float *at = b + word_after(l, p) * b_row;
                    vec right[ACROSS];
                    UNROLLED for (int j = 0; j < W; j++) {
                        right[j] = load(at + j * LANES);
                        KEEP(right[j]);
                    }
                    UNROLLED for (int i = 0; i < R; i++) {
                        vec each = broadcast_word(a[i] + word_after(l, p));
                        UNROLLED for (int j = 0; j < W; j++)
                            sums[p][i][j] = multiply_add(sums[p][i][j], each, right[j]);
                    }
                }
            ADD_CHAINS(R, W, ACROSS)
            UNROLLED for (int i = 0; i < R; i++) a[i] += WORDS;
            b += WORDS * b_row;
        }
    }
    if (e || out.n < W * LANES) {
        write_totals(R, totals, &out, e);
        return;
    }
#define STORE_WHOLE(STORE, type)                                                              \
    UNROLLED for (int i = 0; i < R; i++)                                                      \
        UNROLLED for (int j = 0; j < W; j++)                                                  \
            STORE((type *)out.rows[i] + out.column + j * LANES,                               \
                  load(totals + (i * ACROSS + j) * LANES));
    if (out.narrow) STORE_WHOLE(store_half, bfloat16)
    else STORE_WHOLE(store, float)
}

#define TILE_OF(R, W)                                                                         \
    bfloat16_tile(R, W, taps, blocks, rows + i, pitch, first, b + j, b_row,                   \
                  (tile_of_output){out + i, column + j, n - j, narrow}, add, e, column == 0)
#define TILE(R) if (W == ACROSS) TILE_OF(R, ACROSS); else TILE_OF(R, 1)

static NOINLINE void bfloat16_panel(ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t blocks,
                                    const float *const *rows, ptrdiff_t pitch, ptrdiff_t first,
                                    const float *b, float *const *out, int narrow,
                                    ptrdiff_t column, int add, const convcore_epilogue *e)
{
    const ptrdiff_t vectors = min_of((n + LANES - 1) / LANES, WIDTH), b_row = vectors * LANES;
    for (ptrdiff_t i = 0; i < m; i += ROWS) {
        /* Lines of the next outputs: they are strips of rows that lie apart. */
        for (ptrdiff_t next = i + ROWS; next < min_of(m, i + 2 * ROWS); next++)
            for (ptrdiff_t v = 0; v < vectors; v += narrow ? 2 : 1)
                PREFETCH_OUTPUT(element(narrow, out[next], column + v * LANES));
        for (ptrdiff_t v = 0; v < vectors; v += ACROSS) {
            const ptrdiff_t W = min_of(vectors - v, ACROSS), j = v * LANES;
            SWITCH_ROWS(min_of(m - i, ROWS), TILE)
        }
    }
}

#undef TILE
#undef TILE_OF

/* out[i][column + j] = or += sum over taps t and terms l of row t * pitch + i, from its word number
 * `first` on, by column j, for m rows and n columns.  b: panels of PANEL columns, `panel` words from
 * one to the next, each (taps, blocks, WORDS, PANEL); the last may have fewer whole vectors.  With
 * `e`, the epilogue follows.  Where it is `narrow`, out is bfloat16. */
static void bfloat16_product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t blocks,
                             const float *const *rows, ptrdiff_t pitch, ptrdiff_t first,
                             const float *b, ptrdiff_t panel, float *const *out, int narrow,
                             ptrdiff_t column, int add, const convcore_epilogue *e)
{
    const unsigned before = flush_subnormal();
    for (ptrdiff_t j = 0; j < n; j += PANEL, b += panel)
        bfloat16_panel(m, n - j, taps, blocks, rows, pitch, first, b, out, narrow, column + j, add,
                       e);
    restore_subnormal(before);
}

/* Blocks of terms whose words wait in the L1 for all rows of a gradient. */
enum { GRADIENT_BLOCKS = 4 };

/* Rows of a tile of a gradient, a part of a vector's lanes, and vectors across. */
enum { DOWN = LANES < 4 ? LANES : 4 };
#define GRADIENT_ACROSS (REGISTERS == 32 ? 3 : 1)

/* c (R, W vectors) = or += a^T (R, blocks) @ b (blocks, W vectors); R and W are constants. */
INLINE void bfloat16_gradient_tile(const int R, const int W, ptrdiff_t blocks, const float *a,
                                   const float *b, float *c, ptrdiff_t c_row, int add)
{
    ALIGNED float totals[DOWN * GRADIENT_ACROSS * LANES];
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < W; j++)
            store(totals + (i * W + j) * LANES, add ? load(c + i * c_row + j * LANES) : (vec){0});
    for (ptrdiff_t k = 0; k < blocks; k++) {
        vec sums[2][DOWN][GRADIENT_ACROSS];
        CLEAR_CHAINS(R, W)
        for (int l = 0; l < WORDS; l += 2)
            UNROLLED for (int p = 0; p < 2; p++) {
                const float *at = b + word_after(l, p) * W * LANES;
                vec right[GRADIENT_ACROSS];
                UNROLLED for (int j = 0; j < W; j++) {
                    right[j] = load(at + j * LANES);
                    KEEP(right[j]);
                }
                UNROLLED for (int i = 0; i < R; i++) {
                    vec left = broadcast_word(a + word_after(l, p) * LANES + i);
                    UNROLLED for (int j = 0; j < W; j++)
                        sums[p][i][j] = multiply_add(sums[p][i][j], left, right[j]);
                }
            }
        ADD_CHAINS(R, W, W)
        a += WORDS * LANES;
        b += WORDS * W * LANES;
    }
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int j = 0; j < W; j++)
            store(c + i * c_row + j * LANES, load(totals + (i * W + j) * LANES));
}

#define TILE(R) bfloat16_gradient_tile(R, W, blocks, at, words, c + i * c_row, c_row, add)

/* The first of `count` rows' vectors that are multiplied next. */
typedef struct {
    rows_of_terms from;
    ptrdiff_t count;
} rows_ahead;

/* Ask for the next rows' vectors, at most `count` rows': main memory has time until they are needed. */
INLINE void fetch_rows(rows_ahead *next, ptrdiff_t count)
{
    for (count = min_of(count, next->count); count > 0; count--, next->count--, next->from.rows++)
        UNROLLED for (int j = 0; j < GRADIENT_ACROSS; j++)
            PREFETCH(element(next->from.narrow, *next->from.rows, next->from.first + j * LANES));
}

/* a: panels that are `panel` words apart.  Each tile asks for a share of what comes next. */
INLINE void bfloat16_gradient_columns(const int W, ptrdiff_t m, ptrdiff_t blocks, const float *a,
                                      ptrdiff_t panel, rows_of_terms from, float *c,
                                      ptrdiff_t c_row, int add, rows_ahead next)
{
    ALIGNED float words[GRADIENT_BLOCKS * WORDS * GRADIENT_ACROSS * LANES];
    const ptrdiff_t tiles = (m + DOWN - 1) / DOWN, share = (next.count + tiles - 1) / tiles;
    words_of_terms(W, blocks, from, words);
    for (ptrdiff_t i = 0; i < m; i += DOWN) {
        const float *at = a + i / LANES * panel + i % LANES;
        fetch_rows(&next, share);
        switch (min_of(m - i, DOWN)) {
#if LANES >= 4
        case 4: TILE(4); break;
        case 3: TILE(3); break;
        case 2: TILE(2); break;
#endif
        default: TILE(1);
        }
    }
}

#undef TILE

#define COLUMNS(W)                                                                            \
    bfloat16_gradient_columns(W, m, some, left, panel, (rows_of_terms){right, j, narrow}, c + j, \
                              c_row, add || k > 0, next)

static NOINLINE void add_gradient(ptrdiff_t m, ptrdiff_t n, ptrdiff_t blocks, const float *a,
                                  const float *const *rows, int narrow, float *c, ptrdiff_t c_row,
                                  int add)
{
    const ptrdiff_t panel = blocks * WORDS * LANES;
    for (ptrdiff_t k = 0; k < blocks; k += GRADIENT_BLOCKS) {
        const ptrdiff_t some = min_of(blocks - k, GRADIENT_BLOCKS);
        const float *left = a + k * WORDS * LANES, *const *right = rows + k * BLOCK;
        for (ptrdiff_t j = 0, W; j < n; j += W * LANES) {
            const ptrdiff_t vectors = (n - j) / LANES;
            /* Four are two twos: one alone has too few sums to be fast. */
            W = GRADIENT_ACROSS == 1 || vectors == 1 ? 1 : vectors == 2 || vectors == 4 ? 2 : 3;
            const rows_ahead next = W < vectors
                ? (rows_ahead){{right, j + W * LANES, narrow}, some * BLOCK}
                : (rows_ahead){{right + some * BLOCK, 0, narrow},
                               min_of(blocks - k - some, GRADIENT_BLOCKS) * BLOCK};
            switch (W) {
#if REGISTERS == 32
            case 3: COLUMNS(3); break;
            case 2: COLUMNS(2); break;
#endif
            default: COLUMNS(1);
            }
        }
    }
}

#undef COLUMNS

/* c[i * c_row + j] = or += sum over terms l of a[l, i] * rows[l][j], for m rows and n columns, whole
 * vectors.  a: words of whole blocks, by words_of_rows; where they are `narrow`, rows are bfloat16. */
static void bfloat16_gradient(ptrdiff_t m, ptrdiff_t n, ptrdiff_t blocks, const float *a,
                              const float *const *rows, int narrow, float *c, ptrdiff_t c_row,
                              int add)
{
    const unsigned before = flush_subnormal();
    add_gradient(m, n, blocks, a, rows, narrow, c, c_row, add);
    restore_subnormal(before);
}

#endif

#define TEXT(isa) QUOTED(isa)
#define QUOTED(isa) #isa

const convcore_bfloat16 CONVCORE_TABLE(convcore_bfloat16) = {
    .name = TEXT(CONVCORE_ISA),
    .words = WORDS,
    .words_of_nchw = words_of_nchw,
    .words_of_bfloat16 = words_of_bfloat16,
    .words_of_weights = words_of_weights,
    .words_of_rows = words_of_rows,
    .product = bfloat16_product,
    .gradient = bfloat16_gradient,
};
