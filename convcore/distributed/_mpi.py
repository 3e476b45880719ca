"""MPI, imported when it is first needed: mpi4py and the MPI library that it finds."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

# Where launchers (MPICH's, Open MPI's, Slurm's) say how many processes they started.
_SIZES = (
    *("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"),
    *("FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE", "PALS_NRANKS"),
)


def launched() -> int:
    """Return the number of processes that a launcher says it started, or 1."""
    return max(
        (int(size) for name in _SIZES if (size := os.environ.get(name, "")).isdigit()), default=1
    )


def _imported() -> Any:
    """Import MPI so that it ends with this process, not with one that it forks.

    mpi4py finalizes MPI wherever Python ends; in a forked process that breaks the parent's.
    """
    import mpi4py

    ours = "mpi4py.MPI" not in sys.modules
    if ours:
        mpi4py.rc.finalize = False
    from mpi4py import MPI

    def finalize(process: int = os.getpid()) -> None:
        if os.getpid() == process and not MPI.Is_finalized():
            MPI.Finalize()

    if ours:
        atexit.register(finalize)
    return MPI


def load() -> Any:
    """Return mpi4py's module `MPI`; None where it is not installed and one process runs.

    Raises
    ------
    ImportError
        A launcher started several processes, and there is no mpi4py, or no MPI library.
    RuntimeError
        The library gives one process's threads no turns at MPI.
    """
    try:
        MPI = _imported()
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py without a library
        if launched() == 1:
            return None
        raise ImportError(
            f"{launched()} processes were started, and MPI cannot be loaded ({error}): "
            "pip install 'convcore[mpi]'"
        ) from error
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise RuntimeError(
            "MPI was initialized for a single thread, but a backward pass may reduce gradients in "
            "another: MPI_THREAD_SERIALIZED or more is needed, mpi4py.rc.thread_level = 'multiple' "
            "before MPI is imported"
        )
    return MPI
