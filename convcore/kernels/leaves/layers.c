/* One level's leaves of layers: compiled once an instruction set, with CONVCORE_LEVEL its name. */
#include "layers.h"
#include "vec.h"

#define JOINED(a, b) a##b
#define TABLE(level) JOINED(convcore_layers_, level)
#define TEXT(level) QUOTED(level)
#define QUOTED(level) #level

#define T float
#define OF(name) name##_float
#include "elementwise.h"
#undef T
#undef OF
#define T double
#define OF(name) name##_double
#include "elementwise.h"
#undef T
#undef OF

#define MAP(name)                                                                               \
    {                                                                                           \
        {name##_float, name##_gradient_float}, {name##_double, name##_gradient_double}          \
    }

const convcore_layers TABLE(CONVCORE_LEVEL) = {
    .name = TEXT(CONVCORE_LEVEL),
    .maps = {
        [CONVCORE_RELU] = MAP(relu),
    },
};
