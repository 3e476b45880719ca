/* One level's leaves: compiled once an instruction set, with CONVCORE_LEVEL its name. */
#include "leaves.h"
#include "epilogue.h"
#include "product.h"

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
};
