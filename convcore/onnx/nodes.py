"""Modules of nodes: a function of an operator with its attributes, and layers that have weights.

Convolutions, batch norms and activations that a layer of ``nn`` can do are that layer, so that
`optimize_for_inference` fuses them as it does other nets'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from convcore import nn
from convcore._errors.text import printable
from convcore.onnx.errors import pass_on
from convcore.onnx.operators import OPERATORS
from convcore.onnx.operators.control_flow import CONTROL_FLOW, call
from convcore.onnx.values import Value


class Node(nn.Module):
    """A node of an ONNX graph.

    Attributes
    ----------
    onnx_name : str
        The node's name in the graph, perhaps empty.
    op_type : str
    description : str
        The operator with its version, and the node, for messages.
    """

    onnx_name = op_type = description = ""

    def extra_repr(self) -> str:
        """Return the layer's settings, if it has any, and the node's name in the graph."""
        settings = super().extra_repr()
        return ", ".join(
            filter(None, (settings, self.onnx_name and f"onnx_name={self.onnx_name!r}"))
        )


class Called(Node):
    """A node that calls a function from a table, and is pickled by the operator's name."""

    function: Callable[..., Any] | None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "function": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.function = self._function_of(self.op_type)

    def _function_of(self, op_type: str) -> Callable[..., Any]:
        raise NotImplementedError

    def _get_name(self) -> str:
        return printable(self.op_type)


class Operation(Called):
    """A node that calls an operator's function.

    Parameters
    ----------
    function : function of values
    options : dict
        The attributes, as keyword arguments.
    weights : dict of int to (str, Parameter)
        By the position of the input that they take; the others are given to `forward`.

    Attributes
    ----------
    proto : bytes
        The node in the file, without names: a part of a protocol buffer would hold all of it.
    opset : int
    """

    proto = b""
    opset = 0

    def __init__(
        self,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        weights: Mapping[int, tuple[str, nn.Parameter]],
    ) -> None:
        super().__init__()
        self.function, self.options = function, dict(options)
        self._slots = sorted((position, name) for position, (name, _) in weights.items())
        for name, weight in weights.values():
            self.register_parameter(name, weight)

    def forward(self, *inputs: Value) -> Any:
        """Return what the operator computes."""
        return self.function(*self.values(inputs), **self.options)  # type: ignore[misc]

    def values(self, inputs: Sequence[Value]) -> list[Value]:
        """Return all that the operator takes: inputs, and weights at their positions."""
        values = list(inputs)
        for position, name in self._slots:
            values.insert(position, getattr(self, name))
        return values

    def _function_of(self, op_type: str) -> Callable[..., Any]:
        return OPERATORS[op_type].function


class Subgraphs(Called):
    """A node with graphs inside it (If, Loop, Scan), or a function's body.

    Parameters
    ----------
    function : function
        Takes the node's inputs, and by keyword the attributes and the graphs as functions.
    options : dict
    bodies : dict of str to Graph
        By the attribute's name.
    captured : dict of str to sequence of int
        Which of the values that follow the node's inputs each body takes from the graph outside.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        bodies: Mapping[str, nn.Module],
        captured: Mapping[str, Sequence[int]],
    ) -> None:
        super().__init__()
        self.function, self.options, self._captured = function, dict(options), dict(captured)
        self._n_captured = len({k for each in captured.values() for k in each})
        for name, body in bodies.items():
            self.add_module(name, body)

    def forward(self, *inputs: Value) -> Any:
        """Return what the operator computes."""
        own = len(inputs) - self._n_captured
        bodies = {
            name: self._body(name, [inputs[own + k] for k in captured])
            for name, captured in self._captured.items()
        }
        return self.function(*inputs[:own], **self.options, **bodies)  # type: ignore[misc]

    def _function_of(self, op_type: str) -> Callable[..., Any]:
        return CONTROL_FLOW.get(op_type, call)

    def _body(self, name: str, outside: Sequence[Value]) -> Callable[..., list[Value]]:
        graph: Any = self._modules[name]

        def run(*args: Value) -> list[Value]:
            count = len(graph.input_names)
            own = (*args, *(None,) * (count - len(args)))[:count]
            try:  # called as a module, so that its hooks fire
                result = graph(*own, *outside)
            except Exception as error:
                pass_on(error)
                raise
            return [result] if len(graph.output_names) == 1 else list(result)

        return run


class Conv1d(Node, nn.Conv1d):
    """nn.Conv1d of a node."""


class Conv2d(Node, nn.Conv2d):
    """nn.Conv2d of a node."""


class Conv3d(Node, nn.Conv3d):
    """nn.Conv3d of a node."""


class BatchNorm(Node, nn.BatchNorm2d):
    """Batch normalization of a node: of any number of dimensions."""

    def _check_input_dim(self, input: Value) -> None:
        pass


class ReLU(Node, nn.ReLU):
    """nn.ReLU of a node."""


class ReLU6(Node, nn.ReLU6):
    """nn.ReLU6 of a node: Clip from 0 to 6."""


class LeakyReLU(Node, nn.LeakyReLU):
    """nn.LeakyReLU of a node."""


class Linear(Node, nn.Linear):
    """nn.Linear of a node: Gemm of rows and a constant matrix."""


class Dropout(Node, nn.Dropout):
    """nn.Dropout of a node: active in training mode."""
