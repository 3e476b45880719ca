"""MPI, imported when it is first needed: mpi4py and the MPI library that it finds."""

from __future__ import annotations

import os
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
        from mpi4py import MPI
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
