"""Functions as nets, and what ONNX Runtime computes of the models that are exported from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import convcore
from convcore import nn


class Call(nn.Module):
    """A function as a net."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def session_of(model: str | Path | bytes) -> Any:
    """Return ONNX Runtime's session of a model; of one thread, for others would spin."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


def runtime_results(model: str | Path | bytes, *inputs: convcore.Tensor) -> list[np.ndarray] | None:
    """Return ONNX Runtime's results of a model, or None where it is not installed."""
    try:
        session = session_of(model)
    except ImportError:
        return None
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, (x.numpy() for x in inputs), strict=True)))
