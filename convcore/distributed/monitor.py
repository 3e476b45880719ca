"""A monitor process on each machine that names a rank that was killed, and the step it was at.

Launchers kill all other ranks at once when one dies, so that none of these can tell; theirs is a
message about a process. The monitor is no child of the launcher. It waits on handles of the
ranks' processes, which the system closes (Linux's pidfd), and reads steps from a file that all map.
"""

from __future__ import annotations

import atexit
import mmap
import os
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

__all__: list[str] = []

# Alone, without this package: it starts in some 15 ms and holds 8 MB.
_PROGRAM = """
import os, select, signal, sys
file, total, *ranks = map(int, sys.argv[1:])
signal.signal(signal.SIGINT, signal.SIG_IGN)
handles, events = {}, select.poll()
for place in range(len(ranks) // 2):
    try:
        handle = os.pidfd_open(ranks[2 * place + 1])
    except ProcessLookupError:
        continue
    handles[handle] = place
    events.register(handle, select.POLLIN)
os.write(1, b".")
os.close(1)
died = False
while handles and not died:
    for handle, _ in events.poll():  # several only where this process had no turn for long
        events.unregister(handle)
        place = handles.pop(handle)
        rank, process = ranks[2 * place : 2 * place + 2]
        step = int.from_bytes(os.pread(file, 8, 8 * place), sys.byteorder, signed=True)
        if step >= 0:
            died = True
            text = f"convcore: rank {rank} of {total} died at step {step} (process {process} on "
            os.write(2, f"{text}{os.uname().nodename}); all ranks end\\n".encode())
"""
_LEFT = -1  # in place of a step: the rank ended by itself
_process: Any = None  # kept, for it is meant to outlive this one


def available() -> bool:
    """Return whether this system has handles of processes."""
    return hasattr(os, "pidfd_open")


class Monitor:
    """One rank's part in the monitor of its machine; all ranks make one together.

    Parameters
    ----------
    mpi : mpi4py's module
    comm : communicator of all ranks
    """

    def __init__(self, mpi: Any, comm: Any):
        node = comm.Split_type(mpi.COMM_TYPE_SHARED, comm.rank)
        members = node.gather((comm.rank, os.getpid()))
        file, path = tempfile.mkstemp("convcore") if node.rank == 0 else (-1, "")
        if members is not None:
            os.ftruncate(file, 8 * node.size)
            _start(file, comm.size, members)
        path = node.bcast(path)
        if node.rank:
            file = os.open(path, os.O_RDWR)
        with open(file, "r+b") as opened:
            steps = np.frombuffer(mmap.mmap(opened.fileno(), 8 * node.size), np.int64)
        self._own = steps[node.rank : node.rank + 1]
        node.Barrier()
        if node.rank == 0:
            os.unlink(path)
        node.Free()
        atexit.register(self.leave)
        # Loaders' workers end without their parent.
        os.register_at_fork(after_in_child=lambda: atexit.unregister(self.leave))

    def follow(self, step: int) -> None:
        """Note the step that this rank is at."""
        self._own[0] = step

    def leave(self) -> None:
        """Note that this rank ends by itself, or has said why it ends."""
        self._own[0] = _LEFT


def _start(file: int, total: int, members: list[tuple[int, int]]) -> None:
    """Start the process that watches, and wait until it does."""
    numbers = [str(number) for member in members for number in member]
    global _process
    _process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, str(file), str(total), *numbers],
        pass_fds=[file],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # or the launcher would kill it with the ranks
    )
    assert _process.stdout is not None
    _process.stdout.read()
    _process.stdout.close()
