"""Small operations whose time is what the library around the arithmetic costs.

Each is written once, against the names that PyTorch and convcore share, and runs on either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Operation:
    """What is called, and how many microseconds convcore promises to take at most."""

    name: str
    limit: float | None
    build: Callable[[ModuleType], Callable[[], Any]]


def _tensor(m: ModuleType, *shape: int, requires_grad: bool = False) -> Any:
    array = np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)
    return m.tensor(array, requires_grad=requires_grad)


def _product(m: ModuleType) -> Callable[[], Any]:
    x, y = (_tensor(m, 2, requires_grad=True) for _ in range(2))
    return lambda: x * y


def _product_without_grad(m: ModuleType) -> Callable[[], Any]:
    x, y = (_tensor(m, 2) for _ in range(2))
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


def _conv(m: ModuleType) -> Callable[[], Any]:
    x, weight, bias = _conv_operands(m, False)
    conv2d = m.nn.functional.conv2d
    return lambda: conv2d(x, weight, bias, padding=1)


def _conv_recorded(m: ModuleType) -> Callable[[], Any]:
    x, weight, bias = _conv_operands(m, True)
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
    Operation("x * y, 2 elements, no gradient wanted", None, _product_without_grad),
    Operation("x * y, 2 elements, gradients wanted", 3.0, _product),
    Operation("x * y, then backward", None, _product_backward),
    Operation("conv2d 4->4 on 8x8", 15.0, _conv),
    Operation("conv2d 4->4 on 8x8, gradients wanted", 15.0, _conv_recorded),
    Operation("nn.Conv2d 4->4 on 8x8, called", 15.0, _module),
    Operation("conv2d, relu, sum, backward", 80.0, _conv_backward),
    Operation("a training step of a tiny net", None, _training_step),
)


def operation(name: str) -> Operation:
    """Return the operation of a name."""
    return next(one for one in OPERATIONS if one.name == name)
