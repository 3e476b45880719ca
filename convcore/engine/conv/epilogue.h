/* Epilogue: bias and activation applied to a vector of outputs before it is stored. */
#ifndef CONVCORE_EPILOGUE_H
#define CONVCORE_EPILOGUE_H

#include "arguments.h"
#include "runtime/vec.h"

/* Lanes of `a` where `chosen` (the result of a comparison) is true, of `b` elsewhere. */
#if LANES > 1
#define PICK(chosen, a, b) \
    (vec)(((lane_numbers)(a) & (chosen)) | ((lane_numbers)(b) & ~(chosen)))
#else
#define PICK(chosen, a, b) ((chosen) ? (a) : (b))
#endif

/* The activation of y; NaN passes through, because every comparison with NaN is false. */
INLINE vec activated(vec y, const convcore_epilogue *e)
{
    if (e->kind == CONVCORE_CLAMP) {
        vec low = broadcast(e->low), high = broadcast(e->high);
        y = PICK(y < low, low, y);
        y = PICK(y > high, high, y);
    } else if (e->kind == CONVCORE_LEAKY) {
        y = PICK(y < broadcast(0.0f), y * broadcast(e->slope), y);
    }
    return y;
}

#endif
