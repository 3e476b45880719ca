"""Names that the nodes of a graph see while a net is built, and limits of its size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from convcore import Tensor, nn
from convcore.onnx.errors import OnnxError
from convcore.onnx.external import ExternalData
from convcore.onnx.naming import Names, quoted
from convcore.onnx.origins import Computed, Origins, Places, Stored, stored_tensors
from convcore.onnx.values import Value, array_of, constant_of

STANDARD = ("", "ai.onnx")
# The domain, name and overload of a function.
FunctionKey = tuple[str, str, str]

# Modules for each node of the file: functions that call functions can ask for any number.
_NODES_EACH = 100
# Calls of functions and graphs inside one another: a run needs ten of Python's frames for each.
_MAX_DEPTH = 64
# Bytes that constants made at load time may have, at the start and for each byte of the file.
_BYTES_AT_START, _BYTES_EACH = 1 << 20, 16


@dataclass
class Shared:
    """State shared by all graphs of a model.

    Attributes
    ----------
    functions : dict
        The model's own functions by domain, name and overload.
    external : ExternalData
        Data in other files.
    parameters : dict
        Each with the constant that it is made of, by the stored tensors that this comes from: a
        weight that is used twice is one parameter.
    nodes_left, bytes_left : int
        Number of nodes that may still be built, and of bytes of constants that may be added to the
        file's own: a small file must not become a large net.
    built : set
        The functions that a call of has been built.
    origins : dict
        Where constants come from, and the parameters and buffers made of them.
    """

    functions: dict[FunctionKey, onnx.FunctionProto]
    external: ExternalData
    nodes_left: int
    bytes_left: int = _BYTES_AT_START
    parameters: dict[frozenset[int], list[tuple[Tensor, nn.Parameter]]] = field(
        default_factory=dict
    )
    built: set[FunctionKey] = field(default_factory=set)
    origins: Origins = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = Places(self.origins)


@dataclass
class Scope:
    """The names that the nodes of one graph see, those of the graphs around it included.

    A name stands for the value that was last given it: by a node before, by an input or initializer
    of this graph, or else in the graph outside.  Each value has a name of its own in the net, its
    name in the file if that is free.

    Attributes
    ----------
    attributes : dict
        Of the call of the function whose body this is.
    outside : Scope, optional
        Of the graph around this one.
    depth : int
        Number of graphs and functions around this one.
    is_repeated : bool
        Whether this belongs to a function that has been built before.
    values : dict
        Names of values, by names in the file.
    constants : dict
        By the values' names.
    captured : dict
        Values taken from outside: their names there, by their names here.
    replaceable : set
        Names of constants that the caller of the net may replace.
    """

    shared: Shared
    opsets: dict[str, int]
    attributes: dict[str, onnx.AttributeProto] = field(default_factory=dict)
    outside: Scope | None = None
    depth: int = 0
    is_repeated: bool = False
    values: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)
    captured: dict[str, str] = field(default_factory=dict)
    replaceable: set[str] = field(default_factory=set)
    _taken: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        if self.depth > _MAX_DEPTH:
            raise OnnxError(
                f"the model's functions call one another, or lie more than {_MAX_DEPTH} deep"
            )

    def inside(self) -> Scope:
        """Return the scope of a graph in this one."""
        return Scope(
            self.shared, self.opsets, self.attributes, self, self.depth + 1, self.is_repeated
        )

    def of_function(
        self, key: FunctionKey, opsets: dict[str, int], attributes: dict[str, onnx.AttributeProto]
    ) -> Scope:
        """Return the scope of the body of a function that a node here calls."""
        is_repeated = self.is_repeated or key in self.shared.built
        self.shared.built.add(key)
        return Scope(self.shared, opsets, attributes, None, self.depth + 1, is_repeated)

    def define(self, name: str, constant: Value = None) -> str:
        """Return the name of a new value, which a name in the file stands for from now on."""
        value = self._taken.free(name)
        self.values[name] = value
        if constant is not None:
            self.constants[value] = constant
        return value

    def resolve(self, name: str) -> str:
        """Return the name of the value that a name in the file stands for.

        Raises
        ------
        OnnxError
            No input, initializer or node before has this name.
        """
        value = self.values.get(name)
        if value is not None:
            return value
        if self.outside is None:
            raise OnnxError(
                f"it takes {quoted(name)}, which no node before it computes, and which is no input "
                "or initializer"
            )
        outer = self.outside.resolve(name)
        is_constant = outer in self.outside.constants and outer not in self.outside.replaceable
        value = self.define(name, self.outside.constants[outer] if is_constant else None)
        if not is_constant:
            self.captured[value] = outer
        return value

    def parameter(self, constant: Value) -> nn.Parameter:
        """Return the parameter made of a constant, the same for each node that uses it."""
        shared = self.shared
        sources = frozenset(id(each.proto) for each in stored_tensors(constant, shared.origins))
        uses = shared.parameters.setdefault(sources, [])
        for other, parameter in uses:
            if shared.places.are_same(constant, other):
                return parameter
        uses.append((constant, nn.Parameter(constant)))
        self.copied(constant, uses[-1][1])
        return uses[-1][1]

    def copied(self, constant: Value, copy: Tensor) -> None:
        """Note that a tensor of the net has a constant's elements."""
        self.shared.origins[copy] = self.shared.origins[constant]

    def stored(
        self, value: Value, proto: onnx.TensorProto | onnx.AttributeProto, label: str
    ) -> None:
        """Note where the file has a value, and how messages call that."""
        if isinstance(value, Tensor):
            self.shared.origins[value] = Stored(proto, label, value)

    def version(self, domain: str) -> int:
        """Return the version of a domain's operators."""
        return self.opsets.get("" if domain in STANDARD else domain, 1)

    def function(self, node: onnx.NodeProto) -> onnx.FunctionProto | None:
        """Return the model's own function that a node calls, or None."""
        return self.shared.functions.get(key_of(node, node.op_type))

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

    def constant_of(self, tensor: onnx.TensorProto) -> Value:
        """Return a stored tensor as a value.

        Raises
        ------
        OnnxError
            It cannot be read, or functions that are called again hold too much data.
        """
        value = constant_of(tensor, self.shared.external)
        size = array_of(value).nbytes
        self.shared.bytes_left += -size if self.is_repeated else _BYTES_EACH * size
        if self.shared.bytes_left < 0:
            raise OnnxError(
                "the model's functions are called so often that their constants have more than "
                f"{_BYTES_EACH} times the file's size"
            )
        return value

    def may_fold(self, op_type: str, constants: Sequence[Value]) -> bool:
        """Return whether the result of a node whose inputs are constants is small enough."""
        return 16 * _elements(op_type, constants) <= self.shared.bytes_left

    def fold(self, names: Iterable[str], results: Iterable[Value], origin: Computed) -> list[str]:
        """Save the results of a node whose inputs are constants; return the values' names."""
        values, inputs = [], origin.inputs
        for name, result in zip(names, results, strict=False):
            values.append(self.define(name, result))
            if isinstance(result, Tensor):
                self.shared.origins.setdefault(result, origin)
            if not isinstance(result, list) and not any(result is each for each in inputs):
                self.shared.bytes_left -= array_of(result).nbytes
        return values


