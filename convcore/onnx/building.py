"""From an ONNX graph to a net: constants folded, weights made parameters, nodes made modules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, NodeProto, defs, helper

from convcore import Tensor, nn
from convcore.autograd import no_grad
from convcore.onnx.errors import OnnxError
from convcore.onnx.graph import Graph, Step
from convcore.onnx.layers import layer_of
from convcore.onnx.naming import identifier, module_names
from convcore.onnx.nodes import Node, Operation, Subgraphs
from convcore.onnx.operators import OPERATORS
from convcore.onnx.operators.control_flow import CONTROL_FLOW, Kind, call
from convcore.onnx.scope import STANDARD, Scope, opsets_of, scope_of
from convcore.onnx.values import Value, constant_of, dtype_of, is_differentiable


def build_model(proto: onnx.ModelProto) -> Graph:
    """Return the net of a model.

    Raises
    ------
    OnnxError
        It is broken, or has operators that are not supported: all are named, before anything runs.
    """
    scope = scope_of(proto)
    try:
        faults = list(dict.fromkeys(_unsupported(proto.graph.node, scope, set())))
        if faults:
            more = f" and {len(faults) - 8} more" if len(faults) > 8 else ""
            raise OnnxError(f"not supported: {'; '.join(faults[:8])}{more}")
        net = build_graph(proto.graph, scope)
        net.metadata = {each.key: each.value for each in proto.metadata_props}
        return net
    except RecursionError:
        raise OnnxError(
            "the model's functions call one another, or its graphs lie too deep"
        ) from None


def build_graph(proto: onnx.GraphProto, scope: Scope) -> Graph:
    """Return the net of a graph whose names are looked up in a scope."""
    for tensor in proto.initializer:
        scope.constants[tensor.name] = constant_of(tensor)
    for sparse in proto.sparse_initializer:
        raise OnnxError(f"sparse tensor {sparse.values.name!r}: sparse tensors are not supported")
    inputs = [each.name for each in proto.input if each.name not in scope.constants]
    outputs = [each.name for each in proto.output]
    return _Builder(scope, inputs, outputs).build(proto.node)


class _Builder:
    """The net of a list of nodes, step by step."""

    def __init__(self, scope: Scope, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.scope, self.inputs, self.outputs = scope, inputs, outputs
        self.modules: dict[str, nn.Module] = {}
        self.steps: list[Step] = []

    def build(self, nodes: Sequence[NodeProto]) -> Graph:
        own = ("input_names", "output_names", "metadata", "steps", "constants")
        names = module_names(nodes, [*dir(Graph), *nn.Module().__dict__, *own])
        for node, name in zip(nodes, names, strict=True):
            try:
                self.scope.count_node()
                self._add(node, name)
            except RecursionError:
                raise
            except _OF_BAD_NODES as error:
                raise OnnxError(f"{describe(node, self.scope)}: {error}") from error
        if self.scope.outside is None:
            self._check_names()
        used = {each for step in self.steps for each in step.inputs} | set(self.outputs)
        constants = {each: self.scope.constant(each) for each in used}
        return Graph(
            self.modules,
            self.steps,
            self.inputs,
            self.outputs,
            {name: value for name, value in constants.items() if value is not None},
        )

    def _check_names(self) -> None:
        """Refuse names that nothing computes, and results that are used before they are there."""
        known = {"", *self.inputs}
        for module, inputs, outputs, _ in self.steps:
            for each in inputs:
                if each not in known and self.scope.constant(each) is None:
                    raise OnnxError(
                        f"node {module!r} takes {each!r}, which no node before it computes"
                    )
            known.update(outputs)
        for each in self.outputs:
            if each not in known and self.scope.constant(each) is None:
                raise OnnxError(f"no node of the graph computes its output {each!r}")

    def _add(self, node: NodeProto, name: str) -> None:
        """Add a node's module and the step that calls it, or fold it."""
        options, graphs = self._attributes(node)
        body = _body_of(node, self.scope)
        if body is not None:
            self._step(name, node, self._function(node, body), node.input)
        elif graphs:
            control = self._control(node, options, graphs)
            self._step(name, node, control, (*node.input, *control.captured))
        else:
            self._operation(name, node, options)

    def _control(
        self, node: NodeProto, options: dict[str, Any], graphs: dict[str, onnx.GraphProto]
    ) -> Subgraphs:
        """Return the module of a node that has graphs."""
        bodies = {key: build_graph(graph, self._inside()) for key, graph in graphs.items()}
        for body in bodies.values():
            body.captured_names = tuple(sorted(_captured(body)))
        captured = tuple(sorted({name for b in bodies.values() for name in b.captured_names}))
        options = {**options, "outputs": len(_outputs(node))}
        if node.op_type in ("Loop", "Scan"):
            options["kinds"] = [_kind_of(each) for each in graphs["body"].output]
        return Subgraphs(CONTROL_FLOW[node.op_type], options, bodies, captured)

    def _operation(self, name: str, node: NodeProto, options: dict[str, Any]) -> None:
        """Add an operator's module, or fold it."""
        operator, schema = OPERATORS[node.op_type], _schema(node, self.scope)
        outputs = _outputs(node)
        constants = [self.scope.constant(each) if each else None for each in node.input]
        given = _with_defaults(schema, options)
        options = operator.options(given, schema.since_version, len(outputs))
        known = [c is not None or not each for c, each in zip(constants, node.input, strict=True)]
        if operator.folds and all(known) and self.scope.may_fold(node.op_type, constants):
            with no_grad():
                results = operator.function(*constants, **options)
            self.scope.fold(outputs, results if len(outputs) > 1 else (results,))
            return
        if all(known[1:]):
            own = [
                self.scope.parameter(c) if k in operator.weights and is_differentiable(c) else c
                for k, c in enumerate(constants)
            ]
            module = layer_of(node.op_type, own, options, len(outputs))
            if module is not None:
                self._step(name, node, module, node.input[:1])
                return
        weights = {
            position: (_input_name(schema, position), self.scope.parameter(constant))
            for position, constant in enumerate(constants)
            if position in operator.weights and _is_weight(constant)
        }
        rest = tuple(each for position, each in enumerate(node.input) if position not in weights)
        self._step(name, node, Operation(operator.function, options, weights), rest)

    def _step(self, name: str, node: NodeProto, module: Node, inputs: Sequence[str]) -> None:
        module.onnx_name, module.op_type = node.name, node.op_type
        self.modules[name] = module
        self.steps.append(Step(name, tuple(inputs), _outputs(node)))

    def _inside(self) -> Scope:
        scope = self.scope
        return Scope(scope.shared, scope.opsets, attributes=scope.attributes, outside=scope)

    def _function(self, node: NodeProto, body: onnx.FunctionProto) -> Subgraphs:
        """Return the module of a call of a function: of the model, or of the standard."""
        around = self.scope.attributes
        given = {a.name: around.get(a.ref_attr_name, a) for a in node.attribute}
        given = {name: each for name, each in given.items() if not each.ref_attr_name}
        defaults = {each.name: each for each in body.attribute_proto}
        if body.domain in STANDARD:
            schema = _schema(node, self.scope)
            defaults |= {
                k: a.default_value for k, a in schema.attributes.items() if a.default_value.name
            }
        opsets = {**self.scope.opsets, **opsets_of(body.opset_import)}
        scope = Scope(self.scope.shared, opsets, attributes={**defaults, **given})
        graph = _Builder(scope, list(body.input), list(body.output)).build(body.node)
        return Subgraphs(call, {"outputs": len(_outputs(node))}, {"body": graph}, ())

    def _attributes(self, node: NodeProto) -> tuple[dict[str, Any], dict[str, onnx.GraphProto]]:
        """Return a node's attributes as Python values, and those that are graphs."""
        options, graphs = {}, {}
        for attribute in node.attribute:
            name = attribute.name
            if attribute.ref_attr_name:
                if attribute.ref_attr_name not in self.scope.attributes:
                    continue
                attribute = self.scope.attributes[attribute.ref_attr_name]
            if attribute.type == AttributeProto.GRAPH:
                graphs[name] = attribute.g
            else:
                options[name] = python_value(attribute)
        return options, graphs


