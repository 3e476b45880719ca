"""What a worker process does with nets: the commands behind `measure`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from convcore.bench.nets import exchange, tasks
from convcore.bench.nets.catalogue import RUN, RUN_ONE, TASKS, TRAIN, net_named

# The formats that a library's nets may lie in; one that chooses by itself has the empty name.
FORMATS = {"torch": ("contiguous", "channels_last"), "onnxruntime": ("",), "openvino": ("",)}
OWN_FORMATS = {TRAIN: ("contiguous", "channels_last"), RUN: ("",), RUN_ONE: ("",)}
TRAINERS = ("torch",)
# Of those that have a compiler of nets, the same formats with this behind them.
COMPILERS, COMPILED = ("torch",), " compiled"


def formats_of(peer: str, own: bool, task: str, compiled: bool = False) -> tuple[str, ...]:
    """Return the formats in which a library does a task; none if it cannot."""
    assert task in TASKS
    if own:
        return OWN_FORMATS[task]
    if task == TRAIN and peer not in TRAINERS:
        return ()
    formats = FORMATS[peer]
    if compiled and peer in COMPILERS:
        formats += tuple(format + COMPILED for format in formats)
    return formats


def save_weights(module: str, net: str, file: str) -> None:
    """Make a net and save its weights, for all libraries to load."""
    library = importlib.import_module(module)
    tasks.save_weights(tasks.make_net(library, net_named(net)), Path(file))


def export(net: str, task: str, weights: str, file: str) -> None:
    """Write a net as ONNX."""
    torch = importlib.import_module("torch")
    exchange.export(torch, net_named(net), task, Path(weights), Path(file))


def call_of(
    module: str, threads: int, net: str, task: str, format: str, folder: str
) -> Callable[[], Any]:
    """Return what is timed."""
    one, weights = net_named(net), Path(folder, "weights.npz")
    if module in ("onnxruntime", "openvino"):
        make = {"onnxruntime": exchange.onnx_runtime_call, "openvino": exchange.openvino_call}
        return make[module](Path(folder, "net.onnx"), tasks.pictures(one, task), threads)
    library, plain = importlib.import_module(module), format.removesuffix(COMPILED)
    return tasks.call_of(library, one, task, plain, weights, plain != format)


def as_array(result: Any) -> np.ndarray:
    """Return a tensor's or an array's numbers."""
    return np.asarray(result.detach().numpy() if hasattr(result, "detach") else result)
