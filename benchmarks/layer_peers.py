"""Layers other than convolutions beside PyTorch, forward and backward, in turn.

    python benchmarks/layer_peers.py --threads 1,2
    python benchmarks/layer_peers.py --calls pad,softmax --below 0.95

A ratio is PyTorch's time over convcore's: above 1, convcore is faster.  Each library computes in a
process of its own; both get the same code and the same random input.  ``best`` takes each library's
better memory format, of which the second of two rows has the ratio.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from convcore.bench.measuring import (
    Sampling,
    calibrate,
    geometric_mean,
    paired_ratios,
    quartiles,
    sample,
    settle,
    take_turns,
)
from convcore.bench.peers import OURS, load_peer
from convcore.bench.process import WorkerProcess, serve_standard_streams, worker_environment
from convcore.engine.runtime.cpus import cpu_limit

PEERS = (OURS, "torch")
FORMATS = ("contiguous", "channels_last")
MAP, TINY, SEQUENCE, ROWS = (8, 64, 56, 56), (1, 16, 8, 8), (8, 64, 1024), (64, 1000)

Function = Callable[[ModuleType, Any], Any]


class Call(NamedTuple):
    """A function of the library and a tensor, what shape that has, and whether it has gradients."""

    function: Function
    shapes: tuple[tuple[int, ...], ...]
    backward: bool = True
    labels: int = 0  # of an input of integers below that number


def _pool1d(m: ModuleType, x: Any) -> Any:
    return m.nn.functional.max_pool1d(x, 2)


def _padded(mode: str) -> Function:
    return lambda m, x: m.nn.functional.pad(x, (2, 2, 2, 2), mode)


def _resized(mode: str, **options: bool) -> Function:
    return lambda m, x: m.nn.functional.interpolate(x, scale_factor=2, mode=mode, **options)


def _normalized(name: str, *shape: int) -> Function:
    def call(m: ModuleType, x: Any) -> Any:
        arguments = {
            "layer_norm": (x.shape[-1:],),
            "group_norm": (8,),
            "batch_norm": (None, None, None, None, True),
            "instance_norm": (),
        }[name]
        return getattr(m.nn.functional, name)(x, *arguments)

    return call


def _linear(inputs: int, outputs: int) -> Function:
    def call(m: ModuleType, x: Any) -> Any:
        weight, bias = _kept(m, "linear", outputs, inputs), _kept(m, "bias", outputs)
        return m.nn.functional.linear(x, weight, bias)

    return call


def _embedding(m: ModuleType, x: Any) -> Any:
    return m.nn.functional.embedding(x, _kept(m, "embedding", 1000, 64))


def _cross_entropy(m: ModuleType, x: Any) -> Any:
    labels = _cached(m, ("labels", *x.shape), lambda: m.arange(x.shape[0]) % x.shape[1])
    return m.nn.functional.cross_entropy(x, labels)


def _step(name: str, elements: int) -> Function:
    def make(m: ModuleType) -> Any:
        parameters = [m.nn.Parameter(m.ones(elements)) for _ in range(10)]
        for one in parameters:
            one.grad = m.ones(elements)
        return getattr(m.optim, name)(parameters, lr=1e-9)

    return lambda m, x: _cached(m, (name, elements), lambda: make(m)).step()


_made: dict[Any, Any] = {}


def _cached(m: ModuleType, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """Return what a call uses besides its input, made once."""
    if key not in _made:
        _made[key] = make()
    return _made[key]


def _kept(m: ModuleType, name: str, *shape: int) -> Any:
    return _cached(m, (name, *shape), lambda: m.nn.Parameter(_tensor(m, shape)))


def _tensor(m: ModuleType, shape: tuple[int, ...]) -> Any:
    return m.tensor(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))


CALLS = {
    "product": Call(lambda m, x: x * x, ((2,), TINY, MAP)),
    "sum of two": Call(lambda m, x: x + x, (TINY, MAP)),
    "sum": Call(lambda m, x: x.sum(), (TINY, MAP)),
    "mean over H, W": Call(lambda m, x: x.mean((2, 3)), (TINY, MAP)),
    "flatten": Call(lambda m, x: x.flatten(1), (TINY,)),
    "cat": Call(lambda m, x: m.cat((x, x), 1), (TINY, MAP)),
    "chunk": Call(lambda m, x: x.chunk(2, 1)[1], (TINY,)),
    "relu": Call(lambda m, x: m.nn.functional.relu(x), (TINY, MAP)),
    "relu6": Call(lambda m, x: m.nn.functional.relu6(x), (TINY, MAP)),
    "silu": Call(lambda m, x: m.nn.functional.silu(x), (TINY, MAP)),
    "gelu": Call(lambda m, x: m.nn.functional.gelu(x), (MAP,)),
    "sigmoid": Call(lambda m, x: m.sigmoid(x), (MAP,)),
    "hardswish": Call(lambda m, x: m.nn.functional.hardswish(x), (MAP,)),
    "leaky_relu": Call(lambda m, x: m.nn.functional.leaky_relu(x), (MAP,)),
    "dropout": Call(lambda m, x: m.nn.functional.dropout(x), (TINY, MAP)),
    "pad, zeros": Call(_padded("constant"), (TINY, MAP)),
    "pad, reflect": Call(_padded("reflect"), (TINY, MAP, (1, 64, 56, 56))),
    "pad, replicate": Call(_padded("replicate"), (TINY, MAP)),
    "max_pool1d": Call(_pool1d, ((1, 16, 64), SEQUENCE)),
    "max_pool2d 2x2": Call(lambda m, x: m.nn.functional.max_pool2d(x, 2), (TINY, MAP)),
    "max_pool2d 3x3": Call(lambda m, x: m.nn.functional.max_pool2d(x, 3, 2, 1), (MAP,)),
    "avg_pool2d 2x2": Call(lambda m, x: m.nn.functional.avg_pool2d(x, 2), (TINY, MAP)),
    "adaptive_avg_pool2d": Call(
        lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 1), (TINY, MAP)
    ),
    "nearest": Call(_resized("nearest"), (TINY, MAP)),
    "bilinear": Call(_resized("bilinear"), (TINY, MAP)),
    "bicubic": Call(_resized("bicubic"), (MAP,)),
    "layer_norm": Call(_normalized("layer_norm"), ((4, 64), (512, 768), (8, 128, 256))),
    "group_norm": Call(_normalized("group_norm"), (TINY, MAP, (8, 256, 14, 14))),
    "batch_norm": Call(_normalized("batch_norm"), (TINY, MAP, (8, 256, 14, 14))),
    "instance_norm": Call(_normalized("instance_norm"), (TINY, MAP)),
    "linear 64-10": Call(_linear(64, 10), ((1, 64), (64, 64))),
    "linear 400-120": Call(_linear(400, 120), ((1, 400), (64, 400))),
    "linear 512-1000": Call(_linear(512, 1000), ((4, 512), (8, 512), (32, 512))),
    "softmax": Call(lambda m, x: m.softmax(x, 1), ((64, 10), ROWS)),
    "log_softmax": Call(lambda m, x: m.log_softmax(x, 1), ((64, 10), ROWS)),
    "softmax over C": Call(lambda m, x: m.softmax(x, 1), ((2, 21, 128, 128),)),
    "cross_entropy": Call(_cross_entropy, ((64, 10), ROWS)),
    "mse_loss": Call(lambda m, x: m.nn.functional.mse_loss(x, x.detach()), ((64, 10), ROWS)),
    "embedding": Call(_embedding, ((8, 128),), labels=1000),
    "Adam, step": Call(_step("Adam", 1000), ((1,),), backward=False),
    "Adam, step of large": Call(_step("Adam", 1 << 20), ((1,),), backward=False),
    "SGD, step": Call(_step("SGD", 1000), ((1,),), backward=False),
}  # fmt: skip


class Worker:
    """One library's calls; public methods are commands."""

    def __init__(self, peer: str, threads: int) -> None:
        loaded = load_peer(peer)
        loaded.set_threads(threads)
        assert loaded.library is not None
        self.library, self.threads = loaded.library, threads
        self.calls: dict[str, tuple[Callable[[], Any], Sampling]] = {}

    def prepare(self, name: str, shape: list[int], back: bool, formats: list[str]) -> list[Any]:
        """Make a call the current one, in each format; return what it computes."""
        self.calls.clear()
        _made.clear()
        for format in formats:
            call = _prepared(self.library, CALLS[name], tuple(shape), back, format)
            result = call()
            self.calls[format] = call, calibrate(call)
        return [] if result is None else _summary(result)

    def time(self, format: str) -> float:
        """Return one sample of a format's call: seconds a call."""
        seconds = sample(*self.calls[format])
        if self.threads > 1:
            settle()
        return seconds


