"""PyTorch's names of the one error that an export raises."""

from __future__ import annotations

try:
    from convcore.onnx.errors import OnnxError
except ModuleNotFoundError:  # of the package onnx, without which there is no export

    class OnnxError(ValueError):  # type: ignore[no-redef]
        """Raised by nothing."""


OnnxExporterError = UnsupportedOperatorError = SymbolicValueError = OnnxError


class OnnxExporterWarning(UserWarning):
    """What PyTorch's exporter warns with; this one does not."""
