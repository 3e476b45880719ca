"""Diagnosis of misconfigured machines: each problem, its cost and its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from convcore._errors import nearest
from convcore.cli.machine import LEVELS, cpu_level

# OpenBLAS's names of its kernels, by the newest instruction set that they use.
_KERNELS = {
    "SSE4.2": ("katmai", "prescott", "core2", "nehalem", "barcelona"),
    "AVX": ("sandybridge", "bulldozer", "piledriver"),
    "AVX2+FMA": ("haswell", "zen", "excavator"),
    "AVX-512": ("skylakex", "cooperlake", "sapphirerapids"),
}
_KERNEL_LEVELS = {kernel: level for level, kernels in _KERNELS.items() for kernel in kernels}


@dataclass(frozen=True)
class Facts:
    """The input of `diagnose`."""

    kernel: str
    """Name of the BLAS kernel, as in threadpoolctl; empty if unknown."""
    held: bool
    """Whether the number of BLAS threads can be set."""
    openmp: int
    """Version date of the OpenMP that convcore was compiled with, 0 for none."""
    allowed: int
    """Number of CPUs that this process may use, regardless of OMP_NUM_THREADS."""
    flags: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    own_pool: bool = False
    """Whether the threads are of convcore's own pool, where they sleep after a short spin."""
    openmp_runtimes: tuple[str, ...] = ()
    """Files of the loaded OpenMP runtimes."""
    busy: float = 0.0
    """Number of CPUs that programs kept busy during the last minute, this one included."""
    present: int = 1
    """Number of CPUs of the machine."""


def diagnose(facts: Facts) -> list[str]:
    """Return one text for each problem; an empty list if nothing is misconfigured."""
    return [text for check in _CHECKS for text in check(facts)]


def _old_kernel(facts: Facts) -> Iterator[str]:
    level, cpu = _KERNEL_LEVELS.get(facts.kernel.lower()), cpu_level(facts.flags)
    if level is None or cpu is None:
        return
    steps = list(LEVELS).index(cpu) - list(LEVELS).index(level)
    if steps < 1:
        return
    cost = f"about {'half' if steps == 1 else 'a quarter or less of'} the speed of matrix products"
    text = f"BLAS uses its {facts.kernel} kernel ({level}), but this CPU has {cpu}: {cost}."
    core = facts.variables.get("OPENBLAS_CORETYPE")
    if core is not None:
        yield f"{text} The cause is OPENBLAS_CORETYPE={core}. Mend: unset OPENBLAS_CORETYPE"
    else:
        yield f"{text} Mend: install a newer SciPy (pip install --upgrade scipy)"


def _block_size(facts: Facts) -> Iterator[str]:
    size = facts.variables.get("OPENBLAS_L2_SIZE")
    if size is not None:
        yield (
            f"OPENBLAS_L2_SIZE={size} overrides the cache size for which BLAS chooses its blocks. "
            "Mend: unset OPENBLAS_L2_SIZE"
        )


def _no_openmp(facts: Facts) -> Iterator[str]:
    if not facts.openmp:
        yield (
            "convcore was built without OpenMP: everything runs on one thread. Mend: rebuild it "
            "with a compiler that supports OpenMP (GCC; on macOS libomp): "
            "pip install --force-reinstall --no-deps --no-binary convcore convcore"
        )


def _free_blas(facts: Facts) -> Iterator[str]:
    if not facts.held:
        yield (
            "The number of BLAS threads cannot be set: they compete with convcore's, and results "
            "may depend on the number of threads. Mend: install SciPy's own wheel (pip install "
            "scipy), or limit BLAS to one thread (OPENBLAS_NUM_THREADS=1, MKL_NUM_THREADS=1)"
        )


def _two_openmps(facts: Facts) -> Iterator[str]:
    if len(facts.openmp_runtimes) > 1:
        yield (
            f"{len(facts.openmp_runtimes)} OpenMP runtimes are loaded: "
            f"{', '.join(facts.openmp_runtimes)}. The idle threads of each keep spinning. "
            "Mend: install all packages from one source (all from pip, or all from conda)"
        )


def _number_of_threads(facts: Facts) -> Iterator[str]:
    count = facts.variables.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if not count:
        return
    if not count.isascii() or not count.isdigit() or int(count) < 1:
        yield (
            f"OMP_NUM_THREADS={count} is no number of threads, and is not followed. Mend: export "
            f"OMP_NUM_THREADS={facts.allowed}, or unset it"
        )
    elif int(count) > facts.allowed:
        yield (
            f"OMP_NUM_THREADS={count}, but this process may use {facts.allowed} "
            f"CPU{'' if facts.allowed == 1 else 's'} (affinity or a container's quota), which the "
            f"threads have to share. Mend: export OMP_NUM_THREADS={facts.allowed}, or unset it"
        )


def _busy_machine(facts: Facts) -> Iterator[str]:
    variables = facts.variables
    policy = variables.get("OMP_WAIT_POLICY", "").strip().lower()
    sleeps = policy == "passive" or (facts.own_pool and policy != "active")
    if facts.busy < facts.present or sleeps or variables.get("OMP_NUM_THREADS") == "1":
        return
    yield (
        f"Programs kept {facts.busy:.1f} CPUs busy during the last minute, of {facts.present} that "
        "there are: a thread that waits for another spins on a CPU that the other needs, and small "
        "layers may take many times as long. Mend: export OMP_WAIT_POLICY=passive, or "
        "OMP_NUM_THREADS=1 for each of several processes"
    )


# Read when convcore is imported, and those of setup.py when it is built.
_PREFIX, _OWN = "CONVCORE_", ("ISA", "OPENMP", "LIMITED_API", "DEBUG")


def _unknown_variables(facts: Facts) -> Iterator[str]:
    for name in facts.variables:
        if not name.startswith(_PREFIX) or name.removeprefix(_PREFIX) in _OWN:
            continue
        meant = nearest(name.removeprefix(_PREFIX), _OWN, 0.6)
        known = [_PREFIX + one for one in ([meant] if meant else _OWN)]
        mend = f"did you mean {known[0]}?" if meant else f"unset it; there is {', '.join(known)}"
        if "THREADS" in name:
            mend = "the number of threads is OMP_NUM_THREADS"
        yield f"Nothing reads the variable {name}. Mend: {mend}"


_CHECKS: tuple[Callable[[Facts], Iterator[str]], ...] = (
    _old_kernel,
    _block_size,
    _no_openmp,
    _free_blas,
    _two_openmps,
    _number_of_threads,
    _busy_machine,
    _unknown_variables,
)
