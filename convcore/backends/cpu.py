"""The processor's instruction set, as the kernels use it."""

from convcore.engine.runtime import _isa

__all__ = ["get_cpu_capability"]

_NAMES = {"avx2": "AVX2", "avx512": "AVX512", "base": "DEFAULT"}


def get_cpu_capability() -> str:
    """Return the instruction set of the kernels: 'DEFAULT', 'AVX2', 'AVX512' or 'NEON'."""
    name = _isa.name()
    return _NAMES.get(name, name.upper())
