"""Nets as ONNX models: one run is recorded, each call of a function becomes a few nodes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper, numpy_helper

import convcore
from convcore import Tensor, nn
from convcore._hints import INPUTS_SECOND, hinted, nearest
from convcore.amp.autocast_mode import is_autocast_enabled
from convcore.onnx.errors import OnnxError
from convcore.onnx.recording import Recorder
from convcore.onnx.values import array_of
from convcore.serialization.replacing import writing

_FLOOR, _NEWEST = 13, 23


# Arguments of PyTorch's, with the value that means what happens here anyway; None: any does.
_OTHERS: dict[str, Any] = {
    "autograd_inlining": None, "do_constant_folding": None, "dump_exported_program": False,
    "dynamo": None, "export_params": True, "external_data": None,
    "keep_initializers_as_inputs": False, "kwargs": {}, "optimize": None, "profile": False,
    "report": False, "training": None, "verbose": None, "verify": None,
}  # fmt: skip


def export(
    model: nn.Module,
    args: Any = (),
    f: str | os.PathLike[str] | None = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None = None,
    opset_version: int | None = 17,
    **others: Any,
) -> None:
    """Write a net as an ONNX model, recorded from one run in evaluation mode.

    Parameters
    ----------
    model : Module
        Is run once; its mode is put back.
    args : Tensor or tuple of Tensor
        Its inputs.
    f : str or path
        A file is replaced only by a whole one.
    input_names, output_names : sequence of str, optional
        Default: input and output; where there are more, numbered from 1 on.
    dynamic_axes : dict, optional
        By the name of an input or output: its axes that may have another size, with their names.
    opset_version : int
        From 13 to 23.
    others
        PyTorch's, such as ``verbose``, ``dynamo`` and ``do_constant_folding``: they change nothing.

    Raises
    ------
    OnnxError
        The net calls a function that has no translation, or its course depends on values of the
        input; the message says where.  Or it is called under autocast.
    TypeError, ValueError
        An argument is of another kind, or names do not fit.

    Notes
    -----
    Sizes are those of this run; a reshape keeps sizes that it took over, as a batch's.  Pads are
    always written out.  Loops are unrolled.  The model is checked by `onnx.checker`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from convcore import nn
    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten())
    >>> x = convcore.rand(1, 1, 4, 4)
    >>> file = Path(tempfile.mkdtemp()) / "net.onnx"
    >>> export(net, x, file)
    >>> convcore.onnx.load(file)(x).equal(net(x))
    True
    """
    _check_others(others)
    if f is None:
        raise TypeError("export(): argument 'f' must be the file to write, got None")
    version = 17 if opset_version is None else opset_version
    written = recorded(model, args, input_names, output_names, dynamic_axes, version)
    with writing(f) as file:
        file.write(written.SerializeToString())


def _check_others(given: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument that is not PyTorch's, or would change what is written."""
    for name, value in given.items():
        if name not in _OTHERS:
            names = (*inspect.signature(export).parameters, *_OTHERS)
            meant = "dynamic_axes" if name == "dynamic_shapes" else nearest(name, names)
            raise hinted(
                TypeError(f"export() got an unexpected keyword argument {name!r}"),
                f"did you mean {meant!r}?" if meant else "",
            )
        if _OTHERS[name] is not None and value is not None and value != _OTHERS[name]:
            raise TypeError(f"export(): {name} must be {_OTHERS[name]!r}, got {value!r:.99}")


