/* The microkernels of convolutions at one instruction set: what _isa.pyx chooses among. */
#ifndef CONVCORE_MICROKERNELS_H
#define CONVCORE_MICROKERNELS_H

#include "conv/depthwise/depthwise.h"
#include "conv/few_channels/few_channels.h"
#include "conv/grouped/grouped.h"
#include "conv/indirect/indirect.h"
#include "conv/winograd/winograd.h"

typedef struct {
    const char *name;
    ptrdiff_t lanes;             /* floats of a vector */
    ptrdiff_t panel;             /* columns of a panel of `product`: whole vectors */
    ptrdiff_t rows;              /* rows that `product` keeps in registers */
    void (*product)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t a_row,
                    ptrdiff_t a_column, const float *b, float *c, ptrdiff_t c_row, int add,
                    const float *next);
    const convcore_winograd *winograd;   /* four: see winograd.h */
    const convcore_indirect *indirect;
    const convcore_few_channels *few;
    const convcore_depthwise *depthwise;
    const convcore_grouped_kernels *grouped;
} convcore_microkernels;

extern const convcore_microkernels convcore_microkernels_base, convcore_microkernels_avx2,
    convcore_microkernels_avx512;

#endif
