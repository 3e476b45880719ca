"""The process in which one peer computes: ``python -m convcore.bench.worker PEER THREADS``.

It reads one JSON command a line and answers each with one JSON line, until its input ends.  Between
commands it is blocked on the pipe and costs nothing, once its threads have stopped spinning; an
answer is given only then, so that the next worker's turn starts on an idle machine.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from convcore.bench.environment import variables_that_matter
from convcore.bench.layer import parse_layer
from convcore.bench.operations import operation
from convcore.bench.peers import Peer, load_peer
from convcore.bench.sampling import Sampling, calibrate, sample
from convcore.bench.settling import settle

if TYPE_CHECKING:
    from convcore.bench.problem import Arrays

# Nothing above loads convcore's kernels, and the methods below import `problem`, which does, only
# when a peer is there: the first OpenMP runtime of a name is the only one that a process gets, and
# PyTorch has to be timed on its own.


class Worker:
    """One peer, one number of threads; the convolution it is at; the commands it knows."""

    def __init__(self, peer: Peer, threads: int) -> None:
        self.peer, self.threads = peer, threads
        self.folder: Path | None = None
        self.arrays: Arrays = {}
        self.operands: dict[bool, dict[str, Any]] = {}
        self.call: Callable[[], Any] | None = None
        self.sampling = Sampling(1, 1)
        peer.set_threads(threads)

    def describe(self) -> dict[str, Any]:
        """Return what this worker is made of."""
        return {
            "threads": self.threads,
            "formats": list(self.peer.formats),
            "most_rounds": self.peer.most_rounds,
            "loaded": self.peer.describe(),
            "variables": variables_that_matter(os.environ),
        }

    def solve(self, layer: str, maps: list[str], folder: str, seed: int) -> None:
        """Let the oracle write a layer's problem into a folder."""
        from convcore.bench.problem import write_problem

        write_problem(parse_layer(layer), maps, Path(folder), seed)

    def prepare(self, layer: str, folder: str, map_name: str, channels_last: bool) -> float:
        """Make a map of a layer the current call and compute it once; return its error in eps."""
        from convcore.bench.problem import measure_error

        self._load(Path(folder))
        if channels_last not in self.operands:
            self.operands[channels_last] = {
                name: self.peer.convert(array, channels_last) for name, array in self.arrays.items()
            }
        operands = self.operands[channels_last]
        self.call = self.peer.call(parse_layer(layer), map_name, operands)
        return measure_error(self.peer.to_numpy(self.call()), Path(folder), map_name)

    def operate(self, name: str) -> Any:
        """Make a small operation the current call; return its result as nested lists."""
        module = importlib.import_module(self.peer.module)
        self.call = operation(name).build(module)
        return self.call().detach().tolist()

    def calibrate(self) -> None:
        """Decide how often a sample repeats the current call."""
        assert self.call is not None, "prepare comes first"
        self.sampling = calibrate(self.call)

    def time(self) -> float:
        """Return one sample of the current call: seconds a call."""
        assert self.call is not None, "prepare comes first"
        seconds = sample(self.call, self.sampling)
        self.settle()
        return seconds

    def settle(self) -> None:
        """Leave the machine idle for the next worker's turn."""
        if self.threads > 1:
            settle()

    def _load(self, folder: Path) -> None:
        """Read a folder's arrays, and let go of those of the layer before."""
        from convcore.bench.problem import read_operands

        if folder != self.folder:
            self.call = None
            self.operands.clear()
            self.arrays, self.folder = read_operands(folder), folder


COMMANDS = ("describe", "operate", "solve", "prepare", "calibrate", "settle", "time")


def answer(worker: Worker, line: str) -> dict[str, Any]:
    """Carry out one command line; an exception becomes an answer too."""
    message = json.loads(line)
    try:
        if message["command"] not in COMMANDS:
            raise ValueError(f"unknown command {message['command']!r}")
        return {"value": getattr(worker, message["command"])(**message["arguments"])}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def serve(worker: Worker, commands: IO[str], answers: IO[str]) -> None:
    """Answer commands until there are no more."""
    for line in commands:
        answers.write(json.dumps(answer(worker, line)) + "\n")
        answers.flush()


def main(arguments: list[str]) -> None:
    """Run a worker on standard input and output."""
    # What a library prints must not land among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    name, threads = arguments
    serve(Worker(load_peer(name), int(threads)), sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
