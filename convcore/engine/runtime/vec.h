/* A vector of LANES floats, as wide as the instruction set that this file is compiled for.
 *
 * The arithmetic is C's own operators.  Where the compiler has no vectors (MSVC), a vector is one
 * float: the same code, slower.  Compiled once an instruction set, in conv/ and layers/.
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
typedef int lane_numbers __attribute__((vector_size(4 * LANES)));
#define ALIGNED __attribute__((aligned(64)))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline, unused))
#define MAYBE_UNUSED __attribute__((unused))
#else
typedef float vec;
typedef float loose_vec;
#define ALIGNED
#define INLINE static __forceinline
#define NOINLINE
#define MAYBE_UNUSED
#endif

/* Unrolled whole, so that arrays of vectors become registers; not where sanitizers would check every
 * copy of every access, and compile for minutes. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__)
#define UNROLLED _Pragma("GCC unroll 32")
#else
#define UNROLLED
#endif

/* Ask for the line at p, for loops that jump where the processor guesses wrong; or for one that will
 * be written.  Any address will do. */
#if defined(__GNUC__)
#define PREFETCH(p) __builtin_prefetch(p, 0, 2)
#define PREFETCH_OUTPUT(p) __builtin_prefetch(p, 1)
#else
#define PREFETCH(p) (void)(p)
#define PREFETCH_OUTPUT(p) (void)(p)
#endif

/* Keep a vector that several products share in a register: GCC would rather load it again for each. */
#if defined(__GNUC__) && defined(__x86_64__)
#define KEEP(v) __asm__("" : "+v"(v))
#elif defined(__GNUC__) && defined(__aarch64__)
#define KEEP(v) __asm__("" : "+w"(v))
#else
#define KEEP(v)
#endif

/* Before a loop none of whose turns reads what another one writes. */
#if defined(__clang__)
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define IVDEP _Pragma("GCC ivdep")
#else
#define IVDEP
#endif

INLINE ptrdiff_t min_of(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
INLINE ptrdiff_t max_of(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* LANES floats from any address. */
INLINE vec load(const float *p) { return *(const loose_vec *)p; }

INLINE void store(float *p, vec v) { *(loose_vec *)p = v; }

/* Every lane the same.  Subtracting zero, and not adding it, keeps the sign of a zero. */
INLINE vec broadcast(float x) { return x - (vec){0}; }

/* The first `count` floats, and zeros.  Not inlined: alone, the loop becomes one masked move; in the
 * middle of others, moves of single floats and a load that waits for all of them. */
static NOINLINE vec load_first(const float *p, ptrdiff_t count)
{
    ALIGNED float lanes[LANES];
    for (int i = 0, n = (int)count; i < LANES; i++) lanes[i] = i < n ? p[i] : 0;
    return load(lanes);
}

/* Copies of a constant size are moves, not calls. */
#define MOVE_IF(size)                                                    \
    if (LANES > (size) && (count & (size))) {                            \
        memcpy(to, from, (size) * sizeof(float));                        \
        to += (size), from += (size);                                    \
    }

/* The first `count` < LANES lanes.  Inlined: what is stored whole can be read again in parts. */
INLINE void store_first(float *to, vec v, ptrdiff_t count)
{
    ALIGNED float lanes[LANES];
    const float *from = lanes;
    store(lanes, v);
    MOVE_IF(8) MOVE_IF(4) MOVE_IF(2) MOVE_IF(1)
}

/* `count` floats, or a vector's where there are more. */
INLINE vec load_up_to(const float *p, ptrdiff_t count)
{
    return count < LANES ? load_first(p, count) : load(p);
}

INLINE void store_up_to(float *p, vec v, ptrdiff_t count)
{
    if (count < LANES) store_first(p, v, count);
    else store(p, v);
}

/* A list with F(half, lane) for each lane. */
#if LANES == 16
#define EACH_LANE(F, half)                                                                \
    F(half, 0), F(half, 1), F(half, 2), F(half, 3), F(half, 4), F(half, 5), F(half, 6),   \
    F(half, 7), F(half, 8), F(half, 9), F(half, 10), F(half, 11), F(half, 12),            \
    F(half, 13), F(half, 14), F(half, 15)
#elif LANES == 8
#define EACH_LANE(F, half)                                                                \
    F(half, 0), F(half, 1), F(half, 2), F(half, 3), F(half, 4), F(half, 5), F(half, 6),   \
    F(half, 7)
#elif LANES == 4
#define EACH_LANE(F, half) F(half, 0), F(half, 1), F(half, 2), F(half, 3)
#endif

/* A vector of lanes of a and b, by constant numbers: 0 to LANES - 1 are a's, the others b's. */
#if defined(__clang__)
#define CHOOSE(a, b, F, half) __builtin_shufflevector(a, b, EACH_LANE(F, half))
#elif defined(__GNUC__)
#define CHOOSE(a, b, F, half) __builtin_shuffle(a, b, (lane_numbers){EACH_LANE(F, half)})
#endif

/* Swap blocks of `half` lanes between vectors that are `half` apart. */
#define LOW_LANE(half, l) ((l) & (half) ? LANES + (l) - (half) : (l))
#define HIGH_LANE(half, l) ((l) & (half) ? LANES + (l) : (l) + (half))
#define SWAP_BLOCKS(v, half)                                 \
    UNROLLED for (int i = 0; i < LANES; i++)                 \
        if (!(i & (half))) {                                 \
            vec a = v[i], b = v[i + (half)];                 \
            v[i] = CHOOSE(a, b, LOW_LANE, half);             \
            v[i + (half)] = CHOOSE(a, b, HIGH_LANE, half);   \
        }

/* Transpose LANES vectors in place: lane i of vector j becomes lane j of vector i. */
INLINE void transpose(vec v[LANES])
{
#if LANES > 1
    SWAP_BLOCKS(v, 1)
    SWAP_BLOCKS(v, 2)
#endif
#if LANES > 4
    SWAP_BLOCKS(v, 4)
#endif
#if LANES > 8
    SWAP_BLOCKS(v, 8)
#endif
    (void)v;
}

#endif
