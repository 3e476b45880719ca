"""The switches of PyTorch's other backends, so that programs that set them run.

Scripts commonly start with ``backends.cudnn.benchmark = True`` or ``... .deterministic = True``.
There is no such backend here: the switches can be set and read, and nothing else comes of it.
Results are the same bits in every run and for any number of threads whatever they say.
"""

from __future__ import annotations

from typing import Any

__all__ = ["cuda", "cudnn", "mkldnn", "mps"]


class _Absent:
    """A backend that is not there, with switches that switch nothing."""

    def __init__(self, name: str, **switches: Any):
        self._name = name
        self.__dict__.update(switches)

    def is_available(self) -> bool:
        """Return False."""
        return False

    def is_built(self) -> bool:
        """Return False."""
        return False

    def version(self) -> None:
        """Return None."""

    def __repr__(self) -> str:
        return f"<backend '{self._name}', not available>"


cudnn = _Absent("cudnn", enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
cuda = _Absent("cuda", matmul=_Absent("cuda.matmul", allow_tf32=False))
mps = _Absent("mps")
mkldnn = _Absent("mkldnn", enabled=True)
