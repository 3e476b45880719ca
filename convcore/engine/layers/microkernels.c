/* The microkernels of layers: compiled once an instruction set, with CONVCORE_ISA its name. */
#include "microkernels.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/few_rows.h"
#include "runtime/vec_double.h"

#define JOINED(a, b) a##b
#define TABLE(isa) JOINED(convcore_layer_microkernels_, isa)
#define TEXT(isa) QUOTED(isa)
#define QUOTED(isa) #isa

/* What is written for any T: I are integers as wide, LINE is a vector of them, LINE_NUMBERS its
 * comparisons'. */
#define T float
#define I int32_t
#define LINE vec
#define LINE_LANES LANES
#define EACH_LINE_LANE EACH_LANE
#define LINE_NUMBERS lane_numbers
#define LOAD load
#define STORE store
#define SPREAD broadcast
#define OF(name) name##_float
#define ROOT sqrtf
#define BITS uint32_t
#define SIGN 0x80000000u
#define ONE 0x3f800000u
#define MANTISSA 23
#define MAGIC 0x1.8p23f
#define LOG2_HIGH 0x1.62e4p-1f
#define LOG2_LOW 0x1.7f7d1cf79abcap-20f
#define EXP_LEAST -104.0f
#define EXP_MOST 89.0f
#define EXPM1_LEAST -80.0f
#define DECAY_LEAST -87.3f
#define HALF 64
#define POWER_OF_LESS_HALF 0x1p-64f
#include "layers/elementwise/exponential.h"
#include "layers/elementwise/elementwise.h"
#include "layers/norm/norm.h"
#include "layers/optimizers/optimizers.h"
#include "layers/softmax/softmax.h"
#include "layers/reduce/reduce.h"
#include "layers/pooling/deinterleave.h"
#include "layers/pooling/max_pool.h"
#include "layers/interpolation/separable.h"
#include "layers/optimizers/clip_grad.h"
#include "layers/norm/moments.h"
#undef ROOT
#undef T
#undef I
#undef LINE
#undef LINE_NUMBERS
#undef LOAD
#undef STORE
#undef SPREAD
#undef LINE_LANES
#undef EACH_LINE_LANE
#undef OF
#undef BITS
#undef SIGN
#undef ONE
#undef MANTISSA
#undef MAGIC
#undef LOG2_HIGH
#undef LOG2_LOW
#undef EXP_LEAST
#undef EXP_MOST
#undef EXPM1_LEAST
#undef DECAY_LEAST
#undef HALF
#undef POWER_OF_LESS_HALF

/* Few nets compute in float64: its loops are kept small, and are as fast in the mean. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic")
#endif
#define T double
#define I int64_t
#define LINE wide
#define LINE_LANES WIDE_LANES
#define EACH_LINE_LANE EACH_WIDE_LANE
#define LINE_NUMBERS wide_numbers
#define LOAD load_wide
#define STORE store_wide
#define SPREAD broadcast_wide
#define OF(name) name##_double
#define ROOT sqrt
#define BITS uint64_t
#define SIGN 0x8000000000000000u
#define ONE 0x3ff0000000000000u
#define MANTISSA 52
#define MAGIC 0x1.8p52
#define LOG2_HIGH 0x1.62e42fefa38p-1
#define LOG2_LOW 0x1.ef35793c7673p-45
#define EXP_LEAST -746.0
#define EXP_MOST 710.0
#define EXPM1_LEAST -700.0
#define DECAY_LEAST -708.3
#define HALF 512
#define POWER_OF_LESS_HALF 0x1p-512
#include "layers/elementwise/exponential.h"
#include "layers/elementwise/elementwise.h"
#include "layers/norm/norm.h"
#include "layers/optimizers/optimizers.h"
#include "layers/softmax/softmax.h"
#include "layers/reduce/reduce.h"
#include "layers/pooling/deinterleave.h"
#include "layers/pooling/max_pool.h"
#include "layers/interpolation/separable.h"
#include "layers/optimizers/clip_grad.h"
#include "layers/norm/moments.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#include "layers/elementwise/narrow.h"

#define NORM(format, type)                                                                       \
    {                                                                                           \
        moments_##format##_##type, forward_##format##_##type,                                   \
            gradient_sums_##format##_##type, gradient_##format##_##type                         \
    }

#define SOFTMAX(type)                                                                           \
    {                                                                                           \
        softmax_rows_##type, softmax_rows_gradient_##type, softmax_columns_##type,              \
            softmax_columns_gradient_##type                                                     \
    }

#define POOLING(type)                                                                           \
    {                                                                                           \
        max_pool_##type, max_pool_gradient_nhwc_##type, max_pool_gradient_nchw_##type,          \
            separable_##type                                                                    \
    }

#define BOTH(name) {name##_float, name##_double}

const convcore_layer_microkernels TABLE(CONVCORE_ISA) = {
    .name = TEXT(CONVCORE_ISA),
    .layer_norm = {{layer_norm_float, layer_norm_gradient_float},
                   {layer_norm_double, layer_norm_gradient_double}},
    .norm_nchw = {NORM(nchw, float), NORM(nchw, double)},
    .norm_nhwc = {NORM(nhwc, float), NORM(nhwc, double)},
    .ops = {
#define LOOPS(name, type) {forward_##name##_##type, gradient_##name##_##type}
#define UNARY(name, saved, params, cost, ...)                                                   \
    {#name, #saved, params, cost, {LOOPS(name, float), LOOPS(name, double)}},
#define UNARY_FLOAT(name, saved, params, cost, ...)                                             \
    {#name, #saved, params, cost, {LOOPS(name, float), {NULL, NULL}}},
#define BINARY(name, cost, value)                                                               \
    {#name, "", 0, cost, {LOOPS(name, float), LOOPS(name, double)}},
#define PAIR(name, params, cost, value)                                                         \
    {#name, "", params, cost, {{NULL, gradient_##name##_float}, {NULL, gradient_##name##_double}}},
#include "layers/elementwise/ops.h"
    },
    .steps = {
        [CONVCORE_SGD] = BOTH(sgd),
        [CONVCORE_ADAM] = BOTH(adam),
        [CONVCORE_RMSPROP] = BOTH(rmsprop),
    },
    .pooling = {POOLING(float), POOLING(double)},
    .clipping = {
        {squares_float, scale_float, clip_float},
        {squares_double, scale_double, clip_double},
    },
    .moments = BOTH(moments),
    .softmax = {SOFTMAX(float), SOFTMAX(double)},
    .sums = {{sum_nchw_float, sum_nhwc_float}, {sum_nchw_double, sum_nhwc_double}},
    .few_rows = {few_rows_plain, few_rows_transposed},
    .narrow = {widen, round_to_nearest, max_pool_narrow},
};
