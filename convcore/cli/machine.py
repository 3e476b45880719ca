"""CPU information: name, instruction sets and load; the machine's memory."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

# Instruction sets of x86, oldest first, and the CPU flags that each needs; AVX-512 as the kernels
# are built for it.
LEVELS = {
    "SSE4.2": {"sse4_2"},
    "AVX": {"avx"},
    "AVX2+FMA": {"avx2", "fma"},
    "AVX-512": {"avx512f", "avx512dq", "avx512bw", "avx512vl"},
}
# What computes in bfloat16: x86's two and arm64's.
BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
_SHOWN = ("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl",
          "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "asimdhp", "sve", "sve2")  # fmt: skip


@functools.cache
def _cpuinfo() -> dict[str, str]:
    """Return the first CPU's entries of /proc/cpuinfo; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def cpu_name() -> str:
    """Return the CPU's name, or its architecture if the name is unknown."""
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def cpu_flags() -> frozenset[str]:
    """Return the CPU's flags as Linux spells them; empty where they cannot be read."""
    info = _cpuinfo()
    return frozenset(info.get("flags", info.get("Features", "")).split())


def load_average() -> float | None:
    """Return the load average of the last minute; None where it is not known."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def instruction_sets() -> list[str]:
    """Return the CPU flags that matter to convolutions."""
    flags = cpu_flags()
    return [name for name in _SHOWN if name in flags]


def cpu_level(flags: frozenset[str]) -> str | None:
    """Return the newest of `LEVELS` that the flags include; None if unknown, or not x86."""
    reached = [level for level, needed in LEVELS.items() if needed <= flags]
    return reached[-1] if reached else None
