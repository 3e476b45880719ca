"""A net as a file: written by PyTorch, read and run by ONNX Runtime or OpenVINO."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from convcore.bench.nets.catalogue import Net
from convcore.bench.nets.tasks import loaded, pictures

_ERRORS_ONLY = 3


def export(torch: Any, net: Net, task: str, weights: Path, file: Path) -> None:
    """Write a net, in evaluation mode and for one shape of inputs, as ONNX."""
    model = loaded(torch, net, weights).eval()
    x = torch.from_numpy(pictures(net, task))
    with warnings.catch_warnings():
        # The older of its two exporters: the newer one needs packages that few have.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            model, (x,), str(file), dynamo=False, input_names=["input"], output_names=["output"]
        )


def onnx_runtime_call(file: Path, x: np.ndarray, threads: int) -> Callable[[], Any]:
    """Return a run of the net in ONNX Runtime, with all that it does to make nets faster."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = _ERRORS_ONLY
    session = onnxruntime.InferenceSession(str(file), options, ["CPUExecutionProvider"])
    return lambda: session.run(None, {"input": x})[0]


def openvino_call(file: Path, x: np.ndarray, threads: int) -> Callable[[], Any]:
    """Return a run of the net in OpenVINO, in float32 and for the least time of one call."""
    import openvino

    core = openvino.Core()
    hints = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    request = core.compile_model(core.read_model(str(file)), "CPU", hints).create_infer_request()
    return lambda: request.infer({"input": x})[0]
