/* The leaf loops of one instruction set: what _isa.pyx chooses among, and the other kernels call.
 *
 * A leaf is a static function on plain pointers: no threads, no allocation, nothing that can fail.
 * Sizes and strides are in floats.
 */
#ifndef CONVCORE_LEAVES_H
#define CONVCORE_LEAVES_H

#include <stddef.h>

/* What follows a convolution, channel by channel: add the bias, then an activation. */
enum { CONVCORE_PLAIN, CONVCORE_CLAMP, CONVCORE_LEAKY };

typedef struct {
    const float *bias;           /* a float a channel, or NULL */
    int kind;                    /* CONVCORE_CLAMP to [low, high]; CONVCORE_LEAKY: y < 0 by slope */
    float low;
    float high;
    float slope;
} convcore_epilogue;

typedef struct {
    const char *name;
    ptrdiff_t lanes;             /* floats of a vector */
    ptrdiff_t panel;             /* columns of a panel of `product`: whole vectors */
    ptrdiff_t rows;              /* rows that `product` keeps in registers */
    void (*product)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t a_row,
                    ptrdiff_t a_column, const float *b, float *c, ptrdiff_t c_row, int add);
} convcore_leaves;

extern const convcore_leaves convcore_leaves_base;
#ifdef CONVCORE_HAS_AVX2
extern const convcore_leaves convcore_leaves_avx2;
#endif
#ifdef CONVCORE_HAS_AVX512
extern const convcore_leaves convcore_leaves_avx512;
#endif

#endif
