"""An exported net: to be saved, looked at, and called as the net is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import onnx
from onnx import external_data_helper, helper

from convcore import Tensor
from convcore._errors import hinted
from convcore._errors.text import printable
from convcore.autograd import no_grad
from convcore.onnx.building import build_model
from convcore.onnx.graph import Graph
from convcore.onnx.inputs import Inputs, as_call
from convcore.onnx.reading import read_model
from convcore.serialization.replacing import writing

# Data in other files starts at whole pages, so that readers can map them into memory.
_PAGE = 4096
_SMALLEST = 256  # bytes; what is smaller stays in the model, as with PyTorch


class ONNXProgram:
    """A net as an ONNX model, which `export` returns.

    Called as the net is, it runs the model, and returns a tuple of its outputs, without gradients.
    Arguments that are no tensors have to be those that the net was exported with.

    Attributes
    ----------
    model_proto : onnx.ModelProto

    Examples
    --------
    >>> import convcore
    >>> net = convcore.nn.Linear(2, 3)
    >>> program = convcore.onnx.export(net, convcore.zeros(1, 2), dynamic_shapes=[{0: "batch"}])
    >>> program
    ONNXProgram(Linear, opset 17: input float32[batch, 2] -> output float32[batch, 3])
    >>> x = convcore.rand(4, 2)
    >>> program(x)[0].equal(net(x))
    True
    """

    def __init__(self, model_proto: onnx.ModelProto, inputs: Inputs) -> None:
        self.model_proto = model_proto
        self._inputs = inputs
        self._net: Graph | None = None

    def __repr__(self) -> str:
        graph, (opset, *_) = self.model_proto.graph, self.model_proto.opset_import
        return (
            f"ONNXProgram({printable(graph.name)}, opset {opset.version}: "
            f"{_described(graph.input)} -> {_described(graph.output)})"
        )

    def __getattr__(self, name: str) -> Any:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        hint = "it has model_proto, save and optimize, and may be called"
        raise hinted(AttributeError(text, name=name), "" if name.startswith("_") else hint)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """Return the model's outputs for the arguments of the net."""
        values = self._inputs.tensors(*as_call(args, kwargs))
        if self._net is None:
            self._net = build_model(*read_model(self.model_proto)).eval()
        with no_grad():
            found = self._net(*values)
        return found if isinstance(found, tuple) else (found,)

    def optimize(self) -> None:
        """Do nothing: what reads the model optimizes it."""

    def save(
        self,
        destination: Any,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model.

        Parameters
        ----------
        destination : str, path or file object
            A file is replaced only by a whole one.
        include_initializers : bool
            Whether weights are written too.
        keep_initializers_as_inputs : bool
            Whether weights are inputs as well, so that who runs the model may give others.
        external_data : bool, optional
            Whether weights lie in a file of their own beside the model's, of its name with
            ``.data`` at the end.

        Raises
        ------
        TypeError
            destination is neither, or no path where weights shall lie beside it.
        """
        check_destination(destination, external_data)
        model = self.model_proto
        if not include_initializers or keep_initializers_as_inputs:
            model = _with_initializers(model, include_initializers, keep_initializers_as_inputs)
        if not external_data:
            with writing(destination) as file:
                file.write(model.SerializeToString())
            return
        path = os.fspath(destination)
        # Both are whole before either takes its place.
        with writing(path) as file, writing(f"{path}.data") as data:
            moved = _with_data_in(model, data, f"{os.path.basename(path)}.data")
            file.write(moved.SerializeToString())


def check_destination(destination: Any, external_data: bool | None) -> None:
    """Raise TypeError unless a model can be written there, and its data beside it."""
    if isinstance(destination, str | os.PathLike):
        return
    if external_data or not hasattr(destination, "write"):
        kinds = "a path, for external_data" if external_data else "a path or file object"
        got = type(destination).__name__
        raise TypeError(f"save(): argument 'destination' must be {kinds}, got {got}")


def _with_initializers(model: onnx.ModelProto, included: bool, are_inputs: bool) -> onnx.ModelProto:
    """Return a copy of a model that has its initializers or not, as inputs or not."""
    new = onnx.ModelProto()
    new.CopyFrom(model)
    if are_inputs:
        new.graph.input.extend(
            helper.make_tensor_value_info(each.name, each.data_type, each.dims)
            for each in model.graph.initializer
        )
    if not included:
        del new.graph.initializer[:]
    return new


def _with_data_in(model: onnx.ModelProto, file: Any, location: str) -> onnx.ModelProto:
    """Return a copy of a model whose weights are written to a file of their own."""
    new = onnx.ModelProto()
    new.CopyFrom(model)
    position = 0
    for tensor in new.graph.initializer:
        length = len(tensor.raw_data)
        if length < _SMALLEST:
            continue
        offset = -(-position // _PAGE) * _PAGE
        file.write(bytes(offset - position))
        file.write(tensor.raw_data)
        external_data_helper.set_external_data(tensor, location, offset, length)
        tensor.ClearField("raw_data")
        position = offset + length
    return new


def _described(values: Iterable[onnx.ValueInfoProto]) -> str:
    """Return the names, dtypes and shapes of a graph's inputs or outputs."""
    texts = []
    for each in values:
        kind = each.type.tensor_type
        sizes = [
            printable(d.dim_param) or (str(d.dim_value) if d.HasField("dim_value") else "?")
            for d in kind.shape.dim
        ]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type).name
        texts.append(f"{printable(each.name)} {dtype}[{', '.join(sizes)}]")
    return ", ".join(texts)
