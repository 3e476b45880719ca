"""What is misconfigured on a machine, what it costs, and how to mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from convcore.cli.machine import LEVELS, cpu_level

# What OpenBLAS calls its kernels, by the instructions that they use.
_KERNEL_LEVELS = {
    "katmai": "SSE4.2",
    "prescott": "SSE4.2",
    "core2": "SSE4.2",
    "nehalem": "SSE4.2",
    "barcelona": "SSE4.2",
    "sandybridge": "AVX",
    "bulldozer": "AVX",
    "piledriver": "AVX",
    "haswell": "AVX2+FMA",
    "zen": "AVX2+FMA",
    "excavator": "AVX2+FMA",
    "skylakex": "AVX-512",
    "cooperlake": "AVX-512",
    "sapphirerapids": "AVX-512",
}


@dataclass(frozen=True)
class Facts:
    """What `diagnose` looks at."""

    kernel: str
    """BLAS's kernel, as threadpoolctl calls it; empty if unknown."""
    held: bool
    """Whether BLAS's number of threads can be set."""
    openmp: int
    """Date of the OpenMP built in, 0 for none."""
    allowed: int
    """CPUs that this process may use, whatever OMP_NUM_THREADS asks for."""
    flags: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    openmp_runtimes: tuple[str, ...] = ()
    """Files of the OpenMP runtimes loaded."""


def diagnose(facts: Facts) -> list[str]:
    """Return a sentence or two for everything that is misconfigured; none if nothing is."""
    return [text for check in _CHECKS for text in check(facts)]


def _old_kernel(facts: Facts) -> Iterator[str]:
    level, cpu = _KERNEL_LEVELS.get(facts.kernel.lower()), cpu_level(facts.flags)
    if level is None or cpu is None:
        return
    steps = list(LEVELS).index(cpu) - list(LEVELS).index(level)
    if steps < 1:
        return
    cost = f"about {'half' if steps == 1 else 'a quarter or less of'} the speed of matrix products"
    text = f"BLAS runs its {facts.kernel} kernel ({level}), but this CPU has {cpu}: {cost}."
    core = facts.variables.get("OPENBLAS_CORETYPE")
    if core is not None:
        yield f"{text} OPENBLAS_CORETYPE={core} does that. Mend: unset OPENBLAS_CORETYPE"
    else:
        yield f"{text} Mend: a newer SciPy (pip install --upgrade scipy)"


def _block_size(facts: Facts) -> Iterator[str]:
    size = facts.variables.get("OPENBLAS_L2_SIZE")
    if size is not None:
        yield (
            f"OPENBLAS_L2_SIZE={size} overrides the cache size that BLAS's blocks are cut to. "
            "Mend: unset OPENBLAS_L2_SIZE"
        )


def _no_openmp(facts: Facts) -> Iterator[str]:
    if not facts.openmp:
        yield (
            "convcore was built without OpenMP: everything runs on one thread. Mend: rebuild it "
            "with a compiler that has it (GCC; on macOS libomp): "
            "pip install --force-reinstall --no-deps --no-binary convcore convcore"
        )


def _free_blas(facts: Facts) -> Iterator[str]:
    if not facts.held:
        yield (
            "BLAS's number of threads cannot be set from here: they compete with convcore's, and "
            "results may change with the number of threads. Mend: SciPy's own wheel (pip install "
            "scipy), or hold BLAS to one thread (OPENBLAS_NUM_THREADS=1, MKL_NUM_THREADS=1)"
        )


def _two_openmps(facts: Facts) -> Iterator[str]:
    if len(facts.openmp_runtimes) > 1:
        yield (
            f"{len(facts.openmp_runtimes)} OpenMP runtimes are loaded: "
            f"{', '.join(facts.openmp_runtimes)}. Each spins its own threads after work. "
            "Mend: take all packages from one place (all from pip, or all from conda)"
        )


def _too_many_threads(facts: Facts) -> Iterator[str]:
    count = facts.variables.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if count.isascii() and count.isdigit() and int(count) > facts.allowed:
        yield (
            f"OMP_NUM_THREADS={count}, but this process may use {facts.allowed} "
            f"CPU{'' if facts.allowed == 1 else 's'} (affinity or a container's quota): threads "
            f"wait for one another. Mend: export OMP_NUM_THREADS={facts.allowed}, or unset it"
        )


_CHECKS: tuple[Callable[[Facts], Iterator[str]], ...] = (
    _old_kernel,
    _block_size,
    _no_openmp,
    _free_blas,
    _two_openmps,
    _too_many_threads,
)
