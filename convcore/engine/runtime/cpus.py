"""The CPUs and the memory that this process may use: affinity, container, OMP_NUM_THREADS."""

from __future__ import annotations

import ctypes
import math
import os
import re
from collections.abc import Callable
from pathlib import Path


def cpu_limit(root: str | Path = "/") -> int:
    """Return the number of threads to start with, at least 1.

    OMP_NUM_THREADS if it is set to a positive int, else `allowed_cpus`.

    Parameters
    ----------
    root : path
        Where /proc and /sys are looked for.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdecimal() and 0 < len(asked) < 10 and int(asked) > 0:
        return int(asked)
    return allowed_cpus(root)


def allowed_cpus(root: str | Path = "/") -> int:
    """Return how many CPUs the process may use, at least 1.

    The least of the CPUs in its affinity mask and the quota of its control groups, rounded up.

    Parameters
    ----------
    root : path
        Where /proc and /sys are looked for.
    """
    cpus = len(process_affinity()) or os.cpu_count() or 1
    quota = cgroup_quota(root)
    return max(1, cpus if quota is None else min(cpus, math.ceil(quota)))


# With any of these set, an OpenMP runtime binds the thread that loads it to a single CPU.
BINDING_VARIABLES = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


def process_affinity() -> set[int]:
    """Return the CPUs that the process may use; an empty set where the system does not say.

    These are the calling thread's CPUs.  With a binding variable set, another library's OpenMP
    runtime may have bound that thread to one of them; then the CPUs of the runtime's places are
    added.
    """
    if not hasattr(os, "sched_getaffinity"):
        return set()
    cpus = os.sched_getaffinity(0)
    if any(os.environ.get(name) for name in BINDING_VARIABLES):
        cpus = cpus.union(*map(_cpus_of_places, _openmp_runtimes()))
    return cpus


def _openmp_runtimes() -> set[str]:
    """Return the paths of the OpenMP runtimes that this process has loaded."""
    maps = _text(Path("/proc/self/maps"))
    return set(re.findall(r"/\S*/lib(?:g|i)?omp\d*[^/\s]*\.so[^/\s]*$", maps, re.MULTILINE))


def _cpus_of_places(runtime: str) -> set[int]:
    """Return the CPUs of an OpenMP runtime's places (OpenMP 4.5, section 3.2.23 and following)."""
    cpus: set[int] = set()
    try:
        library = ctypes.CDLL(runtime)
        for place in range(library.omp_get_num_places()):
            numbers = (ctypes.c_int * library.omp_get_place_num_procs(place))()
            library.omp_get_place_proc_ids(place, numbers)
            cpus.update(numbers)
    except (OSError, AttributeError):  # not a runtime of OpenMP 4.5
        return set()
    return cpus


def has_cpu_quota(root: str | Path = "/") -> bool:
    """Return whether control groups limit the process to less CPU time than its CPUs have.

    Time that threads spend spinning counts against the quota.

    Parameters
    ----------
    root : path
        Where /proc and /sys are looked for.
    """
    quota = cgroup_quota(root)
    return quota is not None and quota < (len(process_affinity()) or os.cpu_count() or 1)


def cgroup_quota(root: str | Path = "/") -> float | None:
    """Return the CPUs that the process's control groups allow it, or None without a limit.

    Reads cpu.max of version 2 and cpu.cfs_quota_us of version 1, from the process's own group up to
    the root of the tree, and takes the least.

    References
    ----------
    Linux, Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files".
    """
    return _least_limit(root, "cpu", _quota_v2, _quota_v1)


def memory_bytes(root: str | Path = "/") -> int | None:
    """Return the bytes of memory that the process may use, or None where the system does not say.

    The machine's memory, or the least of memory.max (control groups of version 2) and
    memory.limit_in_bytes (version 1) if that is smaller.

    Parameters
    ----------
    root : path
        Where /proc and /sys are looked for.
    """
    limit = _least_limit(root, "memory", _memory_v2, _memory_v1)
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None if limit is None else int(limit)
    return machine if limit is None else min(machine, int(limit))


_Read = Callable[[Path], float | None]


def _least_limit(root: str | Path, controller: str, read_v2: _Read, read_v1: _Read) -> float | None:
    """Return the least limit of the process's control group and the groups above it."""
    root = Path(root)
    limits = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            tree, read = root / "sys/fs/cgroup", read_v2
        elif controller in controllers.split(","):
            tree, read = root / "sys/fs/cgroup" / controller, read_v1
        else:
            continue
        # In a container the path may be the host's; then only the tree's own root is there.
        folder = tree / group.lstrip("/")
        for level in (folder, *folder.parents):
            if level.is_relative_to(tree):
                limits.append(read(level))
    return min((limit for limit in limits if limit is not None), default=None)


def _quota_v2(folder: Path) -> float | None:
    fields = _text(folder / "cpu.max").split()
    if len(fields) != 2 or fields[0] == "max":
        return None
    return _ratio(*fields)


def _quota_v1(folder: Path) -> float | None:
    quota = _text(folder / "cpu.cfs_quota_us").strip()
    period = _text(folder / "cpu.cfs_period_us").strip()
    return _ratio(quota, period) if quota != "-1" else None


def _memory_v2(folder: Path) -> float | None:
    return _ratio(_text(folder / "memory.max").strip(), "1")


def _memory_v1(folder: Path) -> float | None:
    return _ratio(_text(folder / "memory.limit_in_bytes").strip(), "1")


def _ratio(quota: str, period: str) -> float | None:
    try:
        ratio = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return ratio if ratio > 0 else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
