"""Thread count of the engine, how its threads wait, and BLAS held to one thread inside regions.

The engine's threads call BLAS each for itself, so BLAS must run on the calling thread alone.
The first region that calls BLAS saves the thread count of the BLAS that SciPy links and sets 1;
the last to end restores it, also after an error.  Meanwhile SciPy's BLAS runs on one thread in
other Python threads too, and os.fork waits.

The library is found once, at the first such region and not at import; from then on the limit is
set and restored through the addresses of its two functions.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from convcore.engine.geometry import shown
from convcore.engine.integers import as_int
from convcore.engine.runtime import _threads
from convcore.engine.runtime.cpus import (
    BINDING_VARIABLES,
    cpu_limit,
    has_cpu_quota,
    process_affinity,
)

# A region of fewer multiply-adds than this runs on the calling thread: 1e6 of them take some 10 us,
# and waking a team that sleeps takes longer.  Of one that is awake 3e6 cost up to 1.6 times the
# time, and 3e5 saves at most 1.4 times:
# benchmarks/sweep.py --busy --threads 2 --constant engine.runtime.threads.LEAST_PARALLEL_WORK
# --values 300000,3000000
LEAST_PARALLEL_WORK = 1e6

# How long threads spin before they sleep, in ns: a worker for the next region, a caller for its
# workers. A sleeping thread takes 30 to 60 us to wake, and most layers follow one another within
# 300 us; docs/howto/shared_machines.rst has the sweep.
IDLE_SPIN = 300_000
JOIN_SPIN = 50_000
GOMP_SPIN = 10  # ns: about what libgomp takes to count one of GOMP_SPINCOUNT
FOREVER = 2**62

# (getter, setter) as each library names them; {} is where builds put a prefix or a suffix.
_SETTERS = (
    ("{}openblas_get_num_threads{}", "{}openblas_set_num_threads{}"),
    ("{}MKL_Get_Max_Threads{}", "{}MKL_Set_Num_Threads{}"),
    ("{}bli_thread_get_num_threads{}", "{}bli_thread_set_num_threads{}"),
    ("{}flexiblas_get_num_threads{}", "{}flexiblas_set_num_threads{}"),
)
_AFFIXES = [(prefix, suffix) for prefix in ("", "scipy_") for suffix in ("", "64_", "_64", "64__")]


class BlasInfo(NamedTuple):
    """The BLAS that SciPy links, as it was loaded.

    ``architecture`` is the kernel that it chose for this CPU; ``limitable`` tells whether its
    threads can be limited, without which neither bits nor the number of threads are promised.
    """

    name: str
    version: str
    architecture: str
    path: str
    limitable: bool


# Kernels keep up to 16 KB on their stack, and BLAS has its own share: at 32 KB threads overflowed.
LEAST_STACK = 128 << 10
_UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def check_stack(variables: Mapping[str, str]) -> None:
    """Raise ImportError where a variable gives OpenMP's threads too small a stack.

    There is no later place for it: a thread that overflows its stack ends the process.
    """
    for name in ("OMP_STACKSIZE", "GOMP_STACKSIZE"):
        found = re.fullmatch(r"\s*(\d+)\s*([BKMG]?)\s*", variables.get(name, ""), re.IGNORECASE)
        if found and int(found[1]) * _UNITS[found[2].upper() or "K"] < LEAST_STACK:
            raise ImportError(
                f"{name}={variables[name]} gives threads too small a stack for convcore's kernels: "
                f"set it to {LEAST_STACK >> 10}K or more, or unset it"
            )


if "OMP_STACKSIZE" in os.environ or "GOMP_STACKSIZE" in os.environ:
    check_stack(os.environ)


class Spin(NamedTuple):
    """How long threads spin, in ns, and whether signs of a busy machine stop it for a while."""

    idle: int
    join: int
    is_adaptive: bool


def spin_settings(variables: Mapping[str, str], has_quota: bool) -> Spin:
    """Return how threads wait: as the user's OpenMP variables say, else for a short time.

    GOMP_SPINCOUNT has precedence over OMP_WAIT_POLICY, and that over KMP_BLOCKTIME (in ms, or with
    a unit). They mean what they mean for OpenMP runtimes; invalid values are ignored. With a CPU
    quota threads do not spin, because waiting would count against the quota.

    Parameters
    ----------
    variables : mapping of str to str
        The environment.
    has_quota : bool
        Whether a control group allows the process less than its CPUs.
    """

    def value(name: str) -> str:
        return variables.get(name, "").strip().lower()

    time = _spin_time(value("GOMP_SPINCOUNT"), {"": GOMP_SPIN})
    if time is None:
        time = {"active": FOREVER, "passive": 0}.get(value("OMP_WAIT_POLICY"))
    if time is None:
        units = {"us": 10**3, "ms": 10**6, "s": 10**9}
        time = _spin_time(value("KMP_BLOCKTIME"), {"": units["ms"], **units})
    if time is not None:
        return Spin(time, time, False)
    return Spin(0, 0, False) if has_quota else Spin(IDLE_SPIN, JOIN_SPIN, True)


def _spin_time(text: str, units: Mapping[str, int]) -> int | None:
    """Return the ns of a number with a unit, or of 'infinite'; None if the text is neither."""
    if text in ("infinite", "infinity"):
        return FOREVER
    parts = re.fullmatch(r"([0-9]{1,30})\s*([a-z]*)", text)
    if parts is None or parts[2] not in units:
        return None
    return min(int(parts[1]) * units[parts[2]], FOREVER)


def set_num_threads(n: int) -> None:
    """Set the most threads that one call of the engine may use.

    Results do not depend on it.  More than 64 are taken as 64.  Calls from several Python threads
    share that number: a call gets the threads that the others leave, and always its own.

    Raises
    ------
    TypeError, ValueError
        n is no int, or below 1.

    Examples
    --------
    >>> import convcore
    >>> before = convcore.get_num_threads()
    >>> convcore.set_num_threads(1)
    >>> convcore.get_num_threads()
    1
    >>> convcore.set_num_threads(before)
    """
    try:
        n = as_int(n)
    except TypeError:
        raise TypeError(f"n must be an int, got {shown(n)}") from None
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    _threads.set_limit(n, LEAST_PARALLEL_WORK)


def get_num_threads() -> int:
    """Return the most threads that one call of the engine may use.

    At first that is OMP_NUM_THREADS if it is set, else the CPUs that this process may use: its
    affinity and its container's quota, whichever is less.  A forked child has the same number and
    starts threads of its own; where the compiler's OpenMP runtime is used (not gcc on Linux), it
    has 1 after parallel work, and so has a build without OpenMP.
    """
    return _threads.get_limit()


def openmp() -> int:
    """Return the date of the OpenMP standard that the kernels were built with, 0 for none."""
    return _threads.build()[0]


def build() -> tuple[int, bool, bool, str]:
    """Return (OpenMP's date or 0, has its own pool of threads, stable ABI, the C compiler)."""
    return _threads.build()


def blas() -> BlasInfo:
    """Return what is known of the BLAS that SciPy links; finds it if it was not found yet."""
    return _find()[0]


@functools.cache
def _find() -> tuple[BlasInfo, int, int]:
    """Return (info, address of the getter, address of the setter) of SciPy's BLAS.

    Raises
    ------
    RuntimeError
        The files of the search cannot be opened; the next call searches again.
    """
    try:
        from threadpoolctl import ThreadpoolController  # 10 ms that no import should pay

        found = [
            library.info() for library in ThreadpoolController().lib_controllers
            if library.user_api == "blas"
        ]  # fmt: skip
    except OSError as error:
        raise RuntimeError(
            f"the BLAS library, which is searched for at its first use, was not found: {error}. "
            "A matrix product made earlier, while files can be opened, finds it"
        ) from error
    info = max(found, key=lambda info: _belongs_to_scipy(info["filepath"]), default=None)
    if info is None or not _belongs_to_scipy(info["filepath"]):
        # Only NumPy's own copy is there; what SciPy calls is hidden, and nothing is promised of it.
        return BlasInfo("unknown", "", "", "", False), 0, 0
    getter, setter = _functions(info["filepath"])
    blas_info = BlasInfo(
        name=info["internal_api"],
        version=str(info.get("version") or ""),
        architecture=str(info.get("architecture") or ""),
        path=info["filepath"],
        limitable=bool(setter),
    )
    return blas_info, getter, setter


def _belongs_to_scipy(path: str) -> int:
    """Rank a library: SciPy's own copy, then one that several share, then NumPy's own copy."""
    folders = [part.lower() for part in Path(path).parts[-4:-1]]
    if any(part.startswith("scipy") for part in folders):
        return 2
    return 0 if any(part.startswith("numpy") for part in folders) else 1


def _functions(path: str) -> tuple[int, int]:
    """Return the addresses of a BLAS library's getter and setter, (0, 0) if it has none."""
    library: Any = ctypes.CDLL(path)
    for getter, setter in _SETTERS:
        for affixes in _AFFIXES:
            try:
                get, set_ = library[getter.format(*affixes)], library[setter.format(*affixes)]
            except AttributeError:
                continue
            return _address(get), _address(set_)
    return 0, 0


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _set_found_blas() -> None:
    _, getter, setter = _find()
    _threads.set_blas(getter, setter)


_threads.set_limit(cpu_limit(), LEAST_PARALLEL_WORK)
_threads.set_spin(*spin_settings(os.environ, has_cpu_quota()))
if any(os.environ.get(name) for name in BINDING_VARIABLES):
    _threads.set_processors(sorted(process_affinity()))
_threads.set_blas_finder(_set_found_blas)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_threads.before_fork,
        after_in_parent=_threads.after_fork_in_parent,
        after_in_child=_threads.after_fork_in_child,
    )
