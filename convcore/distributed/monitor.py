"""A monitor process on each machine that names a rank that was killed, and the step it was at.

Launchers kill all other ranks at once when one dies, so that none of these can tell; theirs is a
message about a process. The monitor is no child of the launcher. Each rank holds a named pipe open,
which the system closes when the rank ends, however it does, and maps a file that has its step, or
-1 - step once it ends by itself, and at its end whether a rank ends all others.
"""

from __future__ import annotations

import atexit
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

# Alone, without this package: it starts in some 15 ms and holds 8 MB.
_PROGRAM = """
import os, select, signal, sys
folder, total, *ranks = sys.argv[1:]
signal.signal(signal.SIGINT, signal.SIG_IGN)
file = os.open(f"{folder}/steps", os.O_RDONLY)
places, events = {}, select.poll()
for place in range(len(ranks) // 2):
    pipe = os.open(f"{folder}/{place}", os.O_RDONLY | os.O_NONBLOCK)
    places[pipe] = place
    events.register(pipe, select.POLLIN)
os.write(1, b".")
os.close(1)
died = False
while places and not died:
    for pipe, _ in events.poll():  # several only where this process had no turn for long
        events.unregister(pipe)
        place = places.pop(pipe)
        rank, process = ranks[2 * place : 2 * place + 2]
        step = int.from_bytes(os.pread(file, 8, 8 * place), sys.byteorder, signed=True)
        ended = any(os.pread(file, 8, 4 * len(ranks)))
        if step >= 0 and not ended:
            died = True
            text = f"convcore: rank {rank} of {total} died at step {step} (process {process} on "
            os.write(2, f"{text}{os.uname().nodename}); all ranks end\\n".encode())
"""
_process: Any = None  # kept, for it is meant to outlive this one


def available() -> bool:
    """Return whether this system has named pipes."""
    return hasattr(os, "mkfifo")


class Monitor:
    """One rank's part in the monitor of its machine; all ranks make one together.

    Parameters
    ----------
    mpi : mpi4py's module
    comm : communicator of all ranks
    """

    def __init__(self, mpi: Any, comm: Any):
        node = comm.Split_type(mpi.COMM_TYPE_SHARED, comm.rank)
        members = node.allgather((comm.rank, os.getpid()))
        folder = node.bcast(_start(comm.size, members) if node.rank == 0 else None)
        pipe = os.open(folder / str(node.rank), os.O_WRONLY)
        with open(folder / "steps", "r+b") as file:
            table = np.frombuffer(mmap.mmap(file.fileno(), 8 * node.size + 8), np.int64)
        self._steps, self._ended = table[:-1], table[-1:]
        self._ranks = [rank for rank, _ in members]
        self._own = self._steps[node.rank : node.rank + 1]
        node.Barrier()
        if node.rank == 0:
            shutil.rmtree(folder)
        node.Free()
        atexit.register(self.leave)

        def forget() -> None:  # loaders' workers end without their parent
            atexit.unregister(self.leave)
            os.close(pipe)

        os.register_at_fork(after_in_child=forget)

    def follow(self, step: int) -> None:
        """Note the step that this rank is at."""
        self._own[0] = step

    def leave(self, with_all: bool = False) -> None:
        """Note that this rank ends by itself, or, having said why, ends all."""
        self._ended[0] |= with_all
        if self._own[0] >= 0:
            self._own[0] = -1 - self._own[0]

    def left(self) -> dict[int, int]:
        """Return the ranks of this machine that ended by themselves, and at which step."""
        steps = zip(self._ranks, self._steps.tolist(), strict=True)
        return {rank: -1 - step for rank, step in steps if step < 0}


def _start(total: int, members: list[tuple[int, int]]) -> Path:
    """Start the process that watches; return the folder of its files, when it has opened them."""
    global _process
    folder = Path(tempfile.mkdtemp(prefix="convcore"))
    (folder / "steps").write_bytes(bytes(8 * len(members) + 8))
    for place in range(len(members)):
        os.mkfifo(folder / str(place))
    numbers = [str(number) for member in members for number in member]
    _process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, str(folder), str(total), *numbers],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # or the launcher would kill it with the ranks
    )
    assert _process.stdout is not None
    _process.stdout.read()
    _process.stdout.close()
    return folder
