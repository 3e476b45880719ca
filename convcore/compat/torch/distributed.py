"""PyTorch's `distributed`: convcore's, and what programs ask about backends that are not here.

"gloo", PyTorch's own backend for CPUs, is a name of MPI's here.
"""

from __future__ import annotations

from typing import Any, ClassVar

from convcore import distributed as _own
from convcore.distributed import *  # noqa: F403
from convcore.distributed import ReduceOp
from convcore.distributed.group import ProcessGroup as ProcessGroup

# PyTorch's is a class with the enumeration in it, and its members are the enumeration's.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class Backend(str):
    """Names of backends, in small letters whatever the argument's are: a str."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"

    backend_list: ClassVar = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map: ClassVar = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name: str) -> Any:
        """Return the name in small letters, a str."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()


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