def python_value(attribute: AttributeProto) -> Any:
    """Return an attribute's value: numbers, text, lists of these, tensors."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return constant_of(value)
    if attribute.type == AttributeProto.STRINGS:
        return [each.decode("utf-8", "replace") for each in value]
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value


def describe(node: NodeProto, scope: Scope) -> str:
    """Return an operator with its version, and the node that has it."""
    domain = "" if node.domain in STANDARD else f"{node.domain}."
    name = repr(node.name) if node.name else f"that computes {', '.join(map(repr, node.output))}"
    return f"{domain}{node.op_type} of opset {scope.version(node.domain)} in node {name}"


def _kind_of(output: onnx.ValueInfoProto) -> Kind:
    """Return the dtype and sizes that a graph says an output has: float32 where it says nothing."""
    kind = output.type.tensor_type
    sizes = tuple(max(0, each.dim_value) for each in kind.shape.dim)
    return dtype_of(kind.elem_type or onnx.TensorProto.FLOAT), sizes


def _outputs(node: NodeProto) -> tuple[str, ...]:
    """Return the names of a node's outputs, without those that are left out at the end."""
    names = list(node.output)
    while len(names) > 1 and not names[-1]:
        names.pop()
    return tuple(names)


def _unsupported(
    nodes: Iterable[NodeProto], scope: Scope, seen: set[tuple[str, str, int]]
) -> Iterable[str]:
    """Yield what is not supported, in the bodies of functions too, in each once."""
    for node in nodes:
        if any(isinstance(each, bytes) for each in (node.op_type, node.name, node.domain)):
            raise OnnxError(f"the name of a node, {node.name or node.op_type!r}, is not UTF-8")
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _unsupported(attribute.g.node, scope, seen)
        body = _body_of(node, scope)
        if body is None:
            if node.domain not in STANDARD or not _is_known(node, scope):
                yield describe(node, scope)
        elif (key := (node.domain, node.op_type, scope.version(""))) not in seen:
            seen.add(key)
            opsets = {**scope.opsets, **opsets_of(body.opset_import)}
            yield from _unsupported(body.node, Scope(scope.shared, opsets), seen)


