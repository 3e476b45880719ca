/* Microkernels of convolutions of few input channels: see few_channels.c. */
#ifndef CONVCORE_FEW_CHANNELS_H
#define CONVCORE_FEW_CHANNELS_H

#include "conv/arguments.h"

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
 * their gradients), _nhwc for channels_last ones. */
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

extern const convcore_few_channels convcore_few_channels_base, convcore_few_channels_avx2,
    convcore_few_channels_avx512;

#endif
