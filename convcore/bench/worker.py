"""The process in which one peer computes: ``python -m convcore.bench.worker PEER THREADS``.

It reads one JSON command a line and answers each with one JSON line, until its input ends.  Between
commands it is blocked on the pipe and costs nothing, once its threads have stopped spinning; an
answer is given only then, so that the next worker's turn starts on an idle machine.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore.bench import nets
from convcore.bench.layers import parse_layer
from convcore.bench.measuring import PeakMemory, Sampling, calibrate, gemm_gflops, sample, settle
from convcore.bench.overhead import operation
from convcore.bench.peers import Peer, load_peer
from convcore.bench.process import serve_standard_streams, variables_that_matter

if TYPE_CHECKING:
    from convcore.bench.problem import Arrays

# The name of a call that is in no particular format.
ONLY = ""

# Nothing above loads convcore's kernels, and the methods below import `problem`, which does, only
# in the oracle's worker or when a peer is there: the first OpenMP runtime of a name is the only one
# that a process gets, and PyTorch has to be timed on its own.


class Worker:
    """One peer, one number of threads; its arrays and calls; public methods are commands."""

    def __init__(self, peer: Peer, threads: int) -> None:
        self.peer, self.threads = peer, threads
        self.folder: Path | None = None
        self.arrays: Arrays = {}
        self.operands: dict[str, dict[str, Any]] = {}
        self.calls: dict[str, Callable[[], Any]] = {}
        self.extents: dict[str, Sampling] = {}
        self.peak: PeakMemory | None = None
        peer.set_threads(threads)

    def describe(self) -> dict[str, Any]:
        """Return what this worker is made of."""
        return {
            "threads": self.threads,
            "formats": list(self.peer.formats),
            "passes": list(self.peer.passes),
            "dtypes": list(self.peer.dtypes),
            "most_rounds": self.peer.most_rounds,
            "loaded": self.peer.describe(),
            "variables": variables_that_matter(os.environ),
        }

    def choose_algorithm(self, algorithm: str | None, strict: bool) -> None:
        """Hold convcore to an algorithm, or to strict mode."""
        self.peer.choose_algorithm(algorithm, strict)

    def measure_peak(self, dtypes: list[str]) -> dict[str, float]:
        """Return the speed of a large matrix product in each dtype, in GFLOP/s."""
        return {dtype: gemm_gflops(dtype, self.threads) for dtype in dtypes}

    def solve(self, layer: str, passes: list[str], dtype: str, folder: str, seed: int) -> None:
        """Let the oracle write a layer's problem into a folder."""
        from convcore.bench.problem import write_problem

        write_problem(parse_layer(layer), passes, Path(folder), seed, dtype)

    def judge(self, folder: str, pass_name: str, result: str) -> float:
        """Return the error in eps of a result that another worker saved."""
        from convcore.bench.problem import measure_error

        return measure_error(np.load(result), Path(folder), pass_name)

    def prepare(
        self, layer: str, dtype: str, pass_name: str, format: str, folder: str, result: str
    ) -> dict[str, str] | None:
        """Make a pass of a layer the current call of a format, and save what it computes.

        Returns
        -------
        dict or None
            The algorithm; None if the peer has no such convolution.
        """
        # From here on: what is read is part of the memory that a peer needs.
        self.peak = self.peak or PeakMemory()
        parsed, channels_last = parse_layer(layer), format == "channels_last"
        if not self.peer.can(parsed):
            return None
        self._load(Path(folder))
        if format not in self.operands:
            self.operands[format] = {
                name: self.peer.convert(array, channels_last) for name, array in self.arrays.items()
            }
        self.calls.pop(format, None)
        call = self.calls[format] = self.peer.call(parsed, pass_name, self.operands[format])
        np.save(result, self.peer.to_numpy(call()))
        return {"algorithm": self.peer.algorithm(parsed, pass_name, dtype, channels_last)}

    def operate(self, name: str) -> Any:
        """Make a small operation the only current call; return its result as nested lists."""
        call = operation(name).build(self.peer.library)
        self.calls = {ONLY: call}
        return call().detach().tolist()

    def save_net_weights(self, net: str, file: str) -> None:
        """Save a net's first weights, for all libraries to load."""
        nets.save_weights(nets.make_net(self.peer.library, nets.own_net(net)), Path(file))

    def export_net(self, net: str, task: str, weights: str, file: str) -> None:
        """Write a net for libraries that read ONNX."""
        nets.export(nets.own_net(net), task, Path(weights), Path(file))

    def prepare_net(self, net: str, task: str, format: str, folder: str, result: str) -> int:
        """Make a task of a net the only call; save what it computes, return its peak of bytes.

        The peak is that of two calls, above what was held before the net was made.
        """
        if self.peer.library:
            importlib.import_module("convcore.models")  # code, no part of what a net takes
        peak = PeakMemory()
        call = nets.net_call(self.peer, nets.net_named(net), task, format, Path(folder))
        self.calls = {ONLY: call}
        peak.forget()  # the file's copy of the weights
        computed = call()
        np.save(result, computed.detach().float().numpy() if self.peer.library else computed)
        call()  # what is allocated by the second call too, such as momenta
        return peak.added

    def prepare_workload(self, name: str, folder: str) -> None:
        """Make a workload of the busy machine the only call, and call it twice."""
        from convcore.bench.busy import workload_named

        call = workload_named(name).build(self.peer, Path(folder))
        self.calls = {ONLY: call}
        call(), call()

    def time_for(self, seconds: float) -> list[float]:
        """Call for about that long, at least three times; return the seconds of each call."""
        call, times = self._call(ONLY), []
        end = time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return times

    def calibrate(self, format: str = ONLY) -> None:
        """Decide how often a sample repeats a format's call."""
        self.extents[format] = calibrate(self._call(format))

    def time(self, format: str = ONLY) -> float:
        """Return one sample of a format's call: seconds a call."""
        seconds = sample(self._call(format), self.extents[format])
        self.settle()
        return seconds

    def settle(self) -> None:
        """Leave the machine idle for the next worker's turn."""
        if self.threads > 1:
            settle()

    def peak_bytes(self) -> int:
        """Return the most memory held so far, above what was held before the first layer."""
        return self.peak.added if self.peak else 0

    def _call(self, format: str) -> Callable[[], Any]:
        assert format in self.calls, "prepare comes first"
        return self.calls[format]

    def _load(self, folder: Path) -> None:
        """Free the arrays of the previous layer, and read those in a folder."""
        from convcore.bench.problem import read_operands

        if folder != self.folder:
            self.calls.clear()
            self.operands.clear()
            self.arrays.clear()
            self.arrays, self.folder = read_operands(folder), folder


if __name__ == "__main__":
    serve_standard_streams(lambda name, threads: Worker(load_peer(name), threads))
