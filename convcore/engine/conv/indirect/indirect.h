/* The microkernels of products whose rows are pointers: see indirect.c. */
#ifndef CONVCORE_INDIRECT_H
#define CONVCORE_INDIRECT_H

#include "conv/arguments.h"

/* Products whose rows are pointers, and the copies around them: see indirect.c.  At most so many rows
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

extern const convcore_indirect convcore_indirect_base, convcore_indirect_avx2,
    convcore_indirect_avx512;

#endif
