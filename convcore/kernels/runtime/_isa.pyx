"""Which instruction set the microkernels use: chosen once, when this module is loaded.

The best one that this build has and this processor can run; CONVCORE_ISA=base|avx2|avx512 in the
environment asks for a lower one.  They differ in speed, and in the last bits of a result.
"""

import os

cdef extern from *:
    """
    #include "layers/microkernels.h"
    #include "conv/microkernels.h"

    typedef struct {
        const convcore_microkernels *conv;
        const convcore_layer_microkernels *layers;
    } convcore_tables;

    #define CONVCORE_TABLES(isa) {&convcore_microkernels_##isa, &convcore_layer_microkernels_##isa}

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
    """
    ctypedef struct Tables "convcore_tables":
        const Microkernels *conv
        const LayerMicrokernels *layers

    const Tables *convcore_isa(int i) noexcept nogil

# The longest filter that the microkernels load in one run.
LONGEST_RUN = LONGEST
# The columns that a tile of Winograd's may span in contiguous memory.
STRIP = MOST_STRIP

cdef const Tables *chosen = NULL


cdef const Microkernels *microkernels() noexcept nogil:
    return chosen.conv


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


def panel():
    """Return how many columns a panel of `product` has at the instruction set in use."""
    return chosen.conv.panel


def rows():
    """Return how many rows `product` keeps in registers at the instruction set in use."""
    return chosen.conv.rows


cdef int choose(asked) except -1:
    """Take the instruction set that is asked for, or the best."""
    global chosen
    found = names()
    if asked and asked not in found:
        raise ImportError(
            f"CONVCORE_ISA={asked}: this build on this processor has {', '.join(found)}; "
            "unset CONVCORE_ISA to take the last of them"
        )
    chosen = convcore_isa(found.index(asked) if asked else len(found) - 1)
    return 0


choose(os.environ.get("CONVCORE_ISA", ""))
