/* The microkernels of one instruction set: what _isa.pyx chooses among, and the kernels call.
 *
 * A microkernel is a static function on plain pointers: no threads, no allocation, nothing that can
 * fail.  Sizes and strides are in floats.
 */
#ifndef CONVCORE_MICROKERNELS_H
#define CONVCORE_MICROKERNELS_H

#include <stddef.h>

/* What follows a convolution: add a bias a channel and what y held, then an activation. */
enum { CONVCORE_PLAIN, CONVCORE_CLAMP, CONVCORE_LEAKY };

typedef struct {
    const float *bias;           /* a float a channel, or NULL */
    int kind;                    /* CONVCORE_CLAMP to [low, high]; CONVCORE_LEAKY: y < 0 by slope */
    float low;
    float high;
    float slope;
    int add;                     /* y is added to; kernels that can do this say so */
} convcore_epilogue;

/* Square tiles of the images of an array.  With dilation d an axis splits into d residues, each a
 * convolution of its own over every d-th element; tile i of a residue begins at element first +
 * residue * residue_step + i * advance, and its elements are `step` apart.  Tiles are ordered by
 * image, residue of row, residue of column, row, column.  Elements outside the array read as zeros
 * and are not stored. */
typedef struct {
    ptrdiff_t image, channel;    /* strides */
    ptrdiff_t line[2];           /* strides of rows and columns */
    ptrdiff_t size[2];           /* rows and columns of an image */
    ptrdiff_t first[2];
    ptrdiff_t step[2];
    ptrdiff_t advance[2];
    ptrdiff_t residue_step[2];
    ptrdiff_t residues[2];
    ptrdiff_t tiles[2];          /* of one residue */
    int narrow;                  /* elements are bfloat16, channels side by side */
} convcore_tiling;

/* How filters lie in memory: from one that becomes a lane, and one that is summed, to the next, and
 * from a tap to the next; tap (0, 0) is `first` floats from a filter's beginning.  Taps outside
 * [begin, to) are zeros that fill up the tile.  `run`: floats of a filter, if its taps lie side by
 * side and are at most CONVCORE_MAX_RUN, else 0.  No float is read at or beyond `end`. */
enum { CONVCORE_MAX_RUN = 64 };

/* Columns that a tile in contiguous memory may span: winograd.h has a buffer of so many. */
enum { CONVCORE_MAX_STRIP = 72 };

typedef struct {
    const float *end;
    ptrdiff_t lane, sum, first, run;
    ptrdiff_t line[2];
    ptrdiff_t begin[2];
    ptrdiff_t to[2];
} convcore_filters;

/* The transforms of Winograd's method for tiles of one size.  Transformed tiles are (points, tiles,
 * channels): `tile` floats from a tile to the next and `point` from a point to the next; channels
 * are filled up with zeros to whole vectors. */
typedef struct {
    ptrdiff_t outputs;           /* of a tile, an axis: F(outputs, taps) */
    ptrdiff_t taps;
    ptrdiff_t points;            /* products a tile, channel and output channel */
    void (*data)(const convcore_tiling *at, const float *x, ptrdiff_t channels, ptrdiff_t first,
                 ptrdiff_t end, float *v, ptrdiff_t tile, ptrdiff_t point);
    void (*gradients)(const convcore_tiling *at, const float *gy, ptrdiff_t channels,
                      ptrdiff_t first, ptrdiff_t end, float *v, ptrdiff_t tile, ptrdiff_t point);
    void (*outputs_of)(const convcore_tiling *at, const float *m, ptrdiff_t tile, ptrdiff_t point,
                       ptrdiff_t channels, ptrdiff_t first, ptrdiff_t end,
                       const convcore_epilogue *epilogue, float *y);
    void (*weights)(const convcore_filters *f, const float *w, ptrdiff_t lanes, ptrdiff_t sums,
                    float *u, ptrdiff_t panel, ptrdiff_t point);
    void (*weight_sums)(const convcore_filters *f, const float *p, ptrdiff_t point,
                        ptrdiff_t lanes, float *gw);
} convcore_winograd;

/* A tile of output pixels over a halo tile of packed input: pixel (r, q) of it stands at place
 * r * row + q * pixel of the halo, and reads term l of its sum `offset[l]` further. */
typedef struct {
    ptrdiff_t terms;             /* channels times taps */
    const ptrdiff_t *offset;
    ptrdiff_t row, pixel;
    ptrdiff_t rows, columns;     /* of pixels */
    int stream;                  /* store outputs past the caches: all vectors whole and aligned */
} convcore_tile;

/* The tiles of convolutions of few input channels; _nchw for contiguous arrays of outputs (or of
 * their gradients), _nhwc for channels_last ones.  See few_channels.h. */
