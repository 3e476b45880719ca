"""Names of `torch.onnx` that only programs written for PyTorch ask for; the rest is convcore's."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from convcore.compat.torch.onnx.errors import OnnxExporterError as OnnxExporterError


class TrainingMode(IntEnum):
    """In which mode a net is exported; here in evaluation mode."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """What becomes of operators that ONNX has not; here the export is refused."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def register_custom_op_symbolic(*args: Any, **kwargs: Any) -> None:
    """Ignore how an operator would be exported."""


unregister_custom_op_symbolic = register_custom_op_symbolic
