/* Products in bfloat16 by Intel's AMX: tiles of 16 rows of a block of terms, by 16 columns of it.
 *
 * tdpbf16ps sums a block of terms in two chains of fused multiply-adds that begin at zero, one of the
 * lower halves of the words and one of the upper halves, and adds the sum of both to the total.
 * Subnormal numbers are zeros.  That is the order of bfloat16.c where the words of both factors hold
 * terms 1 and 3, 0 and 2, 5 and 7, 4 and 6, ...: the lower halves are its first chain.  Pixels keep
 * their order in memory, and are permuted while they are copied to tiles.
 */
#ifndef CONVCORE_TILES_H
#define CONVCORE_TILES_H

/* Rows, words of a row, and floats of a tile. */
enum { TILE = 16, TILE_SIZE = TILE * TILE };

/* Blocks of terms that wait in the L1 for all columns, and columns whose sums do for all terms. */
enum { DEEP = 16, WIDE = 256 };

/* Eight tiles of 16 rows of 64 bytes. */
static void configure_tiles(void)
{
    ALIGNED static const unsigned char whole[64] = {
        [0] = 1,
        [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64, [26] = 64, [28] = 64, [30] = 64,
        [48] = TILE, [49] = TILE, [50] = TILE, [51] = TILE,
        [52] = TILE, [53] = TILE, [54] = TILE, [55] = TILE,
    };
    _tile_loadconfig(whole);
}

/* A block of terms in the order of memory, as words of a tile. */
INLINE vec tile_words(const float *terms)
{
    const __m512i order = _mm512_set4_epi32(0x0d0c0908, 0x0f0e0b0a, 0x05040100, 0x07060302);
    return (vec)_mm512_shuffle_epi8(_mm512_loadu_si512(terms), order);
}

/* Tiles of the left factor: the lower one is `lower` floats after the upper one, and the next block
 * of terms `step` floats after this one. */
typedef struct {
    const float *at;
    ptrdiff_t lower, step;
} left_tiles;

/* c (down tiles, across tiles) = or += left @ right over some blocks; down and across are constants. */
INLINE void multiply_tiles(const int down, const int across, ptrdiff_t blocks, left_tiles left,
                           const float *right, ptrdiff_t right_row, float *c, ptrdiff_t c_row,
                           int add)
{
    const ptrdiff_t bytes = right_row * (ptrdiff_t)sizeof *right;
    const ptrdiff_t c_bytes = c_row * (ptrdiff_t)sizeof *c;
    float *lower = c + TILE * c_row;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (add) {
        _tile_loadd(0, c, c_bytes);
        if (across > 1) _tile_loadd(1, c + TILE, c_bytes);
        if (down > 1) _tile_loadd(2, lower, c_bytes);
        if (down > 1 && across > 1) _tile_loadd(3, lower + TILE, c_bytes);
    }
    for (; blocks > 0; blocks--, left.at += left.step, right += TILE * right_row) {
        _tile_loadd(4, left.at, 64);
        _tile_loadd(6, right, bytes);
        _tile_dpbf16ps(0, 4, 6);
        if (across > 1) {
            _tile_loadd(7, right + TILE, bytes);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (down > 1) {
            _tile_loadd(5, left.at + left.lower, 64);
            _tile_dpbf16ps(2, 5, 6);
            if (across > 1) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, c_bytes);
    if (across > 1) _tile_stored(1, c + TILE, c_bytes);
    if (down > 1) _tile_stored(2, lower, c_bytes);
    if (down > 1 && across > 1) _tile_stored(3, lower + TILE, c_bytes);
}

/* The same of one or two tiles down and across. */
static NOINLINE void add_tiles(int down, int across, ptrdiff_t blocks, left_tiles left,
                               const float *right, ptrdiff_t right_row, float *c, ptrdiff_t c_row,
                               int add)
{
    if (down > 1 && across > 1)
        multiply_tiles(2, 2, blocks, left, right, right_row, c, c_row, add);
    else if (down > 1)
        multiply_tiles(2, 1, blocks, left, right, right_row, c, c_row, add);
    else if (across > 1)
        multiply_tiles(1, 2, blocks, left, right, right_row, c, c_row, add);
    else
        multiply_tiles(1, 1, blocks, left, right, right_row, c, c_row, add);
}

/* out (blocks, 2 TILE, words) = blocks [k, k + count) of the terms of m rows, taps after taps. */
static void copy_to_tiles(ptrdiff_t m, ptrdiff_t k, ptrdiff_t count, ptrdiff_t blocks,
                          const float *const *rows, ptrdiff_t pitch, ptrdiff_t first, float *out)
{
    while (count > 0) {
        const ptrdiff_t some = min_of(count, blocks - k % blocks);
        const float *const *tap = rows + k / blocks * pitch;
        for (ptrdiff_t i = 0; i < m; i++) {
            const float *from = tap[i] + first + k % blocks * WORDS;
            for (ptrdiff_t l = 0; l < some; l++)
                store(out + (l * 2 * TILE + i) * TILE, tile_words(from + l * WORDS));
        }
        out += some * 2 * TILE_SIZE;
        k += some;
        count -= some;
    }
}

/* bfloat16_product of at most 2 TILE rows and WIDE columns. */
static NOINLINE void product_of_rows(ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t blocks,
                                     const float *const *rows, ptrdiff_t pitch, ptrdiff_t first,
                                     const float *b, ptrdiff_t panel, tile_of_output out, int add,
                                     const convcore_epilogue *e)
{
    ALIGNED float left[DEEP * 2 * TILE_SIZE], totals[2 * TILE * WIDE];
    const ptrdiff_t all = taps * blocks;
    const int down = m > TILE ? 2 : 1;
    for (ptrdiff_t k = 0; k == 0 || k < all; k += DEEP) { /* once without a tap: sums are zeros */
        const ptrdiff_t some = min_of(all - k, DEEP);
        copy_to_tiles(m, k, some, blocks, rows, pitch, first, left);
        for (ptrdiff_t j = 0; j < n; j += 2 * TILE) {
            const ptrdiff_t vectors = min_of((out.n - j / PANEL * PANEL + LANES - 1) / LANES, WIDTH);
            const float *right = b + j / PANEL * panel + j % PANEL;
            float *sums = totals + j * 2 * TILE;
            tile_of_output to = out;
            to.column += j;
            to.n -= j;
            if (add && k == 0) read_totals((int)m, &to, sums);
            add_tiles(down, to.n > TILE ? 2 : 1, some, (left_tiles){left, TILE_SIZE, 2 * TILE_SIZE},
                      right + k * WORDS * vectors * LANES, vectors * LANES, sums, 2 * TILE,
                      add || k > 0);
            if (k + some == all) write_totals((int)m, sums, &to, e);
        }
    }
}

/* As bfloat16_product of bfloat16.c. */
static void bfloat16_product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t blocks,
                             const float *const *rows, ptrdiff_t pitch, ptrdiff_t first,
                             const float *b, ptrdiff_t panel, float *const *out, int narrow,
                             ptrdiff_t column, int add, const convcore_epilogue *e)
{
    const unsigned before = flush_subnormal();
    configure_tiles();
    for (ptrdiff_t i = 0; i < m; i += 2 * TILE)
        for (ptrdiff_t j = 0; j < n; j += WIDE)
            product_of_rows(min_of(m - i, 2 * TILE), min_of(n - j, WIDE), taps, blocks, rows + i,
                            pitch, first, b + j / PANEL * panel, panel,
                            (tile_of_output){out + i, column + j, n - j, narrow}, add, e);
    _tile_release();
    restore_subnormal(before);
}

/* As add_tiles, of m rows, which are fewer than the tiles have. */
static NOINLINE void add_few_rows(ptrdiff_t m, int down, int across, ptrdiff_t blocks,
                                  left_tiles left, const float *right, float *c, ptrdiff_t c_row,
                                  int add)
{
    ALIGNED float sums[2 * TILE * 2 * TILE];
    const ptrdiff_t width = across * TILE;
    if (add)
        for (ptrdiff_t i = 0; i < m; i++)
            for (ptrdiff_t j = 0; j < width; j += LANES)
                store(sums + i * width + j, load(c + i * c_row + j));
    add_tiles(down, across, blocks, left, right, width, sums, width, add);
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < width; j += LANES)
            store(c + i * c_row + j, load(sums + i * width + j));
}

/* As bfloat16_gradient of bfloat16.c; a: panels (blocks, LANES, WORDS). */
static void bfloat16_gradient(ptrdiff_t m, ptrdiff_t n, ptrdiff_t blocks, const float *a,
                              const float *const *rows, int narrow, float *c, ptrdiff_t c_row,
                              int add)
{
    ALIGNED float right[DEEP * 2 * TILE_SIZE];
    const ptrdiff_t panel = blocks * TILE_SIZE;
    const unsigned before = flush_subnormal();
    configure_tiles();
    for (ptrdiff_t k = 0; k < blocks; k += DEEP)
        for (ptrdiff_t j = 0; j < n; j += 2 * TILE) {
            const ptrdiff_t some = min_of(blocks - k, DEEP);
            const int across = n - j > TILE ? 2 : 1;
            words_of_terms(across, some, (rows_of_terms){rows + k * BLOCK, j, narrow}, right);
            for (ptrdiff_t i = 0; i < m; i += 2 * TILE) {
                const int down = m - i > TILE ? 2 : 1;
                const left_tiles left = {a + i / TILE * panel + k * TILE_SIZE, panel, TILE_SIZE};
                float *to = c + i * c_row + j;
                if (m - i < down * TILE)
                    add_few_rows(m - i, down, across, some, left, right, to, c_row, add || k > 0);
                else
                    add_tiles(down, across, some, left, right, across * TILE, to, c_row,
                              add || k > 0);
            }
        }
    _tile_release();
    restore_subnormal(before);
}

#endif
