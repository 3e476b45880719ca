"""``convcore info``: versions, build, BLAS, CPU and threads, and what is misconfigured."""

from __future__ import annotations

import argparse
import os
import platform
import textwrap
from collections.abc import Iterator

from convcore.cli.diagnosis import Facts, diagnose
from convcore.cli.machine import cpu_flags, cpu_name, instruction_sets
from convcore.cli.terminal import columns, fitted

_WIDEST = 96

_VARIABLES = (
    "CONVCORE_ISA",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
)
_APIS = {True: "abi3 (Python's limited API)", False: "full API, this Python only"}
# OpenMP versions by the date in the compiler's _OPENMP macro.
_RUNTIMES = {
    0: "none",
    200805: "3.0",
    201107: "3.1",
    201307: "4.0",
    201511: "4.5",
    201811: "5.0",
    202011: "5.1",
    202111: "5.2",
}


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``info`` to the parser."""
    parser = commands.add_parser(
        "info",
        help="show versions, BLAS, OpenMP, CPU and threads, and what is misconfigured",
        description="Print versions, BLAS, OpenMP, CPU and threads, and for each "
        "misconfiguration its cost and its remedy.",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the facts and the diagnosis."""
    for name, value in _facts():
        print(fitted(f"{name:<16}{value}"))
    problems = diagnose(_diagnosed())
    print()
    print("Misconfigured:" if problems else "Nothing is misconfigured.")
    for problem in problems:
        print(_paragraph(problem))
    return 0


def _paragraph(text: str) -> str:
    width = min(columns() or _WIDEST, _WIDEST)
    indents = {"initial_indent": "  - ", "subsequent_indent": "    "}
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False, **indents)


def _facts() -> Iterator[tuple[str, str]]:
    """Yield (name, value) pairs in printing order."""
    import numpy
    import scipy

    import convcore
    from convcore.engine.runtime import _isa, cpus, memory, threads

    blas = threads.blas()
    openmp, own_pool, stable, compiler = threads.build()
    yield "convcore", convcore.__version__
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "NumPy, SciPy", f"{numpy.__version__}, {scipy.__version__}"
    yield "build", f"{_APIS[stable]}, compiled by {compiler}"
    yield "OpenMP", f"{_RUNTIMES.get(openmp, 'yes')} ({openmp})" if openmp else "none"
    yield "  waiting", _waiting(own_pool)
    yield "BLAS", f"{blas.name} {blas.version}"
    yield "  library", blas.path or "unknown"
    yield "  kernel", blas.architecture or "unknown"
    yield (
        "  threads",
        "limited to one inside parallel regions" if blas.limitable else "cannot be limited",
    )
    yield "CPU", f"{cpu_name()} ({platform.machine()})"
    yield "  instructions", " ".join(instruction_sets()) or "unknown"
    yield "  in use", f"{_isa.name()}, out of {', '.join(_isa.names())} (CONVCORE_ISA)"
    emulated = _isa.bfloat16_is_emulated()
    yield (
        "  bfloat16",
        "products as float32's, no faster"
        if emulated
        else f"products by {_isa.bfloat16_name()}, where they are allowed",
    )
    used, allowed = threads.get_num_threads(), cpus.allowed_cpus()
    yield "threads", f"{used} in use, {allowed} allowed, {_counts()}"
    cached, memory_limit = memory.get_cache_limit(), cpus.memory_bytes()
    of_all = f", of {memory_limit / 2**30:.1f} GiB allowed" if memory_limit else ""
    yield "memory", f"at most {cached / 2**30:.1f} GiB cached for reuse{of_all}"
    yield "variables", _variables()


def _waiting(own_pool: bool) -> str:
    """Say how threads wait for one another, which decides the speed on a busy machine."""
    from convcore.engine.runtime import cpus, threads

    if not own_pool:
        return "by the compiler's OpenMP runtime: on a busy machine set OMP_WAIT_POLICY=passive"
    spin = threads.spin_settings(os.environ, cpus.has_cpu_quota())
    if not spin.idle:
        return "in convcore's own pool: idle threads sleep at once"
    if spin.idle >= threads.FOREVER:
        return "in convcore's own pool: idle threads spin and never sleep"
    return f"in convcore's own pool: idle threads spin for {spin.idle / 1000:.0f} us, then sleep"


def _diagnosed() -> Facts:
    """Return the input of the diagnosis."""
    import threadpoolctl

    from convcore.engine.runtime import cpus, threads

    blas = threads.blas()
    loaded = threadpoolctl.threadpool_info()
    return Facts(
        kernel=blas.architecture or "",
        held=blas.limitable,
        openmp=threads.openmp(),
        own_pool=threads.build()[1],
        allowed=cpus.allowed_cpus(),
        flags=cpu_flags(),
        variables=os.environ,
        openmp_runtimes=tuple(d["filepath"] for d in loaded if d["user_api"] == "openmp"),
        busy=os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
        present=os.cpu_count() or 1,
    )


def _counts() -> str:
    """Return the number of CPUs of the machine, and of those in the process's affinity mask."""
    text = f"{os.cpu_count()} CPUs"
    if hasattr(os, "sched_getaffinity"):
        text += f", {len(os.sched_getaffinity(0))} by affinity"
    return text


def _variables() -> str:
    found = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    return ", ".join(found) or "none of those that matter are set"
