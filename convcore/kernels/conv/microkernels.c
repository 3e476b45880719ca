/* The microkernels of one instruction set: compiled once for each, with CONVCORE_ISA its name. */
#include "microkernels.h"
#include "depthwise.h"
#include "epilogue.h"
#include "few_channels.h"
#include "grouped.h"
#include "indirect.h"
#include "packed_gemm.h"

#define M 2
#define R 3
#include "winograd.h"
#undef M
#define M 4
#include "winograd.h"
#undef M
#undef R
#define M 3
#define R 2
#include "winograd.h"
#undef M
#undef R
#define M 2
#define R 5
#include "winograd.h"
#undef M
#undef R

#define JOINED(a, b) a##b
#define TABLE(isa) JOINED(convcore_microkernels_, isa)
#define TEXT(isa) QUOTED(isa)
#define QUOTED(isa) #isa

#define WINOGRAD(m, r)                                                                      \
    {                                                                                       \
        m, r, (m + r - 1) * (m + r - 1), winograd_data_##m##_##r,                           \
            winograd_gradients_##m##_##r, winograd_outputs_##m##_##r,                       \
            winograd_weights_##m##_##r, winograd_weight_sums_##m##_##r                      \
    }

const convcore_microkernels TABLE(CONVCORE_ISA) = {
    .name = TEXT(CONVCORE_ISA),
    .lanes = LANES,
    .panel = PANEL,
    .rows = ROWS,
    .product = product,
    .indirect = {indirect_product, indirect_gradient, nhwc_of_nchw, nchw_of_nhwc,
                 rows_of_bfloat16, bfloat16_of_rows, rows_of_lanes},
    .winograd = {WINOGRAD(2, 3), WINOGRAD(4, 3), WINOGRAD(3, 2), WINOGRAD(2, 5)},
    .few = {
        FEW_ROWS, FEW_PAIR * LANES, FEW_VECTORS * LANES, few_pack, few_interleave,
        few_forward_nchw, few_forward_nhwc, few_input, few_weight,
    },
    .depthwise = depthwise,
    .depthwise_gradient = depthwise_gradient,
    .grouped = grouped,
    .grouped_gradient = grouped_gradient,
    .sum_lanes = sum_lanes,
};
