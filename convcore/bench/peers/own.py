"""convcore itself, timed like any other peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import convcore
from convcore import engine
from convcore.bench.layer import Layer
from convcore.bench.peers import Peer
from convcore.engine.runtime import threads as engine_threads
from convcore.kernels.runtime import _isa


class _Own(Peer):
    module = "convcore"

    def set_threads(self, threads: int) -> None:
        engine.set_num_threads(threads)

    def describe(self) -> dict[str, str]:
        blas = engine_threads.blas()
        return {
            "convcore": convcore.__version__,
            "instructions": _isa.name(),
            "BLAS": f"{blas.name} {blas.version}",
            "kernel": str(blas.architecture),
            "OpenMP": str(engine_threads.openmp() or "none"),
        }

    def algorithm(self, layer: Layer, map_name: str, dtype: str, channels_last: bool) -> str:
        plan = engine.plan_conv(layer.geometry, np.dtype(dtype), channels_last)
        return getattr(plan, map_name).algorithm

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


def forbid_winograd() -> None:
    """Hold this process to strict mode: direct summation only."""
    convcore.backends.conv.strict = True


def make_peer() -> Peer:
    """Return the peer."""
    return _Own()
