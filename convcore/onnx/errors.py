"""The one error of ONNX models that cannot be read, built or exported."""

from __future__ import annotations


class OnnxError(ValueError):
    """An ONNX model is broken, refers to what is not there, or needs what convcore has not.

    The message names the operator, its version and the node where one is at fault.
    """
