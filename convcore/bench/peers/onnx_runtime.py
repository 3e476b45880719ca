"""ONNX Runtime on the CPU: a graph of one Conv, forward only.

The graph is built with the ``onnx`` package rather than by writing its protobuf by hand: whoever
has ONNX Runtime mostly has it, it is kept in step with the format, and it refuses a graph that is
none.  The weight is a constant of the graph, as in an exported net, so it is packed while loading
and not in a call; input and output are bound, so no call copies them to or from NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from convcore.bench.layer import Layer
from convcore.bench.peers import Peer

# Of 2022: any newer library reads them, and Conv has not changed since.
_OPSET, _IR_VERSION = 17, 8
_ERRORS_ONLY = 3


class _OnnxRuntime(Peer):
    module = "onnxruntime"
    # Conv's input is NCHW; inside, the library blocks channels as suits it.
    formats = ("contiguous",)
    maps = ("forward",)
    # Its CPU provider has no Conv in float64.
    dtypes = ("float32",)

    def set_threads(self, threads: int) -> None:
        self._threads = threads

    def describe(self) -> dict[str, str]:
        return {"ONNX Runtime": onnxruntime.__version__, "onnx": onnx.__version__, "kernel": "MLAS"}

    def call(self, layer: Layer, map_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        graph = _graph(layer, operands["input"], operands["weight"]).SerializeToString()
        session = onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])
        binding = session.io_binding()
        binding.bind_cpu_input("input", operands["input"])
        binding.bind_output("output")
        compute = session.run_with_iobinding

        def call() -> Any:
            compute(binding)
            return binding

        return call

    def to_numpy(self, result: Any) -> np.ndarray:
        return result.copy_outputs_to_cpu()[0]


def _graph(layer: Layer, x: np.ndarray, weight: np.ndarray) -> onnx.ModelProto:
    """Return a model whose one node is the layer."""
    node = helper.make_node(
        "Conv",
        ["input", "weight"],
        ["output"],
        kernel_shape=layer.kernel,
        strides=layer.stride,
        pads=layer.padding * 2,
        dilations=layer.dilation,
        group=layer.groups,
    )
    element = onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("input", element, x.shape)]
    outputs = [helper.make_tensor_value_info("output", element, layer.geometry.output_shape)]
    constants = [numpy_helper.from_array(weight, "weight")]
    return helper.make_model(
        helper.make_graph([node], "layer", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )


def make_peer() -> Peer:
    """Return the peer."""
    return _OnnxRuntime()
