"""The older module of PyTorch's export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convcore.compat.torch.onnx import TrainingMode
from convcore.compat.torch.onnx import register_custom_op_symbolic as register_custom_op_symbolic
from convcore.compat.torch.onnx import (
    unregister_custom_op_symbolic as unregister_custom_op_symbolic,
)
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.nn import Module
from convcore.onnx import export as export
from convcore.onnx import is_in_onnx_export as is_in_onnx_export

_export = export


@restoring
def select_model_mode_for_export(model: Module, mode: Any) -> Iterator[Calls]:
    """Put a net into a mode of `TrainingMode`, and back at the end."""
    yield ((model.train, (model.training,)),)
    if mode is not None and mode != TrainingMode.PRESERVE:
        model.train(mode == TrainingMode.TRAINING)