typedef struct {
    ptrdiff_t group;             /* output channels of a group of weights */
    ptrdiff_t wide;              /* output channels of a panel of weights */
    ptrdiff_t panel;             /* pixels of a panel of gradients */
    void (*pack)(const float *x, ptrdiff_t step, ptrdiff_t size, ptrdiff_t first,
                  ptrdiff_t stride, ptrdiff_t phases, float *halo, ptrdiff_t pitch);
    void (*interleave)(ptrdiff_t n, const float *rows, ptrdiff_t row, ptrdiff_t count, float *out);
    void (*forward_nchw)(const convcore_tile *t, const float *halo, const float *w, ptrdiff_t o,
                           const convcore_epilogue *epilogue, float *y, ptrdiff_t y_row,
                           ptrdiff_t y_channel);
    void (*forward_nhwc)(const convcore_tile *t, const float *halo, const float *w, ptrdiff_t o,
                           const convcore_epilogue *epilogue, float *y, ptrdiff_t y_row,
                           ptrdiff_t y_pixel);
    void (*input)(const convcore_tile *t, const ptrdiff_t *term_row, ptrdiff_t stride,
                  ptrdiff_t low, ptrdiff_t high, const float *gy, ptrdiff_t gy_row,
                  ptrdiff_t gy_pixel, ptrdiff_t gy_channel, ptrdiff_t o, const float *w,
                  float *scratch, ptrdiff_t *kept, float *halo);
    void (*weight)(const convcore_tile *t, const float *halo, const float *gy, ptrdiff_t gy_row,
                   ptrdiff_t gy_pixel, ptrdiff_t gy_channel, ptrdiff_t o, float *scratch,
                   float *sums, ptrdiff_t sums_term);
} convcore_few_channels;

/* How the outputs of a pass look at its inputs along one axis.  Output phase + phases * j is a sum
 * over i in [0, begin[phase + 1] - begin[phase]) of input j * stride + first[phase] + i * step under
 * the kernel's tap[phase] + i * tap_step. */
enum { CONVCORE_MAX_TAPS = 1024, CONVCORE_MAX_PHASES = 8 };

typedef struct {
    ptrdiff_t size;              /* inputs */
    ptrdiff_t out;               /* outputs */
    ptrdiff_t stride;
    ptrdiff_t phases;
    ptrdiff_t low;               /* the least offset */
    ptrdiff_t span;              /* offsets from the least to the greatest, both included */
    ptrdiff_t begin[CONVCORE_MAX_PHASES + 1];
    ptrdiff_t first[CONVCORE_MAX_PHASES];
    ptrdiff_t tap[CONVCORE_MAX_PHASES];
    ptrdiff_t step;
    ptrdiff_t tap_step;
} convcore_direct_axis;

/* A depthwise or grouped pass, on arrays that are dense in one memory format.
 *
 * An image is a stack of slices, of which an image of two axes has one; slices are numbered through
 * all images.  specialisation: 10 K + S for a K x K kernel of stride S without dilation; -(10 K + 2)
 * for the input gradient of one of stride 2 with K / 2 zeros before both axes; 0 for all others, and
 * where the kernel has more than one slice, or the depth is padded. */
typedef struct {
    convcore_direct_axis depth;
    convcore_direct_axis row;
    convcore_direct_axis column;
    int channels_last;
    int specialisation;
    ptrdiff_t channels;          /* of the array that is read */
    ptrdiff_t size;              /* its floats: no load passes its end */
    ptrdiff_t kernel_columns;    /* tap (t, i, k) is number t * kernel_plane + i * kernel_columns + k */
    ptrdiff_t kernel_plane;
    ptrdiff_t taps;
    ptrdiff_t rows;              /* rows of outputs of each phase that are made at a time */
    int narrow;                  /* both arrays are bfloat16: channels_last with a specialisation */
} convcore_direct;

typedef struct {
    convcore_direct direct;
    ptrdiff_t groups;
    ptrdiff_t c;                 /* channels of one group, read and made */
    ptrdiff_t o;
} convcore_grouped;

/* Products whose rows are pointers, and the copies around them: see indirect.h.  At most so many rows
 * are made at a time. */
enum { CONVCORE_TALLEST = 12 };

