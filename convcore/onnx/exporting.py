"""Nets as ONNX models: one run is recorded, each call of a function becomes a few nodes."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import helper, numpy_helper

import convcore
import convcore.onnx.compositions  # enters its translations
from convcore import Tensor, nn
from convcore._hints import INPUTS_SECOND, hinted, nearest
from convcore.amp.autocast_mode import is_autocast_enabled
from convcore.autograd import no_grad
from convcore.nn.modules.utils import nested_tensors
from convcore.onnx.errors import OnnxError
from convcore.onnx.naming import distinct
from convcore.onnx.translation import TRANSLATIONS
from convcore.onnx.values import array_of
from convcore.overrides import TorchFunctionMode
from convcore.serialization.replacing import writing

# What a tensor may be asked that no node is made of: facts that are the same for every input.
_FACTS = frozenset(
    (
        *("size", "dim", "ndimension", "numel", "stride", "storage_offset", "element_size", "type"),
        *("is_floating_point", "is_complex", "is_contiguous", "is_same_size", "get_device"),
        *("__len__", "requires_grad_", "data_ptr"),
    )
)
_FLOOR, _NEWEST = 13, 23
# Python's operators that are calls of functions under other names.
_OPERATORS = {
    **{f"__{name}__": name for name in ("add", "sub", "mul", "pow", "matmul", "neg", "getitem")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "pow")},
    **{"__truediv__": "div", "__itruediv__": "div_", "__rsub__": "rsub", "__radd__": "add"},
    "__rmul__": "mul",
}


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
    >>> import io, tempfile
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


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays show the same elements of the same memory."""
    layout = "__array_interface__"
    one, other = getattr(a, layout), getattr(b, layout)
    return all(one[key] == other[key] for key in ("data", "shape", "strides", "typestr"))


