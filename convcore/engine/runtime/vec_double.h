/* Vectors of doubles, and of as many floats: what sums of floats are made with. */
#ifndef CONVCORE_WIDE_H
#define CONVCORE_WIDE_H

#include "vec.h"

/* A vector of WIDE_LANES doubles, as many bytes as a vec, and as many floats, which are half a vec. */
#if LANES > 1
#define WIDE_LANES (LANES / 2)
typedef double wide __attribute__((vector_size(4 * LANES)));
typedef double loose_wide __attribute__((vector_size(4 * LANES), aligned(8), may_alias));
typedef long long wide_numbers __attribute__((vector_size(4 * LANES)));
typedef float narrow __attribute__((vector_size(2 * LANES)));
typedef float loose_narrow __attribute__((vector_size(2 * LANES), aligned(4), may_alias));
#else
#define WIDE_LANES 1
typedef double wide;
typedef double loose_wide;
typedef float narrow;
typedef float loose_narrow;
#endif

INLINE wide load_wide(const double *p) { return *(const loose_wide *)p; }

INLINE void store_wide(double *p, wide v) { *(loose_wide *)p = v; }

INLINE wide broadcast_wide(double x) { return x - (wide){0}; }

INLINE wide wide_of_double(const double *p) { return load_wide(p); }

INLINE wide wide_of_float(const float *p)
{
    narrow v = *(const loose_narrow *)p;
#if LANES > 1
    return __builtin_convertvector(v, wide);
#else
    return v;
#endif
}

/* A list with F(half, lane) for each lane. */
#if WIDE_LANES == 8
#define EACH_WIDE_LANE(F, half)                                                           \
    F(half, 0), F(half, 1), F(half, 2), F(half, 3), F(half, 4), F(half, 5), F(half, 6),   \
    F(half, 7)
#elif WIDE_LANES == 4
#define EACH_WIDE_LANE(F, half) F(half, 0), F(half, 1), F(half, 2), F(half, 3)
#elif WIDE_LANES == 2
#define EACH_WIDE_LANE(F, half) F(half, 0), F(half, 1)
#endif

/* The lanes from first to last. */
INLINE double sum_of_wide(wide v)
{
    double lanes[WIDE_LANES], sum = 0;
    store_wide(lanes, v);
    for (int i = 0; i < WIDE_LANES; i++) sum += lanes[i];
    return sum;
}

#endif