def recorded(
    model: nn.Module,
    args: Any,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    opset_version: int = 17,
) -> onnx.ModelProto:
    """Return the model that `export` writes."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"export(): argument 'model' must be Module, got {type(model).__name__}")
    if is_autocast_enabled("cpu"):
        raise OnnxError("export(): leave autocast first: the file holds the net in its own dtypes")
    if not isinstance(opset_version, int):
        kind = type(opset_version).__name__
        raise TypeError(f"export(): argument 'opset_version' must be int, not {kind}")
    if not isinstance(dynamic_axes, Mapping | None):
        kind = type(dynamic_axes).__name__
        raise TypeError(f"export(): argument 'dynamic_axes' must be dict or None, not {kind}")
    if not _FLOOR <= opset_version <= _NEWEST:
        raise ValueError(f"opset_version is {opset_version}: {_FLOOR} to {_NEWEST} can be written")
    inputs = args if isinstance(args, tuple | list) else (args,)
    for each in inputs:
        if not isinstance(each, Tensor):
            raise hinted(
                TypeError(f"export(): args have to be tensors, got {type(each).__name__}"),
                INPUTS_SECOND if isinstance(each, str | os.PathLike) else "",
            )
    # Copies, for the net may change them, and one tensor may be given twice.
    inputs = [each.detach().clone() for each in inputs]
    names = _names(input_names, len(inputs), "input")
    free = _free_axes(dynamic_axes or {}, dict(zip(names, inputs, strict=True)))
    recorder = Recorder(model, dict(zip(names, inputs, strict=True)), opset_version)
    recorder.reserve(output_names or ())
    recorder.sizes_are_free = any(axis > 1 for name in names for axis in free.get(name, ()))
    results = recorder.results(inputs)
    outputs = _names(output_names, len(results), "output")
    if output_names is None:
        outputs = [recorder.fresh(name) for name in outputs]
    for name, result in zip(outputs, results, strict=True):
        recorder.node("Identity", [recorder.name(result)], outputs=[name])
    free |= _free_axes(dynamic_axes or {}, dict(zip(outputs, results, strict=True)))
    if unknown := set(dynamic_axes or {}) - set(free):
        raise ValueError(f"dynamic_axes names {sorted(unknown)}; there are {[*names, *outputs]}")
    graph = helper.make_graph(
        recorder.nodes,
        type(model).__name__,
        [_info(n, t, free.get(n)) for n, t in zip(names, inputs, strict=True)],
        [_info(n, t, free.get(n), bool(free)) for n, t in zip(outputs, results, strict=True)],
        [numpy_helper.from_array(array, name) for name, array in recorder.constants.items()],
    )
    opsets = [helper.make_opsetid("", opset_version)]
    made = helper.make_model(
        graph,
        opset_imports=opsets,
        producer_name="convcore",
        producer_version=convcore.__version__,
        ir_version=helper.find_min_ir_version_for(opsets),
    )
    try:
        onnx.checker.check_model(made, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise OnnxError(f"what was recorded is no valid model: {error}") from error
    return made


def _free_axes(given: Mapping[str, Any], values: Mapping[str, Tensor]) -> dict[str, dict[int, str]]:
    """Return the axes of these tensors that may have other sizes, with their names."""
    free = {}
    for name in given.keys() & values.keys():
        axes = given[name]
        named = axes if isinstance(axes, Mapping) else {a: f"{name}_{a}" for a in axes}
        rank = values[name].ndim
        if any(not -rank <= axis < rank for axis in named):
            raise ValueError(f"dynamic_axes: {name!r} has {rank} axes, got {sorted(named)}")
        free[name] = {axis % rank: text for axis, text in named.items()}
    return free


def _names(given: Sequence[str] | None, count: int, kind: str) -> list[str]:
    if given is None:
        return [f"{kind}_{k}" if k else kind for k in range(count)]
    if len(given) != count or len(set(given)) != count:
        raise ValueError(f"{kind}_names: {count} different names are needed, got {list(given)}")
    return list(given)


def _info(
    name: str, value: Tensor, axes: Mapping[int, str] | None, follows: bool = False
) -> onnx.ValueInfoProto:
    """Return a tensor's type; ``follows``: its sizes may follow those of inputs."""
    sizes: list[int | str | None] = list(value.shape)
    if follows and axes is None:
        sizes = [None] * len(sizes)
    for axis, text in (axes or {}).items():
        sizes[axis] = text
    return helper.make_tensor_value_info(name, _code(value), sizes)


def _code(value: Tensor) -> int:
    return helper.np_dtype_to_tensor_dtype(array_of(value).dtype)
