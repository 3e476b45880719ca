"""Nets as ONNX models: `export`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import onnx
from onnx import helper, numpy_helper

import convcore
from convcore import Tensor, nn
from convcore._errors import hinted
from convcore._errors.hints import not_a_module
from convcore.amp.autocast_mode import is_autocast_enabled
from convcore.inference import OptimizedModule
from convcore.onnx import axes
from convcore.onnx.constancy import check_constants
from convcore.onnx.errors import OnnxError
from convcore.onnx.graph import Graph
from convcore.onnx.inputs import Inputs, as_call
from convcore.onnx.naming import named
from convcore.onnx.nesting import replaced
from convcore.onnx.nodes import Operation
from convcore.onnx.options import check_others
from convcore.onnx.other_sizes import follow_sizes
from convcore.onnx.program import ONNXProgram
from convcore.onnx.recording import Recorder
from convcore.onnx.sizes import followed
from convcore.onnx.values import array_of

_FLOOR, _USUAL, _NEWEST = 13, 17, 23


def export(
    model: nn.Module,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None = None,
    external_data: bool | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    **others: Any,
) -> ONNXProgram:
    """Return a net as an ONNX model, recorded from one run in evaluation mode.

    Parameters
    ----------
    model : Module
        Is run twice, on other values the second time, which finds values that are taken for
        constants and are none, and more often for each free axis, at another size of it; its mode
        and all state that its code can change are put back; random numbers are drawn as if it
        ran once.
    args : Tensor or tuple
        What forward is called with.  Tensors, those in tuples, lists and dicts too, become the
        model's inputs; numbers, strings and None stay in it as they are.
    f : str, path or file object, optional
        Where to write the model at once, as `ONNXProgram.save` does.
    kwargs : dict, optional
        More arguments of forward, by name.
    input_names, output_names : sequence of str, optional
        Default: the names of forward's arguments, and output; where there are more outputs,
        numbered from 1 on.  Of a loaded net: those of its file.
    opset_version : int, optional
        From 13 to 23; default: that of the loaded nets in it, else 17.
    dynamic_shapes : dict, tuple or list, optional
        Which axes of the inputs may have another size: for each argument of forward, by name or in
        order, a dict of axes or a tuple with an entry for each axis.  A string is an axis' name;
        None or a number means that the size is fixed.  PyTorch's ``torch.export.Dim`` is taken too.
    dynamic_axes : dict, optional
        The older way: by the name of an input or output, its axes that may have another size, with
        their names.
    external_data, export_params, keep_initializers_as_inputs : bool, optional
        `ONNXProgram.save` has them, as ``external_data``, ``include_initializers`` and
        ``keep_initializers_as_inputs``.
    others
        PyTorch's, such as ``verbose``, ``dynamo`` and ``do_constant_folding``: they change nothing.

    Returns
    -------
    ONNXProgram
        Also with ``dynamo=False``, where PyTorch returns None.

    Raises
    ------
    OnnxError
        The net calls a function that has no translation, or its course depends on values of the
        input, or the size of a free axis becomes a number; the message says where.  Or it is called
        under autocast.
    TypeError, ValueError
        An argument is of another kind, or names do not fit.

    Notes
    -----
    Sizes of free axes that a net reads are followed through +, -, \\*, // and %; where one becomes
    another number or the turns of a loop, the net is refused.  Where it compares sizes, it goes the
    way that it goes at those of this run.  Pads are always written out.  Loops are unrolled.  Nodes
    of loaded nets are written as the operators that they were, converted to the opset.  The model
    is checked by `onnx.checker`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from convcore import nn
    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten())
    >>> x = convcore.rand(1, 1, 4, 4)
    >>> program = export(net, (x,), dynamic_shapes={"input": {0: "batch"}})
    >>> file = Path(tempfile.mkdtemp()) / "net.onnx"
    >>> program.save(file)
    >>> more = convcore.rand(8, 1, 4, 4)
    >>> convcore.onnx.load(file)(more).equal(net(more))
    True
    """
    check_others(export, others)
    _check(model, opset_version, dynamic_shapes, dynamic_axes)
    call = as_call(args, kwargs)
    given, keywords = replaced(call, lambda x: x.detach().clone())  # for the net may change them
    if isinstance(model, Graph):  # whose forward takes any arguments
        input_names = input_names or (() if keywords else model.input_names[: len(given)])
        output_names = output_names or tuple(model.output_names)
    inputs = Inputs(model.forward, given, keywords, input_names)
    values = dict(zip(inputs.names.values(), inputs.tensors(given, keywords), strict=True))
    if both := values.keys() & set(output_names or ()):
        raise ValueError(f"output_names: {sorted(both)} are names of inputs")
    if dynamic_shapes is None:
        free = axes.of_names(dynamic_axes or {}, values)
    else:
        free = axes.of_shapes(dynamic_shapes, inputs.arguments(given, keywords), inputs.names)
    recorder = Recorder(model, values, opset_version or _opset_of(model))
    recorder.reserve(output_names or ())
    recorder.sizes_are_free = any(axis > 1 for each in free.values() for axis in each)
    random_state = convcore.get_rng_state()
    with followed(model) if any(free.values()) else nullcontext():
        found = recorder.results(given, keywords)
        recorder, found = follow_sizes(recorder, found, inputs, call, free, random_state)
        check_constants(recorder, inputs, call, random_state)
    results = _outputs(recorder, found, output_names)
    free |= axes.of_names(dynamic_axes or {}, results)
    if unknown := set(dynamic_axes or {}) - set(free):
        raise ValueError(f"dynamic_axes names {sorted(unknown)}; there are {[*values, *results]}")
    program = ONNXProgram(_model(type(model).__name__, recorder, values, results, free), inputs)
    if f is not None:
        program.save(
            f,
            include_initializers=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data,
        )
    return program


def _check(model: Any, opset_version: Any, dynamic_shapes: Any, dynamic_axes: Any) -> None:
    """Raise the error of an argument that is of another kind, or outside its range."""
    if not isinstance(model, nn.Module):
        raise hinted(
            TypeError(f"export(): argument 'model' must be Module, got {type(model).__name__}"),
            not_a_module(model),
        )
    if any(isinstance(layer, OptimizedModule) for layer in model.modules()):
        raise OnnxError(
            "export(): an optimized model cannot be written: export the model that it was made of"
        )
    if is_autocast_enabled("cpu"):
        raise OnnxError("export(): leave autocast first: the file holds the net in its own dtypes")
    if not isinstance(opset_version, int | None):
        kind = type(opset_version).__name__
        raise TypeError(f"export(): argument 'opset_version' must be int, not {kind}")
    if opset_version is not None and not _FLOOR <= opset_version <= _NEWEST:
        raise ValueError(
            f"opset_version is {opset_version}: {_FLOOR} to {_NEWEST} can be written. Leave it out "
            f"for {_USUAL}: what reads models today reads {_FLOOR} and later"
        )
    if not isinstance(dynamic_axes, Mapping | None):
        kind = type(dynamic_axes).__name__
        raise TypeError(f"export(): argument 'dynamic_axes' must be dict or None, not {kind}")
    if dynamic_axes is not None and dynamic_shapes is not None:
        raise ValueError("export(): give either dynamic_shapes or dynamic_axes, not both")


def _opset_of(model: nn.Module) -> int:
    """Return the opset of the loaded nets in a model, or the usual one."""
    found = max((each.opset for each in model.modules() if isinstance(each, Operation)), default=0)
    return found if _FLOOR <= found <= _NEWEST else _USUAL


def _outputs(
    recorder: Recorder, results: Sequence[Tensor], names: Sequence[str] | None
) -> dict[str, Tensor]:
    """Return the net's outputs by their names in the model."""
    usual = [f"output_{k}" if k else "output" for k in range(len(results))]
    given = named("output", names, usual)[: len(names or ())]
    outputs = [*given, *map(recorder.fresh, usual[len(given) :])]
    for name, result in zip(outputs, results, strict=True):
        recorder.node("Identity", [recorder.name(result)], outputs=[name])
    return dict(zip(outputs, results, strict=True))


