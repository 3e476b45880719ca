"""A worker process: the environment that it is given, and both ends of its pipe.

Variables that hold a library below what the CPU can do are read once, when the library loads.  So
they are set or removed in the copy of the environment that a child process gets, never in our own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import IO, Any

# What OpenBLAS, oneDNN (PyTorch's and OpenVINO's), PyTorch's own loops and convcore's want to hear.
# ONNX Runtime listens to nothing, and NumPy's loops are left as they are.  base is SSE4, the oldest
# that OpenBLAS and oneDNN have: oneDNN starts at SSE41, and SciPy's OpenBLAS takes Nehalem (SSE4.2)
# but knows no Prescott, its fallback below that.
_HOLDING = ("CONVCORE_ISA", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")
_HELD = {
    "avx512": ("avx512", "SkylakeX", "AVX512_CORE", "avx512"),
    "avx2": ("avx2", "Haswell", "AVX2", "avx2"),
    "base": ("base", "Nehalem", "SSE41", "default"),
}
ISAS = ("native", *_HELD)
# Any of these left from the shell would hold one side of a comparison and not the other.
_REMOVED = (
    "CONVCORE_ISA",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Also printed, because they move threads about or change how long an idle one spins.
_PRINTED = (
    *_REMOVED,
    *_THREADS,
    "OMP_WAIT_POLICY",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT",
    "KMP_BLOCKTIME",
    "KMP_AFFINITY",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_THRESHOLD_",
    "LD_PRELOAD",
)


def worker_environment(
    found: Mapping[str, str], threads: int, isa: str = "native", keep: bool = False
) -> dict[str, str]:
    """Return a worker's environment.

    Parameters
    ----------
    found : mapping
        The environment to start from, usually ``os.environ``; only read.
    threads : int
        How many threads the worker is to compute with.
    isa : {'native', 'avx512', 'avx2', 'base'}
        Instruction set to which convcore, OpenBLAS, oneDNN and PyTorch are held; native holds none.
    keep : bool
        Leave everything as found; threads are then set by the libraries' own functions only.

    Raises
    ------
    ValueError
        An isa that is not one of the four.
    """
    if isa not in ISAS:
        raise ValueError(f"isa must be one of {', '.join(ISAS)}, got {isa!r}")
    environment = dict(found)
    if keep:
        return environment
    for name in _REMOVED:
        environment.pop(name, None)
    environment.update(zip(_HOLDING, _HELD.get(isa, ()), strict=False))
    environment.update(dict.fromkeys(_THREADS, str(threads)))
    return environment


def removed_variables(
    found: Mapping[str, str], isa: str = "native", keep: bool = False
) -> dict[str, str]:
    """Return the variables, with the values found, that workers do not get."""
    given = worker_environment(found, 1, isa, keep)
    return {name: found[name] for name in _REMOVED if name in found and name not in given}


def variables_that_matter(found: Mapping[str, str]) -> dict[str, str]:
    """Return those variables of an environment that change how fast a convolution runs."""
    return {name: found[name] for name in _PRINTED if name in found}


class WorkerError(RuntimeError):
    """A command failed in a worker, or the worker ended; the message says which and why."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(f"{peer}: {reason}")
        self.peer = peer


class WorkerProcess:
    """One running worker; a context manager that ends it.

    Parameters
    ----------
    peer : str
        A name of `convcore.bench.peers.PEERS`; what errors call the worker.
    threads : int
        How many threads it computes with.
    environment : mapping
        Its whole environment.
    module : str
        What it runs, with peer and threads as arguments: a module that ends in
        `serve_standard_streams`.
    """

    def __init__(
        self,
        peer: str,
        threads: int,
        environment: Mapping[str, str],
        module: str = "convcore.bench.worker",
    ) -> None:
        self.peer, self.threads = peer, threads
        self.dead: str | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, peer, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            text=True,
            encoding="utf-8",
            # Out of the terminal's group: Ctrl-C is the parent's, which then ends its workers.
            # Within its session, for Linux shares processors out to sessions first.
            process_group=0,
        )

    def ask(self, command: str, **arguments: Any) -> Any:
        """Send a command, wait for its answer and return the value.

        Raises
        ------
        WorkerError
            The command raised there, or the worker is gone.
        """
        if self.dead is not None:
            raise WorkerError(self.peer, self.dead)
        line = self._exchange(json.dumps({"command": command, "arguments": arguments}) + "\n")
        if not line:
            code = self._process.wait()
            self.dead = f"its worker ended with exit code {code}"
            raise WorkerError(self.peer, self.dead)
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(self.peer, answer["error"])
        return answer["value"]

    def _exchange(self, line: str) -> str:
        """Write a line and read one; empty if the worker is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the worker, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def __enter__(self) -> WorkerProcess:
        """Return the worker itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the worker."""
        self.close()


def carry_out(worker: Any, line: str) -> Any:
    """Carry out one command line: call a public method of the worker, return what it returns."""
    message = json.loads(line)
    name = message["command"]
    if name.startswith("_") or name not in vars(type(worker)):
        raise ValueError(f"unknown command {name!r}")
    return getattr(worker, name)(**message["arguments"])


def answer(worker: Any, line: str) -> dict[str, Any]:
    """Carry out one command line; an exception is an answer too."""
    try:
        return {"value": carry_out(worker, line)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def serve(worker: Any, commands: Iterable[str], answers: IO[str]) -> None:
    """Answer commands until there are no more."""
    for line in commands:
        answers.write(json.dumps(answer(worker, line)) + "\n")
        answers.flush()


def serve_standard_streams(make: Callable[[str, int], Any]) -> None:
    """Run the worker made of the command's two arguments on standard input and output."""
    # What a library prints must not land among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    name, threads = sys.argv[1:]
    try:
        serve(make(name, int(threads)), sys.stdin, answers)
    except BrokenPipeError:  # who asked was killed meanwhile
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, answers.fileno())  # for what is left in the buffer at the end