def scope_of(proto: onnx.ModelProto, external: ExternalData) -> Scope:
    """Return the scope of a model's graph."""
    functions = {key_of(each, each.name): each for each in proto.functions}
    nodes = 10 + len(proto.graph.node) + sum(len(f.node) for f in proto.functions)
    shared = Shared(functions, external, _NODES_EACH * nodes)
    return Scope(shared, opsets_of(proto.opset_import))


def key_of(proto: onnx.NodeProto | onnx.FunctionProto, name: str) -> FunctionKey:
    """Return the key of a function, or of the one that a node calls."""
    domain = "" if proto.domain in STANDARD else proto.domain
    return domain, name, getattr(proto, "overload", "")


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
            raise OnnxError(f"opset {version} of domain {quoted(domain)}: a version is at least 1")
    return versions


def _elements(op_type: str, constants: Sequence[Value]) -> int:
    """Return an upper bound of the number of elements of a folded node's result."""
    shapes = [tuple(each.shape) for each in constants if isinstance(each, Tensor)]
    if op_type == "Gather" and len(shapes) == 2:
        slices = math.prod(shapes[0]) // max(1, min(shapes[0], default=1))
        return slices * math.prod(shapes[1])
    total = sum(map(math.prod, shapes))
    try:
        return max(total, math.prod(np.broadcast_shapes(*shapes)))
    except ValueError:
        return total
