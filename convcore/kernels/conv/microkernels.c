/* One level's leaves: compiled once an instruction set, with CONVCORE_ISA its name. */
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
#define TABLE(level) JOINED(convcore_microkernels_, level)
#define TEXT(level) QUOTED(level)
#define QUOTED(level) #level

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
    .indirect = {indirect_product, indirect_gradient, rows_of_planes, planes_of_rows,
                 rows_of_lanes},
    .winograd = {WINOGRAD(2, 3), WINOGRAD(4, 3), WINOGRAD(3, 2), WINOGRAD(2, 5)},
    .few = {
        FEW_ROWS, FEW_PAIR * LANES, FEW_VECTORS * LANES, few_stage, few_interleave,
        few_forward_planes, few_forward_pixels, few_input, few_weight,
    },
    .depthwise = depthwise,
    .depthwise_gradient = depthwise_gradient,
    .grouped = grouped,
    .grouped_gradient = grouped_gradient,
    .sum_lanes = sum_lanes,
};
