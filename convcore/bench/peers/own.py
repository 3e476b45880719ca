"""convcore itself, timed like any other peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import convcore
from convcore import engine
from convcore.bench.layer import FORMATS, Layer
from convcore.bench.peers import Peer, in_format
from convcore.engine import threads as engine_threads


class _Own:
    formats = FORMATS
    module = "convcore"
    most_rounds = 1_000_000

    def set_threads(self, threads: int) -> None:
        engine.set_num_threads(threads)

    def describe(self) -> dict[str, str]:
        blas = engine_threads.blas()
        return {
            "convcore": convcore.__version__,
            "BLAS": f"{blas.name} {blas.version}",
            "kernel": str(blas.architecture),
            "OpenMP": str(engine_threads.openmp() or "none"),
        }

    def convert(self, array: np.ndarray, channels_last: bool) -> np.ndarray:
        return in_format(array, channels_last)

    def call(self, layer: Layer, map_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        x, w, gy = (operands[name] for name in ("input", "weight", "grad_output"))
        steps: dict[str, Any] = layer.steps
        size = (layer.h, layer.w)
        # Looked up once, as a program's own loop would have them: lambdas cost all peers the same.
        calls: dict[str, Callable[[], Any]] = {
            "forward": lambda: engine.conv_forward(x, w, **steps),
            "input_grad": lambda: engine.conv_input_grad(gy, w, size, **steps),
            "weight_grad": lambda: engine.conv_weight_grad(x, gy, layer.kernel, **steps),
        }
        return calls[map_name]

    def to_numpy(self, result: Any) -> np.ndarray:
        return result


def make_peer() -> Peer:
    """Return the peer."""
    return _Own()