def _model(
    name: str,
    recorder: Recorder,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    free: Mapping[str, axes.Axes],
) -> onnx.ModelProto:
    """Return what was recorded as a model, checked."""
    graph = helper.make_graph(
        recorder.nodes,
        name,
        [_info(n, t, free.get(n)) for n, t in inputs.items()],
        [_info(n, t, free.get(n), bool(free)) for n, t in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in recorder.constants.items()],
    )
    opsets = [helper.make_opsetid("", recorder.opset)]
    made = helper.make_model(
        graph,
        opset_imports=opsets,
        producer_name="convcore",
        producer_version=convcore.__version__,
        ir_version=helper.find_min_ir_version_for(opsets),
    )
    try:
        onnx.checker.check_model(made, full_check=True)
        if free:
            _infer_sizes(made)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise OnnxError(f"what was recorded is no valid model: {error}") from error
    return made


def _info(
    name: str, value: Tensor, free: axes.Axes | None, follows: bool = False
) -> onnx.ValueInfoProto:
    """Return a tensor's type; ``follows``: its sizes may follow those of inputs."""
    sizes: list[int | str | None] = list(value.shape)
    if follows and free is None:
        sizes = [None] * len(sizes)
    for axis, text in (free or {}).items():
        sizes[axis] = text
    code = helper.np_dtype_to_tensor_dtype(array_of(value).dtype)
    return helper.make_tensor_value_info(name, code, sizes)


def _infer_sizes(model: onnx.ModelProto) -> None:
    """Fill in the sizes of outputs that follow those of inputs: numbers, and axes' names."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    known = {d.dim_param for each in model.graph.input for d in each.type.tensor_type.shape.dim}
    for own, found in zip(model.graph.output, inferred.graph.output, strict=True):
        ours, theirs = own.type.tensor_type.shape.dim, found.type.tensor_type.shape.dim
        for size, other in zip(ours, theirs, strict=True):
            if not size.WhichOneof("value") and (other.dim_value or other.dim_param in known):
                size.CopyFrom(other)
