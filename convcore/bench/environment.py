"""The environment that a benchmark's workers are given.

Variables that hold a library below what the CPU can do are read once, when the library loads.  So
they are set or removed in the copy of the environment that a child process gets, never in our own.
"""

from __future__ import annotations

from collections.abc import Mapping

ISAS = ("native", "avx512", "avx2", "base")

# What OpenBLAS, oneDNN (PyTorch's and OpenVINO's), PyTorch's own loops and convcore's want to hear.
# ONNX Runtime listens to nothing, and NumPy's loops are left as they are.  base is SSE4, the oldest
# that OpenBLAS and oneDNN have: oneDNN starts at SSE41, and SciPy's OpenBLAS takes Nehalem (SSE4.2)
# but knows no Prescott, its fallback below that.
_HELD: dict[str, dict[str, str]] = {
    "native": {},
    "avx512": {
        "CONVCORE_ISA": "avx512",
        "OPENBLAS_CORETYPE": "SkylakeX",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "ATEN_CPU_CAPABILITY": "avx512",
    },
    "avx2": {
        "CONVCORE_ISA": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
    },
    "base": {
        "CONVCORE_ISA": "base",
        "OPENBLAS_CORETYPE": "Nehalem",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "ATEN_CPU_CAPABILITY": "default",
    },
}
# Any of these left from the shell would hold one side of a comparison and not the other.
_REMOVED = (
    "CONVCORE_ISA",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Also printed, because they move threads about or change how long an idle one spins.
_PRINTED = (
    *_REMOVED,
    *_THREADS,
    "OMP_WAIT_POLICY",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT",
    "KMP_BLOCKTIME",
    "KMP_AFFINITY",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_THRESHOLD_",
    "LD_PRELOAD",
)


def worker_environment(
    found: Mapping[str, str], threads: int, isa: str = "native", keep: bool = False
) -> dict[str, str]:
    """Return a worker's environment.

    Parameters
    ----------
    found : mapping
        The environment to start from, usually ``os.environ``; only read.
    threads : int
        How many threads the worker is to compute with.
    isa : {'native', 'avx512', 'avx2', 'base'}
        Instruction set to which convcore, OpenBLAS, oneDNN and PyTorch are held; native holds none.
    keep : bool
        Leave everything as found; threads are then set by the libraries' own functions only.

    Raises
    ------
    ValueError
        An isa that is not one of the four.
    """
    if isa not in ISAS:
        raise ValueError(f"isa must be one of {', '.join(ISAS)}, got {isa!r}")
    environment = dict(found)
    if keep:
        return environment
    for name in _REMOVED:
        environment.pop(name, None)
    environment.update(_HELD[isa])
    environment.update(dict.fromkeys(_THREADS, str(threads)))
    return environment


def removed_variables(
    found: Mapping[str, str], isa: str = "native", keep: bool = False
) -> dict[str, str]:
    """Return the variables, with the values found, that workers do not get."""
    given = worker_environment(found, 1, isa, keep)
    return {name: found[name] for name in _REMOVED if name in found and name not in given}


def variables_that_matter(found: Mapping[str, str]) -> dict[str, str]:
    """Return those variables of an environment that change how fast a convolution runs."""
    return {name: found[name] for name in _PRINTED if name in found}
