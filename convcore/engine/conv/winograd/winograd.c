/* Winograd's transforms for four sizes of tiles: F(2, 3), F(4, 3), F(3, 2), F(2, 5) on both axes. */
#define M 2
#define R 3
#include "winograd_2d.h"
#undef M
#define M 4
#include "winograd_2d.h"
#undef M
#undef R
#define M 3
#define R 2
#include "winograd_2d.h"
#undef M
#undef R
#define M 2
#define R 5
#include "winograd_2d.h"
#undef M
#undef R

#define SIZE(m, r)                                                                          \
    {                                                                                       \
        m, r, (m + r - 1) * (m + r - 1), winograd_data_##m##_##r,                           \
            winograd_gradients_##m##_##r, winograd_outputs_##m##_##r,                       \
            winograd_weights_##m##_##r, winograd_weight_sums_##m##_##r                      \
    }

const convcore_winograd CONVCORE_TABLE(convcore_winograd)[4] = {
    SIZE(2, 3), SIZE(4, 3), SIZE(3, 2), SIZE(2, 5),
};
