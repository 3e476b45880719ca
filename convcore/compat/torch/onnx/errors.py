"""PyTorch's names of the one error that an export raises."""

from __future__ import annotations

from convcore.onnx.errors import OnnxError

OnnxExporterError = UnsupportedOperatorError = SymbolicValueError = OnnxError


class OnnxExporterWarning(UserWarning):
    """What PyTorch's exporter warns with; this one does not."""
