"""What the nodes of a graph see while a net is built: constants, functions, and limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from convcore import Tensor, nn
from convcore.onnx.errors import OnnxError
from convcore.onnx.values import Value, array_of

STANDARD = ("", "ai.onnx")

# Modules for each node of the file: functions that call functions can ask for any number.
_NODES_EACH = 100
_BYTES_TO_FOLD = 1 << 20


@dataclass
class Shared:
    """What all graphs of a model share.

    Attributes
    ----------
    functions : dict
        The model's own functions by domain, name and overload.
    parameters : dict
        By the constant that they are made of, so that a weight used twice is one parameter.
    nodes_left, bytes_left : int
        How many nodes may still be built, and how much may be folded: a small file must not become
        a large net.
    """

    functions: dict[tuple[str, str, str], onnx.FunctionProto]
    bytes_left: int
    nodes_left: int
    parameters: dict[int, nn.Parameter] = field(default_factory=dict)


@dataclass
class Scope:
    """The names that the nodes of one graph see, those of the graphs around it included."""

    shared: Shared
    opsets: dict[str, int]
    constants: dict[str, Value] = field(default_factory=dict)
    attributes: dict[str, onnx.AttributeProto] = field(default_factory=dict)
    outside: Scope | None = None

    def constant(self, name: str) -> Value:
        """Return a constant, or None."""
        value = self.constants.get(name)
        return self.outside.constant(name) if value is None and self.outside else value

    def parameter(self, constant: Value) -> nn.Parameter:
        """Return the parameter made of a constant, the same for each node that uses it."""
        made = self.shared.parameters
        if id(constant) not in made:
            made[id(constant)] = nn.Parameter(constant)
        return made[id(constant)]

    def version(self, domain: str) -> int:
        """Return the version of a domain's operators."""
        return self.opsets.get("" if domain in STANDARD else domain, 1)

    def function(self, node: onnx.NodeProto) -> onnx.FunctionProto | None:
        """Return the model's own function that a node calls, or None."""
        key = (node.domain, node.op_type, getattr(node, "overload", ""))
        return self.shared.functions.get(key)

    def count_node(self) -> None:
        """Count one more node.

        Raises
        ------
        OnnxError
            There are too many.
        """
        self.shared.nodes_left -= 1
        if self.shared.nodes_left < 0:
            raise OnnxError("the model's functions make more than 100 nodes of each")

    def may_fold(self, op_type: str, constants: Sequence[Value]) -> bool:
        """Return whether what a node makes of constants is small enough to be kept."""
        return 16 * _elements(op_type, constants) <= self.shared.bytes_left

    def fold(self, names: Iterable[str], values: Iterable[Value]) -> None:
        """Keep what a node made of constants."""
        for name, value in zip(names, values, strict=False):
            self.constants[name] = value
            if not isinstance(value, list) and not any(value is c for c in self.constants):
                self.shared.bytes_left -= array_of(value).nbytes


def scope_of(proto: onnx.ModelProto) -> Scope:
    """Return the scope of a model's graph."""
    functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in proto.functions}
    nodes = 10 + len(proto.graph.node) + sum(len(f.node) for f in proto.functions)
    shared = Shared(functions, _BYTES_TO_FOLD + 16 * proto.ByteSize(), _NODES_EACH * nodes)
    return Scope(shared, opsets_of(proto.opset_import))


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Return the version of each domain's operators.

    Raises
    ------
    OnnxError
        A version is no positive number.
    """
    versions = {("" if o.domain in STANDARD else o.domain): o.version for o in imports}
    for domain, version in versions.items():
        if not 0 < version < 1 << 31:
            raise OnnxError(f"opset {version} of domain {domain!r}: a version is at least 1")
    return versions


def _elements(op_type: str, constants: Sequence[Value]) -> int:
    """Return how many elements the result of a node that is folded has, at most."""
    shapes = [tuple(each.shape) for each in constants if isinstance(each, Tensor)]
    if op_type == "Gather" and len(shapes) == 2:
        slices = math.prod(shapes[0]) // max(1, min(shapes[0], default=1))
        return slices * math.prod(shapes[1])
    total = sum(map(math.prod, shapes))
    try:
        return max(total, math.prod(np.broadcast_shapes(*shapes)))
    except ValueError:
        return total