typedef struct {
    void (*product)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t k,
                    const float *const *rows, ptrdiff_t pitch, const float *zeros,
                    ptrdiff_t first, const float *b, ptrdiff_t panel, float *const *out,
                    unsigned short *const *narrow, ptrdiff_t column, int add,
                    const convcore_epilogue *e, const float *next);
    void (*gradient)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t step,
                     const float *const *rows, const float *zeros, ptrdiff_t first, float *c,
                     ptrdiff_t c_row, int add);
    void (*nhwc_of_nchw)(const float *x, ptrdiff_t channel, ptrdiff_t channels, ptrdiff_t step,
                           ptrdiff_t count, ptrdiff_t line, ptrdiff_t lines, const float *end,
                           float *out, ptrdiff_t row);
    void (*nchw_of_nhwc)(const float *rows, ptrdiff_t row, ptrdiff_t count, float *y,
                           ptrdiff_t channel, ptrdiff_t channels);
    void (*rows_of_bfloat16)(const float *x, ptrdiff_t channel, ptrdiff_t channels, ptrdiff_t step,
                             ptrdiff_t count, ptrdiff_t line, ptrdiff_t lines, const float *end,
                             float *out, ptrdiff_t row);
    void (*bfloat16_of_rows)(const float *rows, ptrdiff_t row, ptrdiff_t count, float *y,
                             ptrdiff_t step, ptrdiff_t channels);
    void (*rows_of_lanes)(const float *w, const float *end, ptrdiff_t lane, ptrdiff_t lanes,
                          ptrdiff_t count, float *const *out);
} convcore_indirect;

typedef struct {
    const char *name;
    ptrdiff_t lanes;             /* floats of a vector */
    ptrdiff_t panel;             /* columns of a panel of `product`: whole vectors */
    ptrdiff_t rows;              /* rows that `product` keeps in registers */
    void (*product)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t a_row,
                    ptrdiff_t a_column, const float *b, float *c, ptrdiff_t c_row, int add,
                    const float *next);
    convcore_winograd winograd[4];   /* F(2, 3), F(4, 3), F(3, 2), F(2, 5) on both axes */
    convcore_indirect indirect;
    convcore_few_channels few;
    void (*depthwise)(const convcore_direct *d, ptrdiff_t slice, ptrdiff_t c0, ptrdiff_t c1,
                      ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *w, float *y,
                      const convcore_epilogue *e, float *scratch);
    void (*depthwise_gradient)(const convcore_direct *d, ptrdiff_t slice, ptrdiff_t c0,
                               ptrdiff_t c1, ptrdiff_t j0, ptrdiff_t j1, const float *x,
                               const float *gy, float *sums, float *scratch);
    void (*grouped)(const convcore_grouped *g, ptrdiff_t slice, ptrdiff_t g0, ptrdiff_t g1,
                    ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *w, float *y,
                    const convcore_epilogue *e, float *scratch);
    void (*grouped_gradient)(const convcore_grouped *g, ptrdiff_t slice, ptrdiff_t g0,
                             ptrdiff_t g1, ptrdiff_t j0, ptrdiff_t j1, const float *x,
                             const float *gy, float *sums, float *scratch);
    void (*sum_lanes)(const float *v, ptrdiff_t count, float *out);
} convcore_microkernels;

/* Products in bfloat16 with float32 sums, of words that hold two bfloat16 numbers or a rounded float:
 * see bfloat16.c.  A block of terms is `words` words. */
enum { CONVCORE_BFLOAT16_BLOCK = 32 };

typedef struct {
    const char *name;
    ptrdiff_t words;
    void (*words_of_nchw)(const float *x, ptrdiff_t channel, ptrdiff_t channels, ptrdiff_t step,
                          ptrdiff_t count, ptrdiff_t line, ptrdiff_t lines, const float *end,
                          float *out, ptrdiff_t row);
    void (*words_of_bfloat16)(const float *x, ptrdiff_t channel, ptrdiff_t channels, ptrdiff_t step,
                              ptrdiff_t count, ptrdiff_t line, ptrdiff_t lines, const float *end,
                              float *out, ptrdiff_t row);
    void (*words_of_weights)(const float *w, ptrdiff_t width, ptrdiff_t term, float *block);
    void (*words_of_rows)(const float *const *rows, int narrow, ptrdiff_t blocks, ptrdiff_t lanes,
                          float *out);
    void (*product)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t taps, ptrdiff_t blocks,
                    const float *const *rows, ptrdiff_t pitch, ptrdiff_t first, const float *b,
                    ptrdiff_t panel, float *const *out, int narrow, ptrdiff_t column, int add,
                    const convcore_epilogue *e);
    void (*gradient)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t blocks, const float *a,
                     const float *const *rows, int narrow, float *c, ptrdiff_t c_row, int add);
} convcore_bfloat16;

extern const convcore_microkernels convcore_microkernels_base;
extern const convcore_bfloat16 convcore_bfloat16_base;
#ifdef CONVCORE_HAS_AVX2
extern const convcore_microkernels convcore_microkernels_avx2;
extern const convcore_bfloat16 convcore_bfloat16_avx2;
#endif
#ifdef CONVCORE_HAS_AVX512
extern const convcore_microkernels convcore_microkernels_avx512;
extern const convcore_bfloat16 convcore_bfloat16_avx512;
#endif
#ifdef CONVCORE_HAS_AVX512_BF16
extern const convcore_bfloat16 convcore_bfloat16_avx512_bf16;
#endif

#endif