def _prepared(
    m: ModuleType, call: Call, shape: tuple[int, ...], back: bool, format: str
) -> Callable[[], Any]:
    """Return the forward pass of a training step, or the backward pass alone."""
    if call.labels:
        x = m.arange(int(np.prod(shape))).reshape(shape) % call.labels
    else:
        x = _tensor(m, shape)
        if format == FORMATS[1]:
            x = x.contiguous(memory_format=m.channels_last)
        x.requires_grad_(call.backward)
    if not back:
        return lambda: call.function(m, x)
    y = call.function(m, x)
    grad = m.ones_like(y)
    parameters = [one for one in _made.values() if isinstance(one, m.nn.Parameter)]
    wanted = [x for x in (x, *parameters) if x.requires_grad]
    return lambda: m.autograd.grad(y, wanted, grad, retain_graph=True)[0]


def _summary(result: Any) -> list[Any]:
    """Return a result's shape and some of its elements, for the comparison."""
    array = result.detach().numpy()
    return [list(array.shape), array.reshape(-1)[:: max(1, array.size // 100)].tolist()]


def main() -> int:
    """Measure and print."""
    arguments = _arguments()
    print(f"{'ms':>36}{'':>12}PyTorch / convcore")
    for threads in arguments.threads:
        environment = worker_environment(os.environ, threads)
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path[1:]])
        with ExitStack() as stack:
            workers = {
                peer: stack.enter_context(WorkerProcess(peer, threads, environment, "layer_peers"))
                for peer in PEERS
            }
            ratios = [_cell(workers, *cell, arguments) for cell in _cells(arguments.calls)]
        print(f"{threads} threads: geometric mean {geometric_mean(ratios):.2f}\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", default="", metavar="TEXT,...", help="whose names have one")
    parser.add_argument(
        "--threads", default=[1, cpu_limit()], type=lambda t: [int(one) for one in t.split(",")]
    )
    parser.add_argument("--below", default=np.inf, type=float, help="print ratios below this only")
    parser.add_argument("--rounds", default=7, type=int)
    return parser.parse_args()


def _cells(texts: str) -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """Yield name, shape and whether backward of every call wanted."""
    for name, call in CALLS.items():
        if any(text in name for text in texts.split(",")):
            yield from itertools.product((name,), call.shapes, (False, True)[: 1 + call.backward])


def _cell(
    workers: dict[str, WorkerProcess],
    name: str,
    shape: tuple[int, ...],
    back: bool,
    arguments: argparse.Namespace,
) -> float:
    """Time a call in all formats; print and return the ratio of each library's better one."""
    formats = FORMATS[: 2 if len(shape) == 4 else 1]
    results = [
        w.ask("prepare", name=name, shape=shape, back=back, formats=formats)
        for w in workers.values()
    ]
    if results[0] and name != "dropout":
        assert results[0][0] == results[1][0], name
        np.testing.assert_allclose(results[0][1], results[1][1], 1e-4, 1e-4, err_msg=name)
    timed = {
        (peer, format): lambda worker=worker, format=format: worker.ask("time", format=format)
        for format in formats
        for peer, worker in workers.items()
    }
    seconds: dict[tuple[str, str], list[float]] = {key: [] for key in timed}
    rounds = arguments.rounds
    for key, one in take_turns(timed, dict.fromkeys(timed, rounds), rounds):
        seconds[key].append(one)
    title = f"{name} {'x'.join(map(str, shape))}{', backward' if back else ''}"
    better = {
        peer: min((seconds[peer, format] for format in formats), key=lambda s: quartiles(s).median)
        for peer in PEERS
    }
    found = {format: [seconds[peer, format] for peer in PEERS] for format in formats}
    for format, (ours, theirs) in [*found.items(), ("best", list(better.values()))]:
        ratio = quartiles(paired_ratios(ours, theirs)).median
        if ratio < arguments.below:
            print(
                f"{title:40} {workers[OURS].threads} {format:14}"
                f" {1e3 * quartiles(ours).median:9.4f} ms {ratio:6.2f}",
                flush=True,
            )
    return ratio


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in PEERS:
        serve_standard_streams(lambda name, threads: Worker(name, threads))
    else:
        sys.exit(main())
