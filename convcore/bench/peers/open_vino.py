"""OpenVINO on the CPU: a model of one convolution, forward only.

The weight is a constant, as in a converted net: it is packed while compiling and not in a call.
Input and output are the request's own tensors, so no call copies or allocates them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from convcore.bench.layer import Layer
from convcore.bench.peers import Peer

# Importing OpenVINO reports to its makers, from a thread and a forked process that may outlive this
# one.  Without the module that does so, which this hides, OpenVINO falls back on a stub.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

import openvino  # noqa: E402
from openvino import opset13 as opset  # noqa: E402


class _OpenVino(Peer):
    module = "openvino"
    # Convolution's input is NCHW; inside, the library blocks channels as suits it.
    formats = ("contiguous",)
    maps = ("forward",)
    # Its CPU plugin computes in float32, whatever it is given.
    dtypes = ("float32",)

    def set_threads(self, threads: int) -> None:
        self._core = openvino.Core()
        self._settings = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            # Else bfloat16 where the CPU has it: another, coarser result.
            "INFERENCE_PRECISION_HINT": "f32",
            # Else one thread a core, where a core has two logical CPUs and both are asked for.
            "ENABLE_HYPER_THREADING": True,
        }

    def describe(self) -> dict[str, str]:
        return {"OpenVINO": openvino.__version__.partition("-")[0], "kernel": "oneDNN"}

    def call(self, layer: Layer, map_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        model = self._core.compile_model(
            _model(layer, operands["input"], operands["weight"]), "CPU", self._settings
        )
        request = model.create_infer_request()
        # Kept by the request, which does not copy it.
        request.set_input_tensor(openvino.Tensor(operands["input"], shared_memory=True))
        compute = request.infer

        def call() -> Any:
            compute()
            return request

        return call

    def to_numpy(self, result: Any) -> np.ndarray:
        return result.get_output_tensor().data


def _model(layer: Layer, x: np.ndarray, weight: np.ndarray) -> openvino.Model:
    """Return a model whose one operation is the layer."""
    data = opset.parameter(x.shape, x.dtype.type)
    steps = (layer.stride, layer.padding, layer.padding, layer.dilation)
    if layer.groups == 1:
        result = opset.convolution(data, opset.constant(weight), *steps)
    else:
        # (G, C_out/G, C_in/G, KH, KW)
        grouped = weight.reshape(layer.groups, -1, *weight.shape[1:])
        result = opset.group_convolution(data, opset.constant(grouped), *steps)
    return openvino.Model([result], [data], "layer")


def make_peer() -> Peer:
    """Return the peer."""
    return _OpenVino()
