"""Nodes of a loaded net as nodes of an exported model: the operators that they were made of.

What their functions compute is not seen: much of it is computed by NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onnx import NodeProto, defs, helper, numpy_helper, version_converter

from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.nesting import tensors_in
from convcore.onnx.nodes import Operation
from convcore.onnx.recurrences import LAYERS
from convcore.onnx.values import array_of

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _operation(r: Recorder, node: Operation, y: Any, *inputs: Any) -> list[str]:
    """Return the names of the outputs of a node of its own operator."""
    given, results = node.values(inputs), tensors_in(y)
    if not all(isinstance(each, Tensor | None) for each in given) or any(
        not isinstance(each, Tensor) for each in (y if isinstance(y, tuple) else (y,))
    ):
        raise OnnxError(f"{node.description} takes or returns what is no tensor")
    names = ["" if each is None else r.name(each) for each in given]
    outputs = [f"output_{k}" for k in range(len(results))]
    proto = NodeProto.FromString(node.proto)
    proto.input[:], proto.output[:] = [each and f"in {each}" for each in names], outputs
    values = {f"in {name}": each for name, each in zip(names, given, strict=True) if name}
    values |= dict(zip(outputs, results, strict=True))
    new = {f"in {name}": name for name in names if name} | {"": ""}
    for each in _at_opset(r, node, proto, values, new):
        made = [new[name] for name in each.input]
        new.update(
            zip(each.output, r.node(each.op_type, made, count=len(each.output)), strict=True)
        )
        r.nodes[-1].attribute.extend(each.attribute)
    return [new[name] for name in outputs]


def _at_opset(
    r: Recorder, node: Operation, proto: NodeProto, values: dict[str, Tensor], new: dict[str, str]
) -> Sequence[NodeProto]:
    """Return the nodes that do at the recorder's opset what one does at its own."""
    versions = [defs.get_schema(node.op_type, v).since_version for v in (node.opset, r.opset)]
    if versions[0] == versions[1]:
        return [proto]
    infos = {
        name: helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array_of(value).dtype), value.shape
        )
        for name, value in values.items()
    }
    graph = helper.make_graph(
        [proto],
        "node",
        [info for name, info in infos.items() if name not in proto.output],
        [infos[name] for name in proto.output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", node.opset)])
    try:
        converted = version_converter.convert_version(model, r.opset).graph
    except RuntimeError as error:
        raise OnnxError(
            f"{node.description} cannot be written in opset {r.opset}: {error}"
        ) from None
    for each in converted.initializer:
        new[each.name] = r.constant(numpy_helper.to_array(each))
    return converted.node


LAYERS[Operation.forward] = _operation
