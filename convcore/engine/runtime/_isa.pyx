"""Which instruction set the microkernels use: chosen once, when this module is loaded.

The best one that this build has and this processor can run; CONVCORE_ISA=base|avx2|avx512 in the
environment asks for a lower one.  They differ in speed, and in the last bits of a result.

Products in bfloat16 have two sets more, amx and avx512_bf16, which differ from the others in speed
alone.  They are taken where no instruction set is asked for: amx where Linux grants the process the
tiles' registers, else avx512_bf16 on processors of AMD's: on Intel's its instruction does half of
what float32's multiply-add does (measured: 106 and 211 GFLOP/s a core; amx 3,300).
"""

import os

cdef extern from *:
    """
    #include "layers/microkernels.h"
    #include "conv/bfloat16/bfloat16.h"
    #include "conv/microkernels.h"

    typedef struct {
        const convcore_microkernels *conv;
        const convcore_layer_microkernels *layers;
        const convcore_bfloat16 *bfloat16;
    } convcore_tables;

    #define CONVCORE_TABLES(isa)                                              \
        {&convcore_microkernels_##isa, &convcore_layer_microkernels_##isa,    \
         &convcore_bfloat16_##isa}

    /* Tables of this build that this processor can run, best last; NULL past the end. */
    static const convcore_tables *convcore_isa(int i)
    {
        static const convcore_tables tables[] = {
            CONVCORE_TABLES(base),
    #ifdef CONVCORE_HAS_AVX2
            CONVCORE_TABLES(avx2),
    #endif
    #ifdef CONVCORE_HAS_AVX512
            CONVCORE_TABLES(avx512),
    #endif
        };
        int count = 1;
    #ifdef CONVCORE_HAS_AVX2
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
            count++;
    #endif
    #ifdef CONVCORE_HAS_AVX512
        if (count == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
            count++;
    #endif
        return i < count ? &tables[i] : NULL;
    }

    #ifdef CONVCORE_HAS_AMX
    #include <cpuid.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    /* Whether the processor multiplies tiles of bfloat16, and Linux, which has to be asked once a
     * process, grants it their registers; threads and forked children have them then too. */
    static int convcore_has_tiles(void)
    {
        enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18, BF16 = 1 << 22, TILE = 1 << 24 };
        unsigned a, b, c, d;
        return __builtin_cpu_supports("avx512bf16") && __get_cpuid_count(7, 0, &a, &b, &c, &d)
            && (d & BF16) && (d & TILE)
            && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
    }
    #endif

    /* The products in bfloat16 of an instruction for them, if it pays; or NULL. */
    static const convcore_bfloat16 *convcore_pairs(void)
    {
    #ifdef CONVCORE_HAS_AMX
        static int tiles = -1;
        if (tiles < 0)
            tiles = convcore_has_tiles();
        if (tiles)
            return &convcore_bfloat16_amx;
    #endif
    #ifdef CONVCORE_HAS_AVX512_BF16
        if (__builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_is("amd"))
            return &convcore_bfloat16_avx512_bf16;
    #endif
        return NULL;
    }
    """
    ctypedef struct Tables "convcore_tables":
        const Microkernels *conv
        const LayerMicrokernels *layers
        const Bfloat16 *bfloat16

    const Tables *convcore_isa(int i) noexcept nogil
    const Bfloat16 *convcore_pairs() noexcept nogil

# The longest filter that the microkernels load in one run.
LONGEST_RUN = MAX_RUN
# The columns that a tile of Winograd's may span in contiguous memory.
STRIP = MAX_STRIP

# The most rows that the products of indirect convolutions make at a time.
TALLEST_TILE = TALLEST

# The terms of a product in bfloat16 that are added up by themselves.
BFLOAT16_TERMS = BFLOAT16_BLOCK

cdef const Tables *chosen = NULL
cdef const Bfloat16 *chosen_bfloat16 = NULL


cdef const Microkernels *microkernels() noexcept nogil:
    return chosen.conv


cdef const Bfloat16 *bfloat16() noexcept nogil:
    return chosen_bfloat16


cdef const LayerMicrokernels *layer_microkernels() noexcept nogil:
    return chosen.layers


cdef Filters filters(dict fields):
    """Return the struct of these fields; its `end` is known only with an array."""
    cdef Filters f
    cdef int i
    f.end = NULL
    f.lane, f.sum, f.first, f.run = (fields[n] for n in ("lane", "sum", "first", "run"))
    for i in range(2):
        f.line[i], f.begin[i], f.to[i] = (fields[n][i] for n in ("line", "begin", "to"))
    return f


def names():
    """Return the instruction sets that this build has and this processor can run, best last."""
    cdef int i = 0
    found = []
    while convcore_isa(i) != NULL:
        found.append(convcore_isa(i).conv.name.decode())
        i += 1
    return found


def name():
    """Return the name of the instruction set in use."""
    return chosen.conv.name.decode()


def lanes():
    """Return how many floats a vector of the instruction set in use has."""
    return chosen.conv.lanes


def bfloat16_name():
    """Return the name of the instruction set that multiplies in bfloat16."""
    return chosen_bfloat16.name.decode()


def bfloat16_words():
    """Return how many words, of 32 bits, a block of terms in bfloat16 has."""
    return chosen_bfloat16.words


def bfloat16_is_emulated():
    """Return whether products in bfloat16 are float32's, and so gain nothing."""
    return chosen_bfloat16 != convcore_pairs()


def panel():
    """Return how many columns a panel of `product` has at the instruction set in use."""
    return chosen.conv.panel


def rows():
    """Return how many rows `product` keeps in registers at the instruction set in use."""
    return chosen.conv.rows


cdef int choose(asked) except -1:
    """Take the instruction set that is asked for, or the best."""
    global chosen, chosen_bfloat16
    found = names()
    if asked and asked not in found:
        raise ImportError(
            f"CONVCORE_ISA={asked}: this build on this processor has {', '.join(found)}; "
            "unset CONVCORE_ISA to take the last of them"
        )
    chosen = convcore_isa(found.index(asked) if asked else len(found) - 1)
    chosen_bfloat16 = chosen.bfloat16
    if not asked and convcore_pairs() != NULL:
        chosen_bfloat16 = convcore_pairs()
    return 0


choose(os.environ.get("CONVCORE_ISA", ""))
