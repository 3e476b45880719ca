"""Which instruction set the leaf loops use: chosen once, when this module is loaded.

The best level that this build has and this processor can run; CONVCORE_ISA=base|avx2|avx512 in the
environment asks for a lower one.  Levels differ in speed, and in the last bits of a result.
"""

import os

cdef extern from *:
    """
    #include "leaves/layers.h"
    #include "leaves/leaves.h"

    typedef struct {
        const convcore_leaves *leaves;
        const convcore_layers *layers;
    } convcore_tables;

    #define CONVCORE_TABLES(level) {&convcore_leaves_##level, &convcore_layers_##level}

    /* Tables of this build that this processor can run, best last; NULL past the end. */
    static const convcore_tables *convcore_level(int i)
    {
        static const convcore_tables levels[] = {
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
        return i < count ? &levels[i] : NULL;
    }
    """
    ctypedef struct Tables "convcore_tables":
        const Leaves *leaves
        const Layers *layers

    const Tables *convcore_level(int i) noexcept nogil

# The longest filter that the leaves load in one run.
LONGEST_RUN = LONGEST

cdef const Tables *chosen = NULL


cdef const Leaves *leaves() noexcept nogil:
    return chosen.leaves


cdef const Layers *layers() noexcept nogil:
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


def levels():
    """Return the names of the levels that this build has and this processor can run, best last."""
    cdef int i = 0
    names = []
    while convcore_level(i) != NULL:
        names.append(convcore_level(i).leaves.name.decode())
        i += 1
    return names


def level():
    """Return the name of the level in use."""
    return chosen.leaves.name.decode()


def lanes():
    """Return how many floats a vector of the level in use has."""
    return chosen.leaves.lanes


def panel():
    """Return how many columns a panel of `product` has at the level in use."""
    return chosen.leaves.panel


def rows():
    """Return how many rows `product` keeps in registers at the level in use."""
    return chosen.leaves.rows


cdef int choose(asked) except -1:
    """Take the level that is asked for, or the best."""
    global chosen
    names = levels()
    if asked and asked not in names:
        raise ImportError(
            f"CONVCORE_ISA={asked}: this build on this processor has {', '.join(names)}; "
            "unset CONVCORE_ISA to take the last of them"
        )
    chosen = convcore_level(names.index(asked) if asked else len(names) - 1)
    return 0


choose(os.environ.get("CONVCORE_ISA", ""))
