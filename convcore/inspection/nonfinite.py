"""find_nan: the call that made the first NaN or infinity, forward or backward."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from convcore import nn, overrides
from convcore._errors import hinted, hints
from convcore._tensor import Tensor
from convcore._tensor.dtypes import INEXACT
from convcore.autograd.anomaly_mode import anomaly_settings, set_detect_anomaly
from convcore.autograd.node import AccumulateGrad, Node, next_number
from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.restoring import Calls, together
from convcore.inspection.watching.calls import leaves
from convcore.inspection.watching.hooks import Hook
from convcore.inspection.watching.nesting import Nesting
from convcore.nn.modules._hooks import call_hooks

_PACKAGE = Path(__file__).parents[1]
_NETS = str(_PACKAGE / "models")
# Their memory holds anything until it is written.
_UNWRITTEN = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"}


class NonFiniteError(FloatingPointError):
    """A NaN or an infinity was made.

    Attributes
    ----------
    module : str
        The path of the module; empty outside of modules, and of the net itself.
    operation : str
        The function that was called; the class of a module that calls none, as in optimized nets.
    line : str
        ``file:number`` of the forward call.
    backward : bool
        Whether it was made in the backward pass.
    """

    says_forward_line = True  # so that `detect_anomaly` does not say it too

    def __init__(self, text: str, module: str, operation: str, line: str, backward: bool) -> None:
        super().__init__(text)
        self.module = module
        self.operation = operation
        self.line = line
        self.backward = backward


class find_nan(Restoring):
    """Find the first NaN or infinity, as a context manager that raises where it is made.

    Parameters
    ----------
    model : Module, optional
        The net, whose modules errors name.
    inf : bool
        Whether infinities of finite inputs are errors too.

    Raises
    ------
    NonFiniteError
        The message says the module, the function, the line of its forward call, and the range of
        each of its inputs; for a gradient, also that of the gradient which arrived.

    Notes
    -----
    Every result is read once, so a pass takes up to several times its usual time. Values that are
    given, as -inf to ``masked_fill``, are not made: only a NaN among the inputs, or an infinity in
    a parameter of ``model``, is an error at the function that reads it. `autograd.detect_anomaly`
    is on meanwhile: it finds NaN in the gradients of what is not seen here, such as
    `autograd.Function`, and warns with the traceback of the forward call.

    Examples
    --------
    >>> import convcore
    >>> from convcore import inspection
    >>> with inspection.find_nan():  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     convcore.log(convcore.tensor([1.0, -1.0]))
    Traceback (most recent call last):
    NonFiniteError: log made NaN
    """

    def __init__(self, model: nn.Module | None = None, *, inf: bool = True) -> None:
        if model is not None and not isinstance(model, nn.Module):
            raise hinted(
                TypeError(f"model must be a Module or None, got {type(model).__name__}"),
                hints.not_a_module(model),
            )
        self._model = model
        self._inf = inf
        self._inside: list[_Entered] = []
        self._nesting = Nesting()
        self._calls = 0  # of functions whose results were read, so far
        self._thread: int | None = None  # None: not open
        self._names = {} if model is None else {m: name for name, m in model.named_modules()}
        named = () if model is None else (*model.named_parameters(), *model.named_buffers())
        self._tensors = {tensor: name for name, tensor in named}

    def _back(self) -> Calls:
        if self._thread is not None:
            raise RuntimeError("find_nan: this block is open already: make another one")
        before, after = Hook(self._begin), Hook(self._leave)
        hooks = call_hooks(self._names, before, after, always_call=True)
        self._watching: Any = together(overrides.watching(self._called), hooks)
        return (*self._watching._back(), *anomaly_settings(), (self._forget, ()))

    def _enter(self) -> find_nan:
        self._thread = get_ident()
        set_detect_anomaly(True)
        self._watching._enter()
        return self

    def _forget(self) -> None:
        self._thread = self._watching = None
        self._nesting.forget()

    def _begin(self, module: nn.Module, args: tuple) -> None:
        if get_ident() != self._thread:
            return
        if module is self._model and self._nesting.enter():
            self._inside.clear()
        self._inside.append(_Entered(self._names[module], self._calls, next_number()))

    def _leave(self, module: nn.Module, args: tuple, result: Any) -> None:
        if get_ident() != self._thread or not self._inside:
            return
        if module is self._model:
            self._nesting.leave()
        entered = self._inside.pop()
        # It called no function that is seen, as layers of optimized nets: it counts as one.
        if entered.calls == self._calls:
            given, operation = list(_floats(args)), type(module).__name__
            where = _Where(entered.name, operation, _line(), self._ranges(given))
            self._look_at(where, _floats(result), given, args, entered.start)

    def _called(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        given = list(_floats((args, kwargs)))
        before = self._ranges(given)
        start = next_number()
        result = function(*args, **kwargs)
        results = list(_floats(result))
        if not results or not given or name in _UNWRITTEN:  # what no tensor goes into is given
            return result
        self._calls += 1
        module = self._inside[-1].name if self._inside else ""
        where = _Where(module, name.strip("_"), _line(), before)
        self._look_at(where, results, given, (*args, *kwargs.values()), start)
        return result

    def _ranges(self, given: Iterable[Tensor]) -> list[_Range]:
        """Return what tensors have, under the net's names for them."""
        return [_Range(tensor, self._tensors.get(tensor, "")) for tensor in given]

    def _look_at(
        self, where: _Where, results: Iterable[Tensor], given: list, args: tuple, start: int
    ) -> None:
        """Check the results of a call, and have the gradients of its nodes checked."""
        for tensor in results:
            self._check(where, _Range(tensor), given, args)
            for node in _new_nodes(tensor._grad_fn, start):
                node.register_hook(self._gradient_hook(where, node))

    def _check(self, where: _Where, made: _Range, given: list[Tensor], args: tuple) -> None:
        """Raise if a result is not finite and its inputs were."""
        for tensor, one in zip(given, where.inputs, strict=True):
            learned = isinstance(tensor, nn.Parameter)  # a buffer may be a mask of -inf
            if one.nan and made.nan:
                kind = "parameter" if learned else "buffer"
                what = f"its {kind} {one.name}" if one.name else "one of its inputs"
                raise where.error(f"gets NaN: {what} has it already")
            if one.name and learned and self._inf and one.inf and (made.inf or made.nan):
                raise where.error(f"gets an infinity: its parameter {one.name} has it already")
        infinite = any(one.inf for one in where.inputs) or any(map(_is_infinite, args))
        if made.nan:
            raise where.error("made NaN")
        if self._inf and made.inf and not infinite:
            raise where.error("made an infinity")

    def _gradient_hook(self, where: _Where, node: Node) -> Callable:
        def hook(results: tuple, grads: tuple) -> None:
            arrived = [_Range(grad) for grad in _floats(grads)]
            if any(one.nan for one in arrived):
                raise where.error("gets a gradient with NaN", arrived)
            finite = not any(one.inf for one in arrived)
            for grad in _floats(results):
                made = _Range(grad)
                if made.nan or (self._inf and made.inf and finite):
                    kind = "NaN" if made.nan else "an infinity"
                    raise where.error(f"made {kind} in its gradient ({node.name()})", arrived)

        return hook


