"""Overhead benchmark: small operations, whose time is mostly the cost of a call.

Each is written once, against the names that PyTorch and convcore share, and runs on either, on one
thread; the two take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from convcore.bench.measuring import Quartiles, quartiles, take_turns
from convcore.bench.peers import OURS
from convcore.bench.process import WorkerProcess

# Peers that have the names the operations are written in.
PEERS = ("torch",)
# Two libraries' float32 results of one operation differ by rounding alone.
_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Operation:
    """What is called, and how many microseconds convcore promises to take at most."""

    name: str
    limit: float | None
    build: Callable[[ModuleType], Callable[[], Any]]


def _tensor(m: ModuleType, *shape: int, requires_grad: bool = False) -> Any:
    array = np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)
    return m.tensor(array, requires_grad=requires_grad)


def _product(m: ModuleType, requires_grad: bool) -> Callable[[], Any]:
    x, y = (_tensor(m, 2, requires_grad=requires_grad) for _ in range(2))
    return lambda: x * y


def _product_backward(m: ModuleType) -> Callable[[], Any]:
    x, y = (_tensor(m, 2, requires_grad=True) for _ in range(2))
    ones = m.ones(2)

    def call() -> Any:
        x.grad = y.grad = None
        (x * y).backward(ones)
        return x.grad

    return call


def _conv_operands(m: ModuleType, requires_grad: bool) -> tuple[Any, Any, Any]:
    x = _tensor(m, 1, 4, 8, 8)
    return x, *(_tensor(m, *s, requires_grad=requires_grad) for s in ((4, 4, 3, 3), (4,)))


def _conv(m: ModuleType, requires_grad: bool) -> Callable[[], Any]:
    x, weight, bias = _conv_operands(m, requires_grad)
    conv2d = m.nn.functional.conv2d
    return lambda: conv2d(x, weight, bias, padding=1)


def _conv_backward(m: ModuleType) -> Callable[[], Any]:
    x, weight, bias = _conv_operands(m, True)
    conv2d, relu = m.nn.functional.conv2d, m.nn.functional.relu

    def call() -> Any:
        weight.grad = bias.grad = None
        relu(conv2d(x, weight, bias, padding=1)).sum().backward()
        return weight.grad

    return call


def _module(m: ModuleType) -> Callable[[], Any]:
    x = _tensor(m, 1, 4, 8, 8)
    conv = m.nn.Conv2d(4, 4, 3, padding=1)
    with m.no_grad():
        conv.weight.copy_(_tensor(m, 4, 4, 3, 3))
        conv.bias.copy_(_tensor(m, 4))
    return lambda: conv(x)


def _training_step(m: ModuleType) -> Callable[[], Any]:
    nn = m.nn
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10)
    )
    with m.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.1 * _tensor(m, *parameter.shape))
    x, label = _tensor(m, 1, 1, 8, 8), m.tensor([3])
    optimizer = m.optim.SGD(net.parameters(), lr=0.0)

    def call() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        return loss

    return call


OPERATIONS = (
    Operation(
        "x * y, 2 elements, no gradient wanted", None, partial(_product, requires_grad=False)
    ),
    Operation("x * y, 2 elements, gradients wanted", 3.0, partial(_product, requires_grad=True)),
    Operation("x * y, then backward", None, _product_backward),
    Operation("conv2d 4->4 on 8x8", 15.0, partial(_conv, requires_grad=False)),
    Operation("conv2d 4->4 on 8x8, gradients wanted", 15.0, partial(_conv, requires_grad=True)),
    Operation("nn.Conv2d 4->4 on 8x8, called", 15.0, _module),
    Operation("conv2d, relu, sum, backward", 80.0, _conv_backward),
    Operation("a training step of a tiny net", None, _training_step),
)


def operation(name: str) -> Operation:
    """Return the operation of a name."""
    return next(one for one in OPERATIONS if one.name == name)


@dataclass
class Cost:
    """What one operation cost, in seconds a call, by library."""

    operation: Operation
    seconds: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def ours(self) -> Quartiles:
        """Return our seconds a call."""
        return quartiles(self.seconds[OURS])

    @property
    def wrong(self) -> bool:
        """Whether a peer computed something else."""
        ours = self.results[OURS]
        return any(
            ours.shape != theirs.shape or not np.allclose(ours, theirs, _TOLERANCE, _TOLERANCE)
            for theirs in self.results.values()
        )

    @property
    def kept(self) -> bool:
        """Whether the promise was kept, by the least of our samples: noise only ever adds."""
        limit = self.operation.limit
        return limit is None or 1e6 * min(self.seconds[OURS]) <= limit

    def as_data(self) -> dict[str, Any]:
        """Return the cost for a JSON file."""
        one = self.operation
        return {"operation": one.name, "limit_us": one.limit, "seconds": self.seconds}


def seconds_of(peers: Sequence[str], rounds: int) -> float:
    """Return about how many seconds it takes: a sample's 15 ms, and processes that start."""
    libraries = 1 + len(peers)
    return 3.0 * libraries + 0.015 * libraries * rounds * len(OPERATIONS)


def measure(
    environment: Mapping[str, str], peers: tuple[str, ...], rounds: int, described: dict[str, Any]
) -> Iterator[Cost]:
    """Time every operation in all libraries, in turn; yield costs as they come.

    Parameters
    ----------
    environment : mapping
        The workers', for one thread.
    peers : tuple of str
        Out of `PEERS`.
    rounds : int
        Samples an operation.
    described : dict
        Filled with what the workers are made of, by ``peer@threads``.

    Raises
    ------
    WorkerError
        An operation failed in a worker.
    """
    with ExitStack() as stack:
        workers = {
            peer: stack.enter_context(WorkerProcess(peer, 1, environment))
            for peer in (OURS, *peers)
        }
        for peer, worker in workers.items():
            described[f"{peer}@1"] = worker.ask("describe")
        for one in OPERATIONS:
            cost = Cost(one)
            for peer, worker in workers.items():
                cost.results[peer] = np.asarray(worker.ask("operate", name=one.name))
                worker.ask("calibrate")
            timed = {peer: partial(worker.ask, "time") for peer, worker in workers.items()}
            for peer, seconds in take_turns(timed, dict.fromkeys(workers, rounds), rounds):
                cost.seconds.setdefault(peer, []).append(seconds)
            yield cost
