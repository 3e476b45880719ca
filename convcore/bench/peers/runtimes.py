"""ONNX Runtime and OpenVINO on the CPU: a graph of one convolution, or a net from an ONNX file.

Both compute forward only, in float32, on inputs in NCHW; inside they block channels as suits them.
A layer's weight is a constant of its graph, as in an exported net, so it is packed while loading
and not in a call; input and output are the library's own, so no call copies them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from convcore.bench.layers import Layer
from convcore.bench.peers import Peer

# Of 2022: any newer library reads them, and Conv has not changed since.
_OPSET, _IR_VERSION = 17, 8
_ERRORS_ONLY = 3


class _Runtime(Peer):
    formats = ("contiguous",)
    passes = ("forward",)
    dtypes = ("float32",)


class _OnnxRuntime(_Runtime):
    def __init__(self) -> None:
        import onnx
        import onnxruntime

        self._onnx, self._onnxruntime = onnx, onnxruntime

    def set_threads(self, threads: int) -> None:
        self._threads = threads

    def describe(self) -> dict[str, str]:
        versions = {"ONNX Runtime": self._onnxruntime.__version__, "onnx": self._onnx.__version__}
        return {**versions, "kernel": "MLAS"}

    def call(self, layer: Layer, pass_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        graph = _onnx_graph(layer, operands["input"], operands["weight"])
        session = self._session(graph.SerializeToString())
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

    def net_call(self, file: Path, x: np.ndarray) -> Callable[[], Any]:
        """Return a run of the net, with all that the library does to make nets faster."""
        session = self._session(str(file))
        name = session.get_inputs()[0].name
        return lambda: session.run(None, {name: x})[0]

    def _session(self, model: str | bytes) -> Any:
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.log_severity_level = _ERRORS_ONLY
        return self._onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


def _onnx_graph(layer: Layer, x: np.ndarray, weight: np.ndarray) -> Any:
    """Return a model whose one node is the layer.

    Built with the ``onnx`` package rather than by writing its protobuf by hand: whoever has ONNX
    Runtime mostly has it, it is kept in step with the format, and it refuses a graph that is none.
    """
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node(
        "ConvTranspose" if layer.transposed else "Conv",
        ["input", "weight"],
        ["output"],
        kernel_shape=layer.kernel,
        strides=layer.stride,
        pads=layer.padding * 2,
        dilations=layer.dilation,
        group=layer.groups,
    )
    shapes = {"input": x.shape, "output": layer.shapes["grad_output"]}
    source, result = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    )
    constants = [numpy_helper.from_array(weight, "weight")]
    return helper.make_model(
        helper.make_graph([node], "layer", [source], [result], constants),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )


class _OpenVino(_Runtime):
    def __init__(self) -> None:
        # Importing OpenVINO reports to its makers, from a thread and a forked process that may
        # outlive this one.  Without the module that does so, OpenVINO falls back on a stub.
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
        import openvino
        from openvino import opset13

        self._openvino, self._opset, self._core = openvino, opset13, openvino.Core()

    def set_threads(self, threads: int) -> None:
        self._settings = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            # Else bfloat16 where the CPU has it: another, coarser result.
            "INFERENCE_PRECISION_HINT": "f32",
        }

    def can(self, layer: Layer) -> bool:
        return not layer.transposed

    def describe(self) -> dict[str, str]:
        version = self._openvino.__version__.partition("-")[0]
        return {"OpenVINO": version, "kernel": "oneDNN"}

    def call(self, layer: Layer, pass_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        model = self._model(layer, operands["input"], operands["weight"])
        # Hyper-threading: else one thread a core, where a core has two logical CPUs and both are
        # asked for.
        settings = {**self._settings, "NUM_STREAMS": 1, "ENABLE_HYPER_THREADING": True}
        request = self._core.compile_model(model, "CPU", settings).create_infer_request()
        # Kept by the request, which does not copy it.
        shared = self._openvino.Tensor(operands["input"], shared_memory=True)
        request.set_input_tensor(shared)
        compute = request.infer

        def call() -> Any:
            compute()
            return request

        return call

    def to_numpy(self, result: Any) -> np.ndarray:
        return result.get_output_tensor().data

    def net_call(self, file: Path, x: np.ndarray) -> Callable[[], Any]:
        """Return a run of the net, in float32 and for the least time of one call."""
        model = self._core.read_model(str(file))
        request = self._core.compile_model(model, "CPU", self._settings).create_infer_request()
        return lambda: request.infer({0: x})[0]

    def _model(self, layer: Layer, x: np.ndarray, weight: np.ndarray) -> Any:
        """Return a model whose one operation is the layer."""
        opset = self._opset
        data = opset.parameter(x.shape, x.dtype.type)
        steps = (layer.stride, layer.padding, layer.padding, layer.dilation)
        if layer.groups == 1:
            result = opset.convolution(data, opset.constant(weight), *steps)
        else:
            # (G, C_out/G, C_in/G, KH, KW)
            grouped = weight.reshape(layer.groups, -1, *weight.shape[1:])
            result = opset.group_convolution(data, opset.constant(grouped), *steps)
        return self._openvino.Model([result], [data], "layer")


MAKERS = {"onnxruntime": _OnnxRuntime, "openvino": _OpenVino}
