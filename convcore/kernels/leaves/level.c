/* One level's leaves: compiled once an instruction set, with CONVCORE_LEVEL its name. */
#include "leaves.h"
#include "epilogue.h"
#include "product.h"

#define M 2
#include "winograd.h"
#undef M
#define M 4
#include "winograd.h"
#undef M

#define JOINED(a, b) a##b
#define TABLE(level) JOINED(convcore_leaves_, level)
#define TEXT(level) QUOTED(level)
#define QUOTED(level) #level

const convcore_leaves TABLE(CONVCORE_LEVEL) = {
    .name = TEXT(CONVCORE_LEVEL),
    .lanes = LANES,
    .panel = PANEL,
    .rows = ROWS,
    .product = product,
    .winograd = {
        {2, 16, winograd_data_2, winograd_gradients_2, winograd_outputs_2, winograd_weights_2,
         winograd_weight_sums_2},
        {4, 36, winograd_data_4, winograd_gradients_4, winograd_outputs_4, winograd_weights_4,
         winograd_weight_sums_4},
    },
};
