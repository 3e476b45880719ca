"""A recorded run of a net: each call of a function becomes a few nodes."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import helper

import convcore.onnx.operations  # it enters its translation
import convcore.onnx.translations  # noqa: F401, it enters them
from convcore import Tensor, nn
from convcore._errors import hinted
from convcore._errors.frames import users_frame
from convcore.autograd import no_grad
from convcore.engine.runtime._restoring import within
from convcore.engine.runtime.restoring import Calls as Undo
from convcore.engine.runtime.restoring import restoring, together
from convcore.inference.hidden_runs import HiddenRun
from convcore.nn.modules._hooks import call_hooks, evaluating
from convcore.nn.utils.rnn import PackedSequence
from convcore.onnx.errors import OnnxError
from convcore.onnx.graph import RANDOM
from convcore.onnx.naming import distinct
from convcore.onnx.nesting import leaves, tensors_in
from convcore.onnx.nodes import Operation
from convcore.onnx.ongoing import exporting
from convcore.onnx.recurrences import LAYERS
from convcore.onnx.refusals import NO_TRANSLATION, READ_VALUES, advice_for, reads_values
from convcore.onnx.sight import in_sight
from convcore.onnx.sizes import FreeSize, has_sizes, plain, sizes_at, values_of, written
from convcore.onnx.translation import TRANSLATIONS
from convcore.onnx.values import array_of
from convcore.overrides import DisableTorchFunction, TorchFunctionMode

# Tensor attributes and methods that create no node: they do not depend on the input's values.
_FACTS = frozenset(
    (
        *("size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "type"),
        *("element_size", "is_floating_point", "is_complex", "is_signed", "is_contiguous"),
        *("get_device", "__len__", "requires_grad_", "data_ptr", "__repr__"),
    )
)
# Python's operators that are calls of functions under other names.
_SYMMETRIC = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_TWO_SIDED = {
    **{name: name for name in ("add", "sub", "mul", "pow", "matmul")},
    **{"truediv": "div", "div": "div", "floordiv": "floor_divide", "mod": "remainder"},
    **_SYMMETRIC,
}
_OPERATORS = {
    **{f"__{name}__": name for name in ("neg", "abs", "getitem", "eq", "ne", "lt", "le", "gt")},
    **{f"__{name}__": function for name, function in _TWO_SIDED.items()},
    **{f"__i{name}__": f"{function}_" for name, function in _TWO_SIDED.items()},
    **{f"__r{name}__": f"r{function}" for name, function in _TWO_SIDED.items()},
    **{f"__r{name}__": function for name, function in _SYMMETRIC.items()},
    **{"__radd__": "add", "__rmul__": "mul", "__ge__": "ge", "__invert__": "bitwise_not"},
    "__setitem__": "setitem_",
}
# Functions that use only the dtype of their second tensor.
_TAKE_DTYPES = frozenset(("to", "type_as"))
# Functions without a tensor among their arguments whose results are others at each call.
_DRAWS = frozenset(("rand", "randn"))


def _shown(func: Callable[..., Any]) -> str:
    """Return a function's name as programs write it: bool, not __bool__."""
    name = func.__name__
    return name.strip("_") if name.startswith("__") else name


def _references(values: Sequence[Any], place: int) -> int:
    return sys.getrefcount(values[place])


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays show the same elements of the same memory."""
    layout = "__array_interface__"
    one, other = getattr(a, layout), getattr(b, layout)
    return all(one[key] == other[key] for key in ("data", "shape", "strides", "typestr"))


def _order(array: np.ndarray, other: np.ndarray) -> list[int] | None:
    """Return the order of an array's axes in which another one shows the same memory."""
    layout = "__array_interface__"
    one, two = getattr(array, layout), getattr(other, layout)
    if any(one[key] != two[key] for key in ("data", "typestr")) or array.ndim != other.ndim:
        return None
    axes = list(zip(array.shape, array.strides, strict=True))
    order = []
    for axis in zip(other.shape, other.strides, strict=True):
        found = [k for k, each in enumerate(axes) if each == axis and k not in order]
        if not found:
            return None
        order.append(found[0])
    return order


