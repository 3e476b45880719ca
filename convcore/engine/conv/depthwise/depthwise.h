/* Microkernels of depthwise convolutions: see depthwise.c. */
#ifndef CONVCORE_DEPTHWISE_H
#define CONVCORE_DEPTHWISE_H

#include "conv/arguments.h"

typedef struct {
    void (*outputs)(const convcore_direct *d, ptrdiff_t slice, ptrdiff_t c0, ptrdiff_t c1,
                    ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *w, float *y,
                    const convcore_epilogue *e, float *scratch);
    void (*gradient)(const convcore_direct *d, ptrdiff_t slice, ptrdiff_t c0, ptrdiff_t c1,
                     ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *gy, float *sums,
                     float *scratch);
    void (*sum_lanes)(const float *v, ptrdiff_t count, float *out);
} convcore_depthwise;

extern const convcore_depthwise convcore_depthwise_base, convcore_depthwise_avx2,
    convcore_depthwise_avx512;

#endif
