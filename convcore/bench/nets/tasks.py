"""What is done with a net, in a library that has PyTorch's names: trained for a step, or run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import convcore
from convcore.bench.nets.catalogue import TRAIN, Net

# Small: the same batch is learned from again and again, and must not make numbers overflow.
_STEP = {"lr": 1e-3, "momentum": 0.9}


def make_net(library: Any, net: Net) -> Any:
    """Make a net with random weights, the same at every call."""
    library.manual_seed(0)
    return getattr(convcore.models, net.function)(library=library, **net.options)


def pictures(net: Net, task: str) -> np.ndarray:
    """Return the input, (N, C, H, W), the same at every call."""
    rng = np.random.default_rng(1)
    return rng.standard_normal(net.input_shape(task), dtype=np.float32)


def save_weights(model: Any, file: Path) -> None:
    """Save a net's parameters and buffers, by their names."""
    np.savez(file, **{name: value.numpy() for name, value in model.state_dict().items()})


def loaded(library: Any, net: Net, weights: Path) -> Any:
    """Make a net with saved parameters and buffers."""
    model = make_net(library, net)
    with np.load(weights) as saved:
        model.load_state_dict({name: library.from_numpy(saved[name]) for name in saved.files})
    return model


def call_of(
    library: Any, net: Net, task: str, format: str, weights: Path, compiled: bool = False
) -> Callable[[], Any]:
    """Return what is timed; it returns the outputs, or the loss before the step.

    compiled : whether the library's ``compile`` has made the net faster
    """
    model = loaded(library, net, weights)
    x = library.from_numpy(pictures(net, task))
    if format == "channels_last":
        model = model.to(memory_format=library.channels_last)
        x = x.to(memory_format=library.channels_last)
    model.train(task == TRAIN)
    if compiled:
        model = library.compile(model)
    if task == TRAIN:
        return _training_step(library, net, model, x)
    return _inference(library, model, x)


def _training_step(library: Any, net: Net, model: Any, x: Any) -> Callable[[], Any]:
    loss_of = getattr(library.nn.functional, net.loss)
    optimizer = library.optim.SGD(model.parameters(), **_STEP)
    library.manual_seed(0)
    if net.loss == "binary_cross_entropy":
        n, _, h, w = x.shape
        target = library.rand(n, 1, h, w)
    else:
        target = library.randint(0, net.classes, (x.shape[0],))

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _inference(library: Any, model: Any, x: Any) -> Callable[[], Any]:
    optimize = getattr(library, "optimize_for_inference", None)
    if optimize is not None:
        model = optimize(model, x)

    def run() -> Any:
        with library.no_grad():
            return model(x)

    return run