class Recorder(TorchFunctionMode):
    """What a net calls in one run, as nodes.

    Attributes
    ----------
    nodes : list of NodeProto
    constants : dict of str to array
        Weights by their names in the net, and other constants.
    taken : list of (str, array)
        The constants that are not weights, each with the module that used it first.
    numbers : dict of str to str
        The names of constants that are no weights, and where in the program each was first used.
    origins : list of str
        For each node the call that it was recorded for, and where in the program that is.
    log : dict
        The shapes of the tensors of each call, by its number and that of a call within it.
    earlier : list of dict
        Logs of earlier runs, at these input sizes and at others; sizes that differ are dynamic.
    written : dict
        The names of sizes that the model computes.
    opset : int
    """

    def __init__(self, module: nn.Module, inputs: Mapping[str, Tensor], opset: int) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.taken: list[tuple[str, np.ndarray]] = []
        self.numbers: dict[str, str] = {}
        self.origins: list[str] = []
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
        self._reserved: list[str] = []
        self._stack: list[str] = []
        self._is_first = True  # of the runs of an export: its random numbers are drawn for good
        self._inside = False  # a layer that is taken as a whole
        self._composing = 0  # how many functions are being recorded as calls of others
        self._copies_weights = True
        self.log: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        self.earlier: list[dict[tuple[int, int], list[tuple[int, ...]]]] = []
        self.written: dict[Any, str] = {}
        self._event = (0, 0)
        # Of tensors in the earlier runs, with the tensors, so that no id is used again.
        self._shapes: dict[int, tuple[Tensor, list[tuple[int, ...]]]] = {}
        self._origin = ""  # of the call that is being recorded

    def results(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """Return the outputs of one recorded run, those in nested tuples, lists and dicts too.

        None among them is left out, as in PyTorch.

        Raises
        ------
        TypeError
            There is one that is no tensor.
        """
        found = self._run(args, kwargs)
        outputs = [each for _, each in leaves(found) if each is not None]
        if not outputs:
            raise TypeError(f"export(): the net returns {type(found).__name__}, no tensors")
        for each in outputs:
            if not isinstance(each, Tensor):
                raise TypeError(f"export(): an output is {type(each).__name__}, no tensor")
            try:
                self.name(each)
            except OnnxError as error:
                raise OnnxError(f"an output cannot be exported: {error}") from None
        return outputs

    def again(self, inputs: Mapping[str, Tensor], copies_weights: bool = False) -> Recorder:
        """Return a recorder for another run of the same net."""
        new = Recorder(self._module, inputs, self.opset)
        new.sizes_are_free, new._weights = self.sizes_are_free, self._weights
        new._copies_weights, new.earlier, new._is_first = copies_weights, self.earlier, False
        new.reserve(self._reserved)
        return new

    def _log(self, given: Sequence[Tensor]) -> None:
        """Keep the shapes of the tensors of a call, and look up what they were in earlier runs."""
        number, inner = self._event
        self._event = (number, inner + 1) if self._composing else (number + 1, 0)
        shapes = self.log[self._event] = [tuple(array_of(each).shape) for each in given]
        earlier = [log.get(self._event, []) for log in self.earlier]
        if earlier and all(list(map(len, each)) == list(map(len, shapes)) for each in earlier):
            for place, each in enumerate(given):
                self._shapes[id(each)] = each, [found[place] for found in earlier]

    def sizes(self, value: Tensor) -> Any:
        """Return the shape of a tensor of the present call, in which free sizes are FreeSizes."""
        _, shapes = self._shapes.get(id(value), (value, None))
        if shapes is None or not self.is_computed(value):
            return value.shape
        return sizes_at(value, self._names[id(value)], shapes)

    def read_sizes(self, value: Tensor) -> Any:
        """Return the shape that the net asks for."""
        with DisableTorchFunction():
            if not self._inside:
                self._log([value])
            return value.shape if self._inside else self.sizes(value)

    def keeps(self, value: Tensor, axis: int, size: int) -> bool:
        """Return whether an axis has the given size in every recorded run."""
        _, shapes = self._shapes.get(id(value), (value, [tuple(array_of(value).shape)]))
        return tuple(shape[axis] for shape in shapes) == values_of(size, len(shapes))

    def _run(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
        hooks = []
        for name, each in self._module.named_modules():
            hooks.append(call_hooks([each], self._entering(name), self._leaving, always_call=True))
            if self._translation_of(each):
                hooks.append(call_hooks([each], self._starting))
                hooks.append(call_hooks([each], None, self._ending, with_kwargs=True, prepend=True))
        run = together(
            HiddenRun(self._module, effects=True, draws=self._is_first),
            evaluating(self._module),
            *hooks,
            exporting(),
            no_grad(),
            self,
            in_sight(self._module),
        )
        return within(run, self._module, tuple(args), dict(kwargs))

    def _entering(self, name: str) -> Callable[..., None]:
        return lambda *_: self._stack.append(name)

    @staticmethod
    def _translation_of(module: nn.Module) -> Callable[..., list[str]] | None:
        """Return the translation of a layer that is taken as a whole; None of all others."""
        return LAYERS.get(type(module).forward)

    def _starting(self, *_: Any) -> None:
        self._inside = True

    def _ending(self, module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        """Add the nodes of a layer that is taken as a whole, before its other hooks are called."""
        self._inside = False
        translate = self._translation_of(module)
        assert translate is not None
        with DisableTorchFunction():
            self._origin = self._called(type(module).__name__)
            is_packed = any(isinstance(each, PackedSequence) for each in (*args, *kwargs.values()))
            draws = isinstance(module, Operation) and module.op_type in RANDOM
            given = tensors_in((args, kwargs))
            if not is_packed and not draws and not any(map(self.is_computed, given)):
                return
            try:
                names = translate(self, module, output, *args, **kwargs)
            except OnnxError as error:
                self._refuse(type(module), str(error))
            self._name_results(tensors_in(output), names)

    def _leaving(self, *_: Any) -> None:
        self._inside = False  # even if forward has failed, and the net goes on
        self._stack.pop()

    def is_computed(self, value: Tensor) -> bool:
        """Return whether a tensor depends on the input, or on random numbers."""
        self._recognize(value)
        return id(value) in self._computed

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._inside:
            return func(*args, **kwargs)
        given = tensors_in((args, kwargs))
        self._log(given)
        for each in given:
            self._recognize(each)
        name = _OPERATORS.get(func.__name__, func.__name__)
        is_computed = name in _DRAWS or any(id(t) in self._computed for t in given)
        if self.earlier and not is_computed and self._translation(name) is not None:
            is_computed = has_sizes((args, kwargs))
        if is_computed and name == "__iter__":
            with self.composing():
                return iter(args[0].unbind(0))
        in_place = name.endswith("_") and not name.endswith("__")
        if is_computed and name not in _FACTS and name != "__get__":
            if not self._composing:
                self._origin = self._called(_shown(func))
            self._check(func, name, args, in_place, kwargs)
            self._name_all(func, given)  # as they are before the call, which may change them
        if self.earlier and name in ("numel", "nelement"):
            return math.prod(self.sizes(args[0]))
        result = func(*map(plain, args), **{key: plain(each) for key, each in kwargs.items()})
        if is_computed:
            if name in _FACTS or name == "__get__":
                if isinstance(result, Tensor) and not any(result is each for each in given):
                    self._refuse(func, NO_TRANSLATION)
            else:
                self._record(func, name, result, args, kwargs)
        elif in_place and args:
            self._names.pop(id(args[0]), None)  # what it was is the constant, not what it is
        return result

    def _name_all(self, func: Callable[..., Any], given: Iterable[Tensor]) -> None:
        """Take the arguments of a call that have no name for constants."""
        try:
            for each in given:
                self.name(each)
        except OnnxError as error:
            self._refuse(func, str(error))

    def _recognize(self, value: Tensor) -> None:
        """Alias a tensor to the computed tensor that shares its memory, for ``x.data`` and ``x.T``.

        `__torch_function__` modes do not intercept these attributes.
        """
        if id(value) in self._names or id(value) in self._weights:
            return
        own = array_of(value)
        for each in reversed(self._kept):
            array = array_of(each)
            if id(each) not in self._computed or not array.size:
                continue
            if _is_same(array, own):
                self._name_results([value], [self._names[id(each)]])
                return
            if order := _order(array, own):
                self._name_results(
                    [value], self.node("Transpose", [self._names[id(each)]], perm=order)
                )
                return

    def _check(
        self, func: Callable[..., Any], name: str, args: tuple, in_place: bool, kwargs: dict
    ) -> None:
        """Refuse calls that nodes cannot do."""
        if reads_values(name, args, kwargs):
            self._refuse(func, READ_VALUES)
        if self._translation(name) is None:
            self._refuse(func, NO_TRANSLATION)
        if kwargs.get("out") is not None:
            self._refuse(func, "it writes into out=")
        if in_place and self._is_shown(args[0]):
            self._refuse(func, "it writes into memory that another tensor shows")

    def _is_shown(self, value: Tensor) -> bool:
        """Return whether another tensor, which the net still has, shows the memory of this one."""
        alone = _references([object()], 0)  # of what only a list has
        return any(
            self._kept[k] is not value
            and _references(self._kept, k) > alone
            and np.may_share_memory(array_of(self._kept[k]), array_of(value))
            for k in range(len(self._kept))
        )

    def _translation(self, name: str) -> Callable[..., list[str]] | None:
        return TRANSLATIONS.get(name) or TRANSLATIONS.get(name.removesuffix("_"))

    def _record(
        self, func: Callable[..., Any], name: str, result: Any, args: tuple, kwargs: dict
    ) -> None:
        """Add the nodes of a call, and name what it returned."""
        if name.endswith("_"):
            result = args[0]  # of y[key] = value, None is returned
        results = tensors_in([result])
        bound = inspect.signature(func).bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = {name: value for name, value in bound.arguments.items() if name != "out"}
        if "self" in arguments:  # of a method
            arguments = {"input": arguments.pop("self"), **arguments}
        translate = self._translation(name)
        assert translate is not None
        before = len(self.nodes)
        try:
            outputs = translate(self, result, **arguments)
        except OnnxError as error:
            self._refuse(func, str(error))
        if name not in _TAKE_DTYPES:
            self._check_taken(func, [args[1:], kwargs], before)
        self._name_results(results, outputs)

    def _name_results(self, results: Sequence[Tensor], names: Sequence[str]) -> None:
        """Name what was computed."""
        for tensor, name in zip(results, names, strict=True):
            self._names[id(tensor)] = name
            self._computed.add(id(tensor))
            self._kept.append(tensor)

    def _check_taken(self, func: Callable[..., Any], given: Any, before: int) -> None:
        """Refuse a computed tensor that was read as a number: no node since ``before`` has it."""
        inputs = {each for node in self.nodes[before:] for each in node.input}
        for each in tensors_in(given):
            if id(each) in self._computed and self._names[id(each)] not in inputs:
                self._refuse(func, READ_VALUES)

    @restoring
    def composing(self) -> Iterator[Undo]:
        """Record what is called within, in the place of a function that has no node."""
        yield (*self._back(), (setattr, (self, "_composing", self._composing)))
        self._composing += 1
        super()._enter()

    def _refuse(self, func: Callable[..., Any], reason: str) -> NoReturn:
        """Raise the error of a function, or of a layer's class, that cannot be written as nodes."""
        name = _shown(func)
        if self._composing:  # the function outside says where it was called
            raise OnnxError(reason if reason != NO_TRANSLATION else f"{name}(): {reason}")
        error = OnnxError(f"{name}() cannot be exported: {reason}; {self._called()}")
        raise hinted(error, advice_for(func.__name__, reason))

    def _called(self, name: str = "") -> str:
        """Return in which module, file and line the program is that called convcore."""
        frame, _ = users_frame()
        where = f"called in module {self._place()!r}, {frame.f_code.co_filename}:{frame.f_lineno}"
        return f"{name}() {where}" if name else where

    def _place(self) -> str:
        """Return the name of the module that is being called."""
        return (self._stack or [""])[-1] or type(self._module).__name__

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names for outputs."""
        self._reserved = [*names]
        self._values.update(self._reserved)

    def fresh(self, name: str) -> str:
        """Return a new name for a value: this one, or with an ending."""
        (new,) = distinct([name], self._values)
        self._values.add(new)
        return new

    def name(self, value: Tensor) -> str:
        """Return the name of a tensor: computed, a weight or a constant."""
        self._recognize(value)
        found = self._names.get(id(value))
        if found is None:
            self._check_constant(value)
            weight = self._weights.get(id(value))
            found = self.fresh(weight or "constant")
            array = array_of(value)
            self.constants[found] = array.copy() if self._copies_weights or not weight else array
            if not weight:
                self.taken.append((self._place(), self.constants[found]))
                self.numbers[found] = self._origin or self._called()
            self._names[id(value)] = found
            self._kept.append(value)
        return found

    def _check_constant(self, value: Tensor) -> None:
        """Raise OnnxError if an unrecorded tensor shares memory with a computed one."""
        array = array_of(value)
        for each in self._kept:
            if id(each) in self._computed and np.may_share_memory(array, array_of(each)):
                raise OnnxError("it reads memory into which a computed value was written unseen")

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Return the name of a new constant, or of the value computed from dynamic sizes."""
        if self.earlier and isinstance(array, FreeSize | list) and has_sizes(array):
            return written(self, array, dtype)
        name = self.fresh("constant")
        self.constants[name] = np.asarray(array, dtype)
        self.numbers[name] = self._origin
        return name

    def number(self, value: Any, like: Tensor) -> str:
        """Return the name of an operand; a number becomes a constant of the dtype of ``like``."""
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
        self.origins.append(self._origin)
        return results
