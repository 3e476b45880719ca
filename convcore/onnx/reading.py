"""ONNX files: parsed, checked, and their external data read from below the model's folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from convcore.onnx.errors import OnnxError


def read_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> onnx.ModelProto:
    """Return a model as a protocol buffer with all its data.

    Parameters
    ----------
    model : path, bytes or ModelProto
        Is not changed.

    Raises
    ------
    OnnxError
        It is no ONNX model, or external data is missing or outside the model's folder.
    TypeError
        model is none of these.
    """
    if isinstance(model, onnx.ModelProto):
        return _checked(model, None)
    if isinstance(model, bytes | bytearray | memoryview):
        return _checked(_parsed(bytes(model), "the bytes"), None)
    if not isinstance(model, str | os.PathLike):
        raise TypeError(
            "load(): argument 'model' must be a path, bytes or ModelProto, "
            f"got {type(model).__name__}"
        )
    path = Path(model)
    return _checked(_parsed(path.read_bytes(), str(path)), path.parent)


def _parsed(data: bytes, what: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError) as error:
        raise OnnxError(f"{what} cannot be parsed as an ONNX model: {error}") from error
    return proto


def _checked(proto: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    if not proto.opset_import and not proto.graph.node and not proto.graph.output:
        raise OnnxError("this is no ONNX model: it has neither nodes nor an opset")
    external = [t for t in _tensors_of_model(proto) if t.data_location == onnx.TensorProto.EXTERNAL]
    if external:
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        proto = copy
        for tensor in _tensors_of_model(proto):
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                _read_external(tensor, folder)
    return proto


def _tensors_of_model(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield all stored tensors of a model, of its functions too."""
    yield from _tensors_of_graph(proto.graph)
    for function in proto.functions:
        yield from _tensors_of_attributes(function.attribute_proto)
        for node in function.node:
            yield from _tensors_of_attributes(node.attribute)


def _tensors_of_graph(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        yield from _tensors_of_attributes(node.attribute)


def _tensors_of_attributes(
    attributes: Iterable[onnx.AttributeProto],
) -> Iterator[onnx.TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("g"):
            yield from _tensors_of_graph(attribute.g)
        for graph in attribute.graphs:
            yield from _tensors_of_graph(graph)


def _read_external(tensor: onnx.TensorProto, folder: Path | None) -> None:
    """Move a tensor's external data into the model."""
    if folder is None:
        raise OnnxError(f"tensor {tensor.name!r} lies in another file: load the model by its path")
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    try:
        path = (folder / location).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise OnnxError(f"tensor {tensor.name!r}: external data {location!r}: {error}") from error
    if not location or not path.is_relative_to(folder.resolve()):
        raise OnnxError(
            f"tensor {tensor.name!r} asks for the file {location!r}, "
            "which is not below the model's folder"
        )
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise OnnxError(f"tensor {tensor.name!r}: external data {location!r}: {error}") from error
    length = size - offset if length < 0 else length
    if not path.is_file() or offset < 0 or offset + length > size:
        raise OnnxError(
            f"tensor {tensor.name!r}: bytes {offset} to {offset + length} "
            f"are not in {location!r}, which has {size}"
        )
    with path.open("rb") as file:
        file.seek(offset)
        tensor.raw_data = file.read(length)
    tensor.ClearField("data_location")
    tensor.ClearField("external_data")
