"""From an ONNX graph to a net: constants folded, weights made parameters, nodes made modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, NodeProto, defs, helper

from convcore import Tensor, nn
from convcore._errors.text import printable
from convcore.autograd import no_grad
from convcore.onnx.errors import FAULTS_OF_NODES, OnnxError, error_of_node
from convcore.onnx.external import ExternalData
from convcore.onnx.graph import Folded, Graph, Step
from convcore.onnx.layers import LAYER_TENSORS, layer_of
from convcore.onnx.naming import identifier, module_names, quoted
from convcore.onnx.nodes import Node, Operation, Subgraphs
from convcore.onnx.operators import OPERATORS
from convcore.onnx.operators.control_flow import CONTROL_FLOW, Kind, call
from convcore.onnx.origins import Computed, Origins, stored_tensors
from convcore.onnx.scope import STANDARD, Scope, key_of, opsets_of, scope_of
from convcore.onnx.values import Value, constant_of, dtype_of, is_differentiable


def build_model(proto: onnx.ModelProto, external: ExternalData) -> Graph:
    """Return the net of a model whose data may lie in other files.

    Raises
    ------
    OnnxError
        As `build_with_origins` does.
    """
    return build_with_origins(proto, external)[0]


def build_with_origins(proto: onnx.ModelProto, external: ExternalData) -> tuple[Graph, Origins]:
    """Return the net of a model, and where its tensors are stored in the model.

    Raises
    ------
    OnnxError
        It is broken, or has operators that are not supported: all are named, before anything runs.
    """
    scope = scope_of(proto, external)
    faults = list(dict.fromkeys(_unsupported(proto.graph.node, scope)))
    if faults:
        more = f" and {len(faults) - 8} more" if len(faults) > 8 else ""
        raise OnnxError(f"not supported: {'; '.join(faults[:8])}{more}")
    net = _build_graph(proto.graph, scope, proto.ir_version)
    net.metadata = {each.key: each.value for each in proto.metadata_props}
    origins = scope.shared.origins
    for path, parameter in net.named_parameters(remove_duplicate=False):
        stored = (each.proto for each in stored_tensors(parameter, origins))
        names = (each.name for each in stored if isinstance(each, onnx.TensorProto))
        net.initializers[path] = tuple(filter(None, names))
    return net, origins


def _build_graph(proto: onnx.GraphProto, scope: Scope, ir_version: int = 0) -> Graph:
    """Return the net of a graph whose names are looked up in a scope.

    An initializer with the name of an input is its default.  The graph of a node is given all its
    inputs.  Models before version 4 had to list all their constants among the inputs; there they
    are constants.
    """
    for sparse in proto.sparse_initializer:
        raise OnnxError(
            f"sparse tensor {quoted(sparse.values.name)}: sparse tensors are not supported"
        )
    inputs = {each.name: None for each in proto.input}
    stored = {each.name: each for each in proto.initializer}
    if scope.outside is None:
        optional = [name for name in inputs if name in stored]
        inputs = {name: None for name in inputs if name not in stored}
    else:
        optional, stored = [], {name: each for name, each in stored.items() if name not in inputs}
    builder = _Builder(scope, list(inputs), [each.name for each in proto.output])
    for name, tensor in stored.items():
        value = scope.constant_of(tensor)
        scope.define(name, value)
        scope.stored(value, tensor, f"initializer {quoted(name)}")
    if ir_version >= _FIRST_WITH_CONSTANTS:
        builder.optional = optional
        scope.replaceable.update(optional)
    return builder.build(proto.node)


class _Builder:
    """The net of a list of nodes, step by step."""

    def __init__(self, scope: Scope, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.scope, self.outputs = scope, outputs
        self.inputs = [scope.define(name) for name in inputs]
        self.optional: list[str] = []
        self.modules: dict[str, nn.Module] = {}
        self.steps: list[Step] = []
        self.folded: list[Folded] = []

    def build(self, nodes: Sequence[NodeProto]) -> Graph:
        names = module_names(nodes, [*dir(Graph), *vars(Graph({}, (), (), (), {}))])
        for node, name in zip(nodes, names, strict=True):
            try:
                self.scope.count_node()
                self._add(node, name)
            except FAULTS_OF_NODES as error:
                if isinstance(error, RecursionError):
                    raise
                raise error_of_node(describe(node, self.scope), error) from error
        results = [self._result(name) for name in self.outputs]
        lists = [*(s.inputs for s in self.steps), *(f.inputs for f in self.folded)]
        used = [name for names in lists for name in names]
        constants = self.scope.constants
        graph = Graph(
            self.modules,
            self.steps,
            self.inputs,
            self.outputs,
            {name: constants[name] for name in (*used, *results) if name in constants},
            results,
            self.optional,
            self.folded,
        )
        graph.captured_names = tuple(self.scope.captured)
        return graph

    def _result(self, name: str) -> str:
        """Return the name of the value of an output of the graph."""
        try:
            return self.scope.resolve(name)
        except OnnxError:
            raise OnnxError(f"no node of the graph computes its output {quoted(name)}") from None

    def _add(self, node: NodeProto, name: str) -> None:
        """Add a node's module and the step that calls it, or fold it."""
        options, graphs = self._attributes(node)
        inputs = tuple(each and self.scope.resolve(each) for each in node.input)
        body = _body_of(node, self.scope)
        if body is not None:
            self._step(name, node, self._function(node, body), inputs)
        elif graphs:
            control, captured = self._control(node, options, graphs)
            self._step(name, node, control, (*inputs, *captured))
        else:
            self._operation(name, node, options, inputs)

    def _control(
        self, node: NodeProto, options: dict[str, Any], graphs: dict[str, onnx.GraphProto]
    ) -> tuple[Subgraphs, list[str]]:
        """Return the module of a node that has graphs, and the values that these capture."""
        bodies, captured = {}, {}
        for key, graph in graphs.items():
            inside = self.scope.inside()
            bodies[key] = _build_graph(graph, inside)
            captured[key] = list(inside.captured.values())
        every = list(dict.fromkeys(name for names in captured.values() for name in names))
        places = {name: k for k, name in enumerate(every)}
        options = {**options, "outputs": len(_outputs(node))}
        if node.op_type in ("Loop", "Scan"):
            options["kinds"] = [_kind_of(each) for each in graphs["body"].output]
        by_body = {key: [places[name] for name in names] for key, names in captured.items()}
        return Subgraphs(CONTROL_FLOW[node.op_type], options, bodies, by_body), every

    def _operation(
        self, name: str, node: NodeProto, options: dict[str, Any], inputs: tuple[str, ...]
    ) -> None:
        """Add an operator's module, or fold it."""
        operator, schema = OPERATORS[node.op_type], _schema(node, self.scope)
        outputs = _outputs(node)
        constants = [self.scope.constants.get(each) for each in inputs]
        given = _with_defaults(schema, options)
        options = operator.options(given, schema.since_version, len(outputs))
        known = [c is not None or not each for c, each in zip(constants, inputs, strict=True)]
        replaceable = {k: each for k, each in enumerate(inputs) if each in self.scope.replaceable}
        if operator.folds and all(known) and self.scope.may_fold(node.op_type, constants):
            with no_grad():
                results = operator.function(*constants, **options)
            results = results if len(outputs) > 1 else (results,)
            if node.op_type == "Constant":
                self._stored(node, results[0])
            origin = Computed(node.op_type, options, tuple(constants))
            values = self.scope.fold(outputs, results, origin)
            if replaceable:
                self.scope.replaceable.update(values)
                operation = Operation(operator.function, options, {})
                self._name(operation, node)
                self.folded.append(Folded(operation, inputs, tuple(values)))
            return
        if all(known[1:]) and operator.weights.issuperset(replaceable):
            own = [
                self.scope.parameter(c) if k in operator.weights and is_differentiable(c) else c
                for k, c in enumerate(constants)
            ]
            module = layer_of(node.op_type, own, options, len(outputs))
            if module is not None:
                for constant, key in zip(constants, LAYER_TENSORS, strict=False):
                    if (buffer := module._buffers.get(key)) is not None:
                        self.scope.copied(constant, buffer)
                names = [(LAYER_TENSORS[k], value) for k, value in replaceable.items()]
                self._step(name, node, module, inputs[:1], names)
                return
        weights = {
            position: (_input_name(schema, position), self.scope.parameter(constant))
            for position, constant in enumerate(constants)
            if position in operator.weights and _is_weight(constant)
        }
        rest = [each for position, each in enumerate(inputs) if position not in weights]
        names = [(weights[k][0], value) for k, value in replaceable.items() if k in weights]
        operation = Operation(operator.function, options, weights)
        proto = NodeProto(op_type=node.op_type, attribute=self._resolved(node))
        operation.proto = proto.SerializeToString()
        operation.opset = self.scope.version(node.domain)
        self._step(name, node, operation, rest, names)

    def _stored(self, node: NodeProto, value: Value) -> None:
        """Note which attribute of a node Constant has its value."""
        for attribute in node.attribute:
            attribute = self.scope.attributes.get(attribute.ref_attr_name, attribute)
            if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS):
                self.scope.stored(value, attribute, f"Constant {quoted(node.output[0])}")
            elif attribute.type == AttributeProto.TENSOR:
                self.scope.stored(value, attribute.t, f"Constant {quoted(node.output[0])}")

    def _step(
        self,
        name: str,
        node: NodeProto,
        module: Node,
        inputs: Sequence[str],
        replaceable: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._name(module, node)
        self.modules[name] = module
        outputs = tuple(each and self.scope.define(each) for each in _outputs(node))
        self.steps.append(Step(name, tuple(inputs), outputs, tuple(replaceable)))

    def _name(self, module: Node, node: NodeProto) -> None:
        module.onnx_name, module.op_type = node.name, node.op_type
        module.description = describe(node, self.scope)

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
        key = key_of(body, body.name)
        scope = self.scope.of_function(key, opsets, {**defaults, **given})
        graph = _Builder(scope, list(body.input), list(body.output)).build(body.node)
        return Subgraphs(call, {"outputs": len(_outputs(node))}, {"body": graph}, {"body": ()})

    def _attributes(self, node: NodeProto) -> tuple[dict[str, Any], dict[str, onnx.GraphProto]]:
        """Return a node's attributes as Python values, and those that are graphs."""
        options, graphs = {}, {}
        for attribute in self._resolved(node):
            if attribute.type == AttributeProto.GRAPH:
                graphs[attribute.name] = attribute.g
            else:
                options[attribute.name] = _python_value(attribute, self.scope.constant_of)
        return options, graphs

    def _resolved(self, node: NodeProto) -> Iterator[AttributeProto]:
        """Yield a node's attributes; those that refer to a call's as the call has them."""
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                yield attribute
            elif attribute.ref_attr_name in self.scope.attributes:
                given = AttributeProto()
                given.CopyFrom(self.scope.attributes[attribute.ref_attr_name])
                given.name = attribute.name
                yield given


def _python_value(
    attribute: AttributeProto, read: Callable[[onnx.TensorProto], Value] = constant_of
) -> Any:
    """Return an attribute's value: numbers, text, lists of these, tensors."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return read(value)
    if attribute.type == AttributeProto.STRINGS:
        return [each.decode("utf-8", "replace") for each in value]
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value


def describe(node: NodeProto, scope: Scope) -> str:
    """Return an operator with its version, and the node that has it."""
    domain = "" if node.domain in STANDARD else f"{node.domain}."
    outputs = ", ".join(map(quoted, node.output[:3]))
    name = quoted(node.name) if node.name else f"that computes {outputs}"
    operator = printable(f"{domain}{node.op_type}")
    return f"{operator} of opset {scope.version(node.domain)} in node {name}"


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


def _unsupported(nodes: Iterable[NodeProto], scope: Scope) -> Iterable[str]:
    """Yield the nodes that are not supported, those in the bodies of functions in each once."""
    seen: set[tuple[str, str, str, int]] = set()
    rest = [(iter(nodes), scope)]
    while rest:
        node = next(rest[-1][0], None)
        if node is None:
            rest.pop()
            continue
        scope = rest[-1][1]
        if any(isinstance(each, bytes) for each in (node.op_type, node.name, node.domain)):
            raise OnnxError(f"the name of a node, {node.name or node.op_type!r}, is not UTF-8")
        body = _body_of(node, scope)
        if body is None:
            if node.domain not in STANDARD or not _is_known(node, scope):
                yield describe(node, scope)
        elif (key := (*key_of(node, node.op_type), scope.version(""))) not in seen:
            seen.add(key)
            opsets = {**scope.opsets, **opsets_of(body.opset_import)}
            rest.append((iter(body.node), Scope(scope.shared, opsets)))
        graphs = [each.g for each in node.attribute if each.type == AttributeProto.GRAPH]
        rest += [(iter(graph.node), scope) for graph in reversed(graphs)]


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
        name: _python_value(attribute.default_value)
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


# The format's first version whose initializers need not be inputs too.
_FIRST_WITH_CONSTANTS = 4
# Their second operand is called B, and is no bias.
_BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "MatMul", "Gemm")


def _is_weight(value: Value) -> bool:
    """Return whether a constant is trained: an array of floats, no single number."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 1
