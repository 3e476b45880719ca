/* The tables of all algorithms at one instruction set, and the product that several of them use. */
#include "microkernels.h"
#include "packed_gemm.h"

#define TEXT(isa) QUOTED(isa)
#define QUOTED(isa) #isa

const convcore_microkernels CONVCORE_TABLE(convcore_microkernels) = {
    .name = TEXT(CONVCORE_ISA),
    .lanes = LANES,
    .panel = PANEL,
    .rows = ROWS,
    .product = product,
    .winograd = CONVCORE_TABLE(convcore_winograd),
    .indirect = &CONVCORE_TABLE(convcore_indirect),
    .few = &CONVCORE_TABLE(convcore_few_channels),
    .depthwise = &CONVCORE_TABLE(convcore_depthwise),
    .grouped = &CONVCORE_TABLE(convcore_grouped),
};