class Recorder(TorchFunctionMode):
    """What a net calls in one run, as nodes.

    Attributes
    ----------
    nodes : list of NodeProto
    constants : dict of str to array
        Weights by their names in the net, and other constants.
    opset : int
    """

    def __init__(self, module: nn.Module, inputs: Mapping[str, Tensor], opset: int) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.sizes_are_free = False
        self._module = module
        self._nodes: set[str] = set()
        self._values = set(inputs)
        self._names = {id(tensor): name for name, tensor in inputs.items()}
        self._computed = set(self._names)
        self._kept: list[Tensor] = list(inputs.values())  # so that no id is used again
        self._weights = {
            id(value): name for name, value in (*module.named_parameters(), *module.named_buffers())
        }
        self._stack: list[str] = []

    def results(self, args: Iterable[Tensor]) -> list[Tensor]:
        """Return the outputs of one recorded run.

        Raises
        ------
        TypeError
            There is one that is no tensor.
        """
        found = self._run(args)
        outputs = [found] if isinstance(found, Tensor) else found
        if isinstance(outputs, dict):
            outputs = list(outputs.values())
        if not isinstance(outputs, tuple | list) or not outputs:
            raise TypeError(f"export(): the net returns {type(found).__name__}, no tensors")
        for each in outputs:
            if not isinstance(each, Tensor):
                raise TypeError(f"export(): an output is {type(each).__name__}, no tensor")
        return list(outputs)

    def _run(self, args: Iterable[Tensor]) -> Any:
        modes = [(each, each.training) for each in self._module.modules()]
        buffers = [(each, each.clone()) for each in self._module.buffers()]
        handles = []
        for name, each in self._module.named_modules():
            handles.append(each.register_forward_pre_hook(self._entering(name)))
            handles.append(each.register_forward_hook(self._leaving, always_call=True))
        try:
            self._module.eval()
            with no_grad(), self:
                return self._module(*args)
        finally:
            for handle in handles:
                handle.remove()
            for each, mode in modes:
                each.training = mode
            with no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)

    def _entering(self, name: str) -> Callable[..., None]:
        return lambda *_: self._stack.append(name)

    def _leaving(self, *_: Any) -> None:
        self._stack.pop()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        given = [t for t in nested_tensors((args, kwargs)) if isinstance(t, Tensor)]
        for each in given:
            self._recognize(each)
        is_computed = any(id(t) in self._computed for t in given)
        name = _OPERATORS.get(func.__name__, func.__name__)
        in_place = name.endswith("_") and not name.endswith("__")
        if is_computed and name not in _FACTS and name != "__get__":
            self._check(func, name, args, in_place, kwargs)
            for each in given:
                self.name(each)  # as it is before the call, which may change it
        result = func(*args, **kwargs)
        if is_computed:
            if name in _FACTS or name == "__get__":
                if isinstance(result, Tensor) and not any(result is each for each in given):
                    self._refuse(func)
            else:
                self._record(func, name, result, args, kwargs)
        elif in_place and args:
            self._names.pop(id(args[0]), None)  # what it was is the constant, not what it is
        return result

    def _recognize(self, value: Tensor) -> None:
        """Take another object of a computed tensor's memory, as ``x.data``, for that tensor."""
        if id(value) in self._names or id(value) in self._weights:
            return
        for each in reversed(self._kept):
            array, own = array_of(each), array_of(value)
            if id(each) in self._computed and array.size and _is_same(array, own):
                self._names[id(value)] = self._names[id(each)]
                self._computed.add(id(value))
                self._kept.append(value)
                return

    def _check(
        self, func: Callable[..., Any], name: str, args: tuple, in_place: bool, kwargs: dict
    ) -> None:
        """Refuse calls that nodes cannot do."""
        if self._translation(name) is None or kwargs.get("out") is not None:
            self._refuse(func)
        if in_place and any(
            each is not args[0] and np.may_share_memory(array_of(each), array_of(args[0]))
            for each in self._kept
        ):
            self._refuse(func, "it writes into memory that another tensor shows")

    def _translation(self, name: str) -> Callable[..., list[str]] | None:
        return TRANSLATIONS.get(name) or TRANSLATIONS.get(name.removesuffix("_"))

    def _record(
        self, func: Callable[..., Any], name: str, result: Any, args: tuple, kwargs: dict
    ) -> None:
        """Add the nodes of a call, and name what it returned."""
        results = [result] if isinstance(result, Tensor) else result
        if not isinstance(results, tuple | list) or not all(
            isinstance(each, Tensor) for each in results
        ):
            self._refuse(func)
        bound = inspect.signature(func).bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = {name: value for name, value in bound.arguments.items() if name != "out"}
        if "self" in arguments:  # of a method
            arguments = {"input": arguments.pop("self"), **arguments}
        translate = self._translation(name)
        assert translate is not None
        try:
            outputs = translate(self, result, **arguments)
        except OnnxError as error:
            self._refuse(func, str(error))
        for tensor, output in zip(results, outputs, strict=True):
            self._names[id(tensor)] = output
            self._computed.add(id(tensor))
            self._kept.append(tensor)

    def _refuse(self, func: Callable[..., Any], reason: str = "") -> NoReturn:
        """Raise the error of a function that cannot be written as nodes."""
        own = str(Path(convcore.__file__).parent) + os.sep
        frames = [f for f in traceback.extract_stack() if not f.filename.startswith(own)]
        where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "?"
        module = (self._stack or [""])[-1] or type(self._module).__name__
        reason = reason or (
            "it has no translation to ONNX, or reads values that depend on the input"
        )
        raise OnnxError(
            f"{func.__name__}() cannot be exported: {reason}; called in module {module!r}, {where}"
        )

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names for outputs."""
        self._values.update(names)

    def fresh(self, name: str) -> str:
        """Return a new name for a value: this one, or with an ending."""
        (new,) = distinct([name], self._values)
        self._values.add(new)
        return new

    def name(self, value: Tensor) -> str:
        """Return the name of a tensor: computed, a weight or a constant."""
        found = self._names.get(id(value))
        if found is None:
            found = self.fresh(self._weights.get(id(value)) or "constant")
            self.constants[found] = array_of(value).copy()
            self._names[id(value)] = found
            self._kept.append(value)
        return found

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Return the name of a new constant."""
        name = self.fresh("constant")
        self.constants[name] = np.asarray(array, dtype)
        return name

    def number(self, value: Any, like: Tensor) -> str:
        """Return the name of an operand: a tensor of a dtype that the other one has."""
        if isinstance(value, Tensor):
            return self.name(value)
        return self.constant(value, array_of(like).dtype)

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        *,
        outputs: Sequence[str] = (),
        count: int = 1,
        **options: Any,
    ) -> list[str]:
        """Add a node; return the names of its outputs."""
        place = "/".join(["", *filter(None, (self._stack or [""])[-1].split(".")), op])
        (name,) = distinct([place], self._nodes)
        self._nodes.add(name)
        results = list(outputs) or [self.fresh(f"{name}_output_{k}") for k in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), results, name, **options))
        return results
