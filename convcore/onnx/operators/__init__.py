"""ONNX's operators as functions on tensors, a family a file, each entered into one table.

A function takes the operator's inputs in order, None for one that is left out, and its attributes
as keyword arguments.  What convcore can differentiate is differentiable here.  Numbers of other
dtypes than tensors have arithmetic for are computed by NumPy.

The meaning of each is that of the ONNX standard's operator reference.
"""

from convcore.onnx.operators import (  # noqa: F401 - each enters its operators into the table
    activation,
    convolution,
    detection,
    elementwise,
    generation,
    indexing,
    linear,
    losses,
    normalization,
    padding,
    pooling,
    quantization,
    recurrent,
    reduction,
    resizing,
    sequences,
    shapes,
    text,
)
from convcore.onnx.operators.registry import OPERATORS, Operator

__all__ = ["OPERATORS", "Operator"]
