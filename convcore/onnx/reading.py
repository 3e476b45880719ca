"""ONNX files: parsed and checked, with the data that lie in files beside them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from convcore._errors import hinted
from convcore.onnx.errors import OnnxError
from convcore.onnx.external import ExternalData, is_external


class Source:
    """What a net is loaded from, to read it again when the net is written back.

    Of a file only the path and a checksum are kept; a ModelProto is copied, for the caller may
    change it.

    Parameters
    ----------
    model : path, bytes or ModelProto
    """

    def __init__(self, model: Any) -> None:
        self.path: Path | None = None
        self._checksum: int | None = None
        self._model = model
        if isinstance(model, onnx.ModelProto):
            self._model = _copy(model)
        elif isinstance(model, str | os.PathLike):
            self._model = self.path = Path(os.path.abspath(model))

    def __deepcopy__(self, memo: Any) -> Source:
        return self

    def read(self) -> tuple[onnx.ModelProto, ExternalData]:
        """Return the model, which the caller may change, and its data in other files.

        Raises
        ------
        OnnxError
            The file is another one than at the first call.  Or as `read_model` does.
        """
        if isinstance(self._model, onnx.ModelProto):
            return read_model(_copy(self._model))
        if self.path is None:
            return read_model(self._model)
        data = self.path.read_bytes()
        checksum = zlib.crc32(data)
        if self._checksum not in (None, checksum):
            raise hinted(
                OnnxError(f"{self.path} has changed since the net was loaded from it"),
                "load the original again, give it this net's state_dict(), and save that",
            )
        self._checksum = checksum
        return _checked(_parsed(data, str(self.path)), self.path)


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    new = onnx.ModelProto()
    new.CopyFrom(model)
    return new


def read_model(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
) -> tuple[onnx.ModelProto, ExternalData]:
    """Return a model as a protocol buffer, and its data in other files.

    Parameters
    ----------
    model : path, bytes or ModelProto

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
    return _checked(_parsed(path.read_bytes(), str(path)), path)


def _parsed(data: bytes, what: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError) as error:
        raise OnnxError(f"{what} cannot be parsed as an ONNX model: {error}") from error
    return proto


def _checked(proto: onnx.ModelProto, path: Path | None) -> tuple[onnx.ModelProto, ExternalData]:
    if not proto.opset_import and not proto.graph.node and not proto.graph.output:
        raise OnnxError("this is no ONNX model: it has neither nodes nor an opset")
    external = ExternalData(path)
    external.check(each for each in tensors_of_model(proto) if is_external(each))
    return proto, external


def tensors_of_model(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
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


def _tensors_of_attributes(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("g"):
            yield from _tensors_of_graph(attribute.g)
        for graph in attribute.graphs:
            yield from _tensors_of_graph(graph)
