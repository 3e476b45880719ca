"""Loaded nets written back into the models that they were made of: `save`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from convcore import Tensor, nn
from convcore._errors import hinted
from convcore.engine.runtime.errstate import quiet
from convcore.onnx.building import build_with_origins
from convcore.onnx.errors import OnnxError
from convcore.onnx.external import ExternalData, is_external, location_of
from convcore.onnx.graph import Graph
from convcore.onnx.naming import Names, quoted
from convcore.onnx.origins import Origins, Places, Stored, stored_tensors
from convcore.onnx.program import check_destination
from convcore.onnx.reading import Source, read_model, tensors_of_model
from convcore.onnx.values import array_of
from convcore.serialization.replacing import writing

# The fields of numbers that are not raw, and the dtype that their bits are held as.
_FIELDS: dict[int, tuple[str, Any]] = {
    TensorProto.FLOAT: ("float_data", np.float32),
    TensorProto.DOUBLE: ("double_data", np.float64),
    TensorProto.FLOAT16: ("int32_data", np.uint16),
    TensorProto.BFLOAT16: ("int32_data", np.uint16),
}


def save(net: Graph, f: Any) -> None:
    """Write the model that a net was loaded from, with the net's weights.

    All else is what the file had: nodes, their names and order, domains, opsets, texts, metadata,
    free axes, and the bytes of weights that have not changed.

    Parameters
    ----------
    net : Graph
        Made by `load`.
    f : str, path or file object
        A file is replaced only by a whole one.  Data in other files is written to files of the same
        names beside it.  Where such a file is there, and is not that of a model at this path, its
        name is the model's with ``.data`` at the end.  A file object takes no such models.

    Raises
    ------
    OnnxError
        The file cannot hold the net: a weight that was computed from others when the net was
        loaded has changed (such as a dequantized one), weights that the file stores once differ, or
        have another dtype or shape, or a node was replaced.  The message names the initializer.
        Nothing is written.  Or the net's file has changed since it was loaded.
    TypeError
        net was not made by `load`.

    Notes
    -----
    Parameters and buffers are written, such as the running statistics of batch norms.  Weights
    that the file stores in float16 and converts to float32 are rounded.  What else was changed in
    the net, such as the p of a dropout or hooks, is not in the file.

    Examples
    --------
    >>> import onnx.parser
    >>> proto = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["" : 17]>
    ...     example (float[N, 2] x) => (float[N, 2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }''')
    >>> import convcore, io
    >>> net = convcore.onnx.load(proto)
    >>> with convcore.no_grad():
    ...     _ = net.Mul_0.B.fill_(5)
    >>> file = io.BytesIO()
    >>> save(net, file)
    >>> convcore.onnx.load(file.getvalue()).Mul_0.B
    Parameter containing:
    tensor([5., 5.], requires_grad=True)
    """
    if not isinstance(net, Graph) or net._source is None:
        kind = type(net).__name__
        raise hinted(
            TypeError(f"save(): net must be made by convcore.onnx.load, got {kind}"),
            "convcore.onnx.export writes any other Module as a new model",
        )
    proto, external = net._source.read()
    check_destination(f, any(map(is_external, tensors_of_model(proto))))
    _write_back(net, proto, external)
    if not isinstance(f, str | os.PathLike):
        f.write(proto.SerializeToString())
        return
    path = Path(f)
    with ExitStack() as files:
        new = files.enter_context(writing(path))  # takes its place last
        for location, name in _move_data(proto, external, path).items():
            target = path.parent / name
            if external.is_replaced(location) or not external.is_file(location, target):
                target.parent.mkdir(parents=True, exist_ok=True)
                external.copy(location, files.enter_context(writing(target)))
        new.write(proto.SerializeToString())
    if net._source.path is not None and path.resolve() == net._source.path.resolve():
        net._source = Source(path)
        net._source.read()


def _write_back(net: Graph, proto: onnx.ModelProto, external: ExternalData) -> None:
    """Put a net's weights into the model that it was made of.

    Raises
    ------
    OnnxError
        A net made of that model would be another.
    """
    changed = _replace(net, proto, external)
    again, origins = build_with_origins(proto, external)
    for name, tensor, array in _differences(net, again, origins):
        if not _is_rounded(array, tensor, origins):
            raise OnnxError(_refusal(name, tensor, origins, changed))


def _replace(net: Graph, proto: onnx.ModelProto, external: ExternalData) -> dict[str, set[str]]:
    """Put what has changed into a model; return its names, with the labels of what stores it."""
    original, origins = build_with_origins(proto, external)
    places = Places(origins)
    changed: dict[str, set[str]] = {}
    new: dict[int, tuple[Stored, np.ndarray]] = {}
    for name, tensor, array in _differences(net, original, origins):
        where, changed[name] = places.of(tensor), set()
        for stored in stored_tensors(tensor, origins):
            changed[name].add(stored.label)
            place = where - places.first(stored)
            inside = (place >= 0) & (place < stored.value.numel())
            if inside.any():
                _, values = new.setdefault(
                    id(stored.proto), (stored, array_of(stored.value).reshape(-1).copy())
                )
                # What overflows is found afterwards.
                quiet(values.__setitem__, place[inside], array[inside])
    for stored, values in new.values():
        _put(stored, values, external)
    return changed


def _differences(
    net: Graph, other: Graph, origins: Origins
) -> Iterator[tuple[str, Tensor, np.ndarray]]:
    """Yield the tensors in which a net differs from the one that was loaded.

    Yields
    ------
    (name, tensor, array) : (str, Tensor, ndarray)
        The tensor of the loaded net, and the other's elements.
    """
    modules = dict(net.named_modules())
    for path, module in other.named_modules():
        own = modules.get(path)
        if not isinstance(own, type(module)):
            raise hinted(
                OnnxError(f"save(): node {quoted(path)} was replaced by {type(own).__name__}"),
                "convcore.onnx.export writes a changed net as a new model",
            )
        for key, tensor in _tensors(module).items():
            if tensor not in origins:
                continue
            name = f"{path}.{key}" if path else key
            value = own.constants.get(key) if isinstance(own, Graph) else getattr(own, key, None)
            if not isinstance(value, Tensor) or (value.dtype, value.shape) != (
                tensor.dtype,
                tensor.shape,
            ):
                labels = ", ".join(each.label for each in stored_tensors(tensor, origins))
                raise OnnxError(
                    f"save(): {name} is {_described(value)}, the file has {_described(tensor)} "
                    f"({labels})"
                )
            array = array_of(value)
            if array.tobytes() != array_of(tensor).tobytes():
                yield name, tensor, array


def _tensors(module: nn.Module) -> dict[str, Any]:
    """Return a node's parameters and buffers, or a graph's constants, that are tensors."""
    if isinstance(module, Graph):
        return {k: each for k, each in module.constants.items() if isinstance(each, Tensor)}
    return {
        k: each for k, each in {**module._parameters, **module._buffers}.items() if each is not None
    }


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def _put(stored: Stored, values: np.ndarray, external: ExternalData) -> None:
    """Write elements to where the model has them, in the way in which it has them."""
    proto = stored.proto
    if isinstance(proto, AttributeProto):
        if proto.type == AttributeProto.FLOATS:
            proto.floats[:] = values.tolist()
        else:
            proto.f = values.item()
        return
    data = numpy_helper.from_array(values).raw_data  # little-endian
    if is_external(proto):
        external.replace(proto, data)
    elif proto.HasField("raw_data"):
        proto.raw_data = data
    else:
        field, dtype = _FIELDS[proto.data_type]
        getattr(proto, field)[:] = values.view(dtype).tolist()


def _is_rounded(array: np.ndarray, tensor: Tensor, origins: Origins) -> bool:
    """Return whether a tensor of the new file is an array, rounded to the file's dtype."""
    found = array_of(tensor)
    return bool(np.isfinite(found).all()) and any(
        dtype.itemsize < found.itemsize
        and found.tobytes() == array.astype(dtype).astype(found.dtype).tobytes()
        for dtype in (array_of(each.value).dtype for each in stored_tensors(tensor, origins))
    )


def _refusal(name: str, tensor: Tensor, origins: Origins, changed: dict[str, set[str]]) -> str:
    """Return the message for a tensor that a net made of the new file would have otherwise."""
    labels = [each.label for each in stored_tensors(tensor, origins)]
    others = [each for each in changed if each != name and changed[each].intersection(labels)]
    what = ", ".join(labels)
    if (Places(origins).of(tensor) < 0).any():
        reason = f"it was computed from {what} when the net was loaded"
    elif others:
        reason = f"{what} stores {', '.join(others[:3])} too, which differs now"
    else:
        reason = f"{what} has fewer bits, or bytes that another tensor has too"
    return f"save(): the file cannot hold {name} as it is now: {reason}"


def _move_data(proto: onnx.ModelProto, external: ExternalData, path: Path) -> dict[str, str]:
    """Name the data files of a model beside its new path; return their names by those before."""
    tensors = [each for each in tensors_of_model(proto) if is_external(each)]
    names: dict[str, str] = {}
    locations = dict.fromkeys(map(location_of, tensors))
    free, present = Names(locations), _locations_in(path)
    for location in locations:
        target = path.parent / location
        is_below = not os.path.isabs(location) and os.pardir not in Path(location).parts
        is_same = not external.is_replaced(location) and external.is_file(location, target)
        if is_below and (location in present or is_same or not os.path.lexists(target)):
            names[location] = location
        else:
            names[location] = free.free(f"{path.name}.data")
    for tensor in tensors:
        is_replaced = external.is_replaced(location_of(tensor))
        for entry in list(tensor.external_data):
            if entry.key == "location":
                entry.value = names.get(entry.value, entry.value)
            elif entry.key == "checksum" and is_replaced:
                tensor.external_data.remove(entry)
    return names


def _locations_in(path: Path) -> set[str]:
    """Return the data files of the model that is at a path, if there is one."""
    try:
        proto, _ = read_model(path)
    except (OSError, OnnxError):
        return set()
    return {location_of(each) for each in tensors_of_model(proto) if is_external(each)}
