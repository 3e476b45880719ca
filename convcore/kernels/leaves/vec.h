/* A vector of LANES floats, as wide as the instruction set that this file is compiled for.
 *
 * The arithmetic is C's own operators.  Where the compiler has no vectors (MSVC), a vector is one
 * float: the same code, slower.  Every file of this folder is compiled once a level, by level.c.
 */
#ifndef CONVCORE_VEC_H
#define CONVCORE_VEC_H

#include <stddef.h>
#include <string.h>

#if !defined(__GNUC__)
#define LANES 1
#elif defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

/* AVX-512 and 64-bit Arm have 32 vector registers, other processors 16. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define REGISTERS 32
#else
#define REGISTERS 16
#endif

#if defined(__GNUC__)
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float loose_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define ALIGNED __attribute__((aligned(64)))
#define INLINE static inline __attribute__((always_inline))
#else
typedef float vec;
typedef float loose_vec;
#define ALIGNED
#define INLINE static __forceinline
#endif

/* Unrolled whole, so that arrays of vectors become registers. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLLED _Pragma("GCC unroll 32")
#else
#define UNROLLED
#endif

/* LANES floats from any address. */
INLINE vec load(const float *p) { return *(const loose_vec *)p; }

INLINE void store(float *p, vec v) { *(loose_vec *)p = v; }

/* Every lane the same.  Subtracting zero, and not adding it, keeps the sign of a zero. */
INLINE vec broadcast(float x) { return x - (vec){0}; }

/* The first `count` floats, and zeros. */
INLINE vec load_first(const float *p, ptrdiff_t count)
{
    ALIGNED float lanes[LANES] = {0};
    memcpy(lanes, p, (size_t)count * sizeof(float));
    return load(lanes);
}

INLINE void store_first(float *p, vec v, ptrdiff_t count)
{
    ALIGNED float lanes[LANES];
    store(lanes, v);
    memcpy(p, lanes, (size_t)count * sizeof(float));
}

#endif
