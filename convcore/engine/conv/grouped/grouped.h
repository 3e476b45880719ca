/* Microkernels of grouped convolutions with few channels per group: see grouped.c. */
#ifndef CONVCORE_GROUPED_H
#define CONVCORE_GROUPED_H

#include "conv/arguments.h"

typedef struct {
    convcore_direct direct;
    ptrdiff_t groups;
    ptrdiff_t c;                 /* input channels of one group; o: output channels */
    ptrdiff_t o;
} convcore_grouped;

typedef struct {
    void (*outputs)(const convcore_grouped *g, ptrdiff_t slice, ptrdiff_t g0, ptrdiff_t g1,
                    ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *w, float *y,
                    const convcore_epilogue *e, float *scratch);
    void (*gradient)(const convcore_grouped *g, ptrdiff_t slice, ptrdiff_t g0, ptrdiff_t g1,
                     ptrdiff_t j0, ptrdiff_t j1, const float *x, const float *gy, float *sums,
                     float *scratch);
    void (*sum_lanes)(const float *v, ptrdiff_t count, float *out);
} convcore_grouped_kernels;

extern const convcore_grouped_kernels convcore_grouped_base, convcore_grouped_avx2,
    convcore_grouped_avx512;

#endif