def _is_known(node: NodeProto, scope: Scope) -> bool:
    if node.op_type in CONTROL_FLOW:
        # The first Scan had batches of sequences, each of a length of its own.
        return node.op_type != "Scan" or scope.version("") >= 9
    return node.op_type in OPERATORS and defs.has(node.op_type, scope.version(""), "")


def _body_of(node: NodeProto, scope: Scope) -> onnx.FunctionProto | None:
    """Return the body of the function that a node calls, if it does and we have no better."""
    local = scope.function(node)
    if local is not None or node.domain not in STANDARD:
        return local
    if node.op_type in OPERATORS or node.op_type in CONTROL_FLOW:
        return None
    if not defs.has(node.op_type, scope.version(""), ""):
        return None
    schema: Any = _schema(node, scope)
    return schema.function_body if schema.has_function else None


def _schema(node: NodeProto, scope: Scope) -> defs.OpSchema:
    return defs.get_schema(node.op_type, scope.version(""), "")


def _with_defaults(schema: defs.OpSchema, options: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes, with the standard's defaults for those that are not given."""
    defaults = {
        name: python_value(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.name
    }
    return {**defaults, **options}


def _input_name(schema: defs.OpSchema, position: int) -> str:
    """Return the name of a weight: that of the operator's input."""
    formal = schema.inputs[min(position, len(schema.inputs) - 1)].name
    names = {"W": "weight", "B": "bias", "scale": "weight"}
    name = (
        names.get(formal, identifier(formal)) if schema.name not in _BINARY else identifier(formal)
    )
    return name if position < len(schema.inputs) else f"{name}_{position}"


# Their second operand is called B, and is no bias.
_BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "MatMul", "Gemm")


# What attributes and constants that are not as the standard has them lead to.
_OF_BAD_NODES = (
    *(ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError),
    ValueError,
)


def _is_weight(value: Value) -> bool:
    """Return whether a constant is trained: an array of floats, no single number."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 1


def _captured(graph: Graph) -> set[str]:
    """Return the names that a graph takes from outside."""
    inside = {name for step in graph.steps for name in step.outputs}
    inside |= {*graph.input_names, *graph.constants}
    used = {name for step in graph.steps for name in step.inputs if name} | set(graph.output_names)
    return used - inside
