/* bfloat16 in memory, float32 in registers: loads widen, stores round to nearest, ties to even.
 *
 * An array of floats may be one of bfloat16 behind the same pointer; `narrow`, a constant wherever
 * these are inlined, tells which.  Strides and places are in elements of either.
 */
#ifndef CONVCORE_BFLOAT16_MEMORY_H
#define CONVCORE_BFLOAT16_MEMORY_H

#include "vec.h"

typedef unsigned short bfloat16;

#if LANES > 1
typedef unsigned bits __attribute__((vector_size(4 * LANES)));
typedef unsigned short upper_bits __attribute__((vector_size(2 * LANES)));
typedef unsigned short loose_upper_bits
    __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
#define SELECT(chosen, a, b) (((a) & (bits)(chosen)) | ((b) & ~(bits)(chosen)))
#define CONVERTED(value, type) __builtin_convertvector(value, type)
#else
typedef unsigned bits;
typedef unsigned short upper_bits;
typedef unsigned short loose_upper_bits;
#define SELECT(chosen, a, b) ((chosen) ? (a) : (b))
#define CONVERTED(value, type) ((type)(value))
#endif

INLINE bits bits_of(vec v)
{
    bits u;
    memcpy(&u, &v, sizeof u);
    return u;
}

INLINE vec vec_of(bits u)
{
    vec v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* Where element i of an array is. */
INLINE const void *element(const int narrow, const void *p, ptrdiff_t i)
{
    return narrow ? (const void *)((const bfloat16 *)p + i) : (const void *)((const float *)p + i);
}

static NOINLINE vec widen_first(const bfloat16 *p, ptrdiff_t count)
{
    ALIGNED unsigned lanes[LANES];
    vec v;
    for (int i = 0, n = (int)count; i < LANES; i++) lanes[i] = i < n ? (unsigned)p[i] << 16 : 0;
    memcpy(&v, lanes, sizeof v);
    return v;
}

/* `count` elements from the i-th on, filled up with zeros, or a vector's where there are more. */
INLINE vec load_elements(const int narrow, const void *p, ptrdiff_t i, ptrdiff_t count)
{
    const void *from = element(narrow, p, i);
    if (!narrow) return load_up_to((const float *)from, count);
    if (count < LANES) return widen_first((const bfloat16 *)from, count);
    return vec_of(CONVERTED(*(const loose_upper_bits *)from, bits) << 16);
}

/* The upper halves of the floats, rounded; a NaN stays one. */
INLINE upper_bits rounded_halves(vec v)
{
    const bits u = bits_of(v), nearest = u + 0x7fffu + ((u >> 16) & 1u);
    const bits all = SELECT((u & 0x7fffffffu) > 0x7f800000u, u | 0x00400000u, nearest);
    return CONVERTED(all >> 16, upper_bits);
}

static NOINLINE void store_first_halves(bfloat16 *p, vec v, ptrdiff_t count)
{
    bfloat16 lanes[LANES];
    const upper_bits halves = rounded_halves(v);
    memcpy(lanes, &halves, sizeof lanes);
    for (int i = 0, n = (int)count; i < LANES && i < n; i++) p[i] = lanes[i];
}

/* `count` lanes, or all, to the elements from the i-th on. */
INLINE void store_elements(const int narrow, void *p, ptrdiff_t i, vec v, ptrdiff_t count)
{
    if (!narrow)
        store_up_to((float *)p + i, v, count);
    else if (count < LANES)
        store_first_halves((bfloat16 *)p + i, v, count);
    else
        *(loose_upper_bits *)((bfloat16 *)p + i) = rounded_halves(v);
}

#endif
