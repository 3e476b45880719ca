"""ONNX's backend interface, so that the standard's own tests run on convcore."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend as BaseBackend
from onnx.backend.base import BackendRep

from convcore import Tensor
from convcore.autograd import no_grad
from convcore.onnx import load
from convcore.onnx.graph import Graph
from convcore.onnx.values import Value, array_of, value_of


class Prepared(BackendRep):
    """A net that takes and returns arrays.

    Parameters
    ----------
    net : Graph
    """

    def __init__(self, net: Graph) -> None:
        self.net = net

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the outputs for inputs: a list in order, or a dict by name."""
        if isinstance(inputs, dict):
            values = {name: _value(each) for name, each in inputs.items()}
        else:
            given = inputs if isinstance(inputs, list | tuple) else [inputs]
            names = (*self.net.input_names, *self.net.optional_names)
            values = dict(zip(names, map(_value, given), strict=False))
        absent = dict.fromkeys(self.net.input_names)
        with no_grad():
            return tuple(map(_array, self.net.run({**absent, **values})))


def _value(given: Any) -> Value:
    if given is None or isinstance(given, Tensor):
        return given
    return (
        [_value(each) for each in given] if isinstance(given, list) else value_of(np.asarray(given))
    )


def _array(value: Value) -> Any:
    if value is None:
        return None
    return list(map(_array, value)) if isinstance(value, list) else array_of(value)


class Backend(BaseBackend):
    """The standard's interface: prepare, run_model, run_node, supports_device."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Return a model that runs on arrays."""
        return Prepared(load(model))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Return one node's outputs."""
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        unknown = [onnx.helper.make_empty_tensor_value_info(name) for name in node.input if name]
        results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", unknown, results)
        opset = [onnx.helper.make_opsetid(node.domain, version)]
        return cls.prepare(onnx.helper.make_model(graph, opset_imports=opset)).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether it is the CPU."""
        return device == "CPU"