class _Entered(NamedTuple):
    """A module's call that goes on: when it began, in functions called and in nodes made."""

    name: str
    calls: int
    start: int


class _Range:
    """What an array has: its limits, and how many elements are NaN or infinite; and its name."""

    __slots__ = ("inf", "limits", "name", "nan", "text")

    def __init__(self, tensor: Tensor, name: str = "") -> None:
        self.name = name
        array = np.asarray(tensor._array)
        finite = np.isfinite(array)
        self.nan = self.inf = 0
        if not finite.all():
            self.nan = int(np.count_nonzero(np.isnan(array)))
            self.inf = array.size - int(np.count_nonzero(finite)) - self.nan
            array = array[finite]
        if array.dtype.kind == "c":
            array = np.abs(array)
        self.limits = (float(array.min()), float(array.max())) if array.size else None
        shape = "x".join(map(str, tensor.shape)) or "a number"
        self.text = f"{str(tensor.dtype).removeprefix('torch.')} {shape}"

    def __str__(self) -> str:
        limits = self.limits
        parts = [f"{limits[0]:.4g} to {limits[1]:.4g}" if limits else "nothing finite"]
        parts += [f"{self.nan} NaN"] if self.nan else []
        parts += [f"{self.inf} infinite"] if self.inf else []
        return f"{self.text}: {', '.join(parts)}"


class _Where:
    """A call: its module, function, line, and the ranges of its inputs."""

    __slots__ = ("inputs", "line", "module", "operation")

    def __init__(self, module: str, operation: str, line: tuple, inputs: list[_Range]) -> None:
        self.module, self.operation, self.line, self.inputs = module, operation, line, inputs

    def error(self, what: str, grads: list[_Range] | None = None) -> NonFiniteError:
        """Return the error that says what this call did."""
        file, number = self.line
        code = linecache.getline(file, number).strip()
        place = f"{self.module}.{self.operation}" if self.module else self.operation
        lines = [f"{place} {what}", f"  in {file}:{number}" + (f": {code}" if code else "")]
        for k, one in enumerate(self.inputs):
            named = f", {one.name}" if one.name else ""
            lines.append(f"  input {k}{named}: {one}")
        lines += [f"  gradient {k}: {one}" for k, one in enumerate(grads or ())]
        text, line = "\n".join(lines), f"{file}:{number}"
        return NonFiniteError(text, self.module, self.operation, line, grads is not None)


def _floats(value: Any) -> Iterator[Tensor]:
    """Yield the floating-point tensors in a nested value."""
    for _, tensor in leaves("", value):
        if tensor._array.dtype.kind in INEXACT and not tensor.is_meta:
            yield tensor


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not np.isfinite(value)


def _line() -> tuple[str, int]:
    """Return file and line of the innermost call outside the package, or in one of its nets."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(str(_PACKAGE)) or file.startswith(_NETS):
            return file, frame.f_lineno
        frame = frame.f_back
    return "?", 0


def _new_nodes(root: Node | None, start: int) -> list[Node]:
    """Return the nodes that were made since a number was drawn, from one on."""
    found: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node is None or isinstance(node, AccumulateGrad) or node._sequence <= start:
            continue
        if node not in found:
            found.append(node)
            waiting += [parent for parent, _ in node.next_functions]
    return found
