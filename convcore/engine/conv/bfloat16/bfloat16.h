/* Microkernels for bfloat16 products with float32 sums: see bfloat16.c. */
#ifndef CONVCORE_BFLOAT16_H
#define CONVCORE_BFLOAT16_H

#include "conv/arguments.h"

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

extern const convcore_bfloat16 convcore_bfloat16_base, convcore_bfloat16_avx2, convcore_bfloat16_avx512,
    convcore_bfloat16_avx512_bf16, convcore_bfloat16_amx;

#endif
