"""PyTorch's `distributed`: convcore's, and what programs ask about backends that are not here.

"gloo", PyTorch's own backend for CPUs, is a name of MPI's here.
"""

from __future__ import annotations

from typing import Any

from convcore import distributed as _own
from convcore.distributed import *  # noqa: F403
from convcore.distributed.group import ProcessGroup as ProcessGroup


def _backend(name: Any) -> Any:
    """Return the backend that does a backend's work."""
    return None if name == "gloo" else name


def init_process_group(backend: Any = None, *arguments: Any, **others: Any) -> None:
    """Join the processes of ``mpiexec``; see `convcore.distributed.init_process_group`."""
    _own.init_process_group(_backend(backend), *arguments, **others)


def new_group(
    ranks: Any = None, timeout: Any = None, backend: Any = None, *arguments: Any, **others: Any
) -> ProcessGroup | None:
    """Make a group of some processes; see `convcore.distributed.new_group`."""
    return _own.new_group(ranks, timeout, _backend(backend), *arguments, **others)


def is_gloo_available() -> bool:
    """Return True: MPI does its work."""
    return True


def _no() -> bool:
    """Return False."""
    return False


is_nccl_available = is_torchelastic_launched = is_ucc_available = is_xccl_available = _no
