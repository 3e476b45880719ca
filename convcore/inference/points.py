"""Points of a net where its values can be watched: calls of its modules, and of functions in them.

One run of the net with `PointRecorder` inserts a marker node into the autograd graph at each point.
A plan for some of the points drops the other markers.  Ops between two markers are fused as usual;
at a marker the plan calls the hooks and listeners.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from convcore import overrides
from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import dtype
from convcore.autograd.node import Node, describe, record
from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.restoring import together
from convcore.inference.cutting import CALL, CHANGE, RECIPE, VALUE
from convcore.inference.execution_plan import DepartedError
from convcore.inference.layers import ConvPart
from convcore.inference.op_graph import MARKER, Constants, LayerNames, is_own
from convcore.nn import Module
from convcore.nn.modules._hooks import HookedCall, has_global_hooks, hooks_instead

ENTER, LEAVE, FUNCTION = "enter", "leave", "function"

_FIXED = (bool, int, float, complex, str, bytes, type(None), type(...), slice, dtype, np.generic)


class Place:
    """Stands for a tensor in the arguments or the result of a call.

    Attributes
    ----------
    number : int
        Of the marker's input.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Point:
    """A call of a module, when it is entered or left, or of a function.

    Attributes
    ----------
    kind : 'enter', 'leave' or 'function'
    maker : Module or function
    inside : Module or None
        In whose ``forward`` a function is called.
    name : str
        A function's.
    in_place : bool
        Whether a function changed its argument.
    args, kwargs, result : nested
        With a `Place` for each tensor; there is no result when a module is entered, and a function
        has no arguments here.
    n_results : int
        Number of tensors that the marker returns: the arguments' on entry, else the result's.
        The tensors of a module's arguments on exit come after these in `sizes`.
    sizes : list of int
        The numbers of elements of the tensors at all places.
    node : Node or None
        The marker; None if the values cannot be watched in a plan.
    """

    __slots__ = (
        *("args", "in_place", "inside", "kind", "kwargs"),
        *("maker", "n_results", "name", "node", "result", "sizes"),
    )

    def __init__(self, kind: str, maker: Any, inside: Module | None = None, name: str = "") -> None:
        self.kind, self.maker, self.inside, self.name = kind, maker, inside, name
        self.args: Any = ()
        self.kwargs: Any = {}
        self.result: Any = None
        self.in_place = False
        self.n_results = 0
        self.sizes: list[int] = []
        self.node: Node | None = None


class PointRecorder:
    """Marks the points of a net in the graph of one run.

    Parameters
    ----------
    constants : Constants
        What is the same in each run.
    names : LayerNames
        Told which modules are called.

    Attributes
    ----------
    points : list of Point
        In the order of the calls.
    """

    def __init__(self, constants: Constants, names: LayerNames) -> None:
        self.points: list[Point] = []
        self._constants, self._names = constants, names

    def marking(self) -> Restoring:
        """Return a context in which calls of the net are marked."""
        return together(overrides.watching(self._call), hooks_instead(self._enter, self._leave))

    def nodes(self) -> list[Node]:
        """Return the markers."""
        return [point.node for point in self.points if point.node is not None]

    def _enter(self, module: Module, args: tuple, kwargs: dict) -> Any:
        self._names.enter(module, args, kwargs)
        point = Point(ENTER, module)
        marked, given = overrides.unwatched(self._mark, point, (args, kwargs))
        point.args, point.kwargs = given
        return marked

    def _leave(self, module: Module, args: tuple, kwargs: dict, result: Any) -> Any:
        self._names.leave(module, args, kwargs, result)
        point = Point(LEAVE, module)
        marked, values = overrides.unwatched(self._mark, point, result, args, kwargs)
        point.result, point.args, point.kwargs = values
        return marked

    def _call(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        written = written_by(function, name, args, kwargs)
        result = function(*args, **kwargs)
        inside = self._names.inside[-1] if self._names.inside else None
        if inside is None or is_own(inside) or not is_new(result, args, written):
            return result
        point = Point(FUNCTION, function, inside, name.strip("_"))
        point.in_place = written is not None
        marked, (point.result,) = overrides.unwatched(self._mark, point, result)
        return marked

    def _mark(self, point: Point, passing: Any, *others: Any) -> tuple[Any, tuple]:
        """Add a point; return the marked values, and all values with a `Place` per tensor."""
        tensors: list[Tensor] = []
        is_known = True

        def placed(value: Any) -> Any:
            nonlocal is_known
            if isinstance(value, Tensor):
                if value.requires_grad:
                    tensors.append(value)
                    return Place(len(tensors) - 1)
                is_known &= value in self._constants
            else:
                is_known &= isinstance(value, _FIXED)
            return value

        trees = [mapped(passing, placed)]
        point.n_results = len(tensors)
        trees += [mapped(one, placed) for one in others]
        if point.kind == ENTER:
            trees = trees[0]
        self.points.append(point)
        point.sizes = [one._array.size for one in tensors]
        if not point.n_results:
            return passing, tuple(trees)
        outs = tuple([wrap(one._array) for one in tensors[: point.n_results]])
        record(f"{MARKER}Backward0", tuple(tensors), outs, _no_backward)
        describe(outs[0], point=point)
        point.node = outs[0].grad_fn if is_known else None
        behind = iter(outs)
        return mapped(passing, lambda one: next(behind) if _passes(one) else one), tuple(trees)


def _passes(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _no_backward(needs: tuple[bool, ...], *grads: Any) -> NoReturn:
    raise RuntimeError("the graph of a plan's ops has no gradients")


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested tuples, lists and dicts with each item replaced by ``change(item)``."""
    if isinstance(value, dict):
        return type(value)([(key, mapped(item, change)) for key, item in value.items()])
    if isinstance(value, tuple | list):
        items = [mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return change(value)


def passing(places: Any, values: Any) -> Iterator[Tensor]:
    """Yield the tensors at each `Place`; raise DepartedError if the structure has changed."""
    if isinstance(places, Place):
        if not isinstance(values, Tensor):
            raise DepartedError
        yield values
    elif isinstance(places, dict):
        if type(values) is not type(places) or values.keys() != places.keys():
            raise DepartedError
        for key, place in places.items():
            yield from passing(place, values[key])
    elif isinstance(places, tuple | list):
        if type(values) is not type(places) or len(values) != len(places):
            raise DepartedError
        for place, value in zip(places, values, strict=True):
            yield from passing(place, value)
    elif values is not places and (isinstance(places, Tensor) or values != places):
        raise DepartedError


# Who watches


class Watch:
    """The hooks of a net's modules, and the listeners that some of them have.

    A listener is the attribute ``planned`` of hooks that can do without calls of the modules they
    are registered on, as those of `inspection.watching.calls.Calls`.

    Parameters
    ----------
    modules : iterable of Module

    Attributes
    ----------
    is_plannable : bool
        Whether plans can call the hooks: there are none of backward passes, and none that are
        called always, whatever happens.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        self.is_plannable = not has_global_hooks()
        self.listeners: dict[Any, None] = {}
        self._kinds: dict[tuple[Module, str], None] = {}  # of the points that hooks are called at
        for module in modules:
            own = module.__dict__
            if own["_backward_hooks"] or own["_backward_pre_hooks"]:
                self.is_plannable = False
            for kind, name in ((ENTER, "_forward_pre_hooks"), (LEAVE, "_forward_hooks")):
                for number, hook in tuple(own[name].items()):
                    listener = getattr(hook, "planned", None)
                    if listener is not None:
                        self.listeners[listener] = None
                        continue
                    self._kinds[module, kind] = None
                    if number in own["_forward_hooks_always_called"]:
                        self.is_plannable = False

    def __bool__(self) -> bool:
        return bool(self._kinds or self.listeners or not self.is_plannable)

    def selected(self, points: list[Point]) -> dict[Point, int]:
        """Return the points to cut at, and what is to be shown there: see `cutting.py`."""
        found: dict[Point, int] = {}
        for one in self.listeners:
            shown = RECIPE if one.takes_recipes() else CHANGE if one.changes() else VALUE
            wanted = dict.fromkeys(one.plan(points), shown)
            found = wanted | {point: max(wanted.get(point, 0), n) for point, n in found.items()}
        if self._kinds:
            found |= {point: CALL for point in points if (point.maker, point.kind) in self._kinds}
        return found

    def begin(self) -> None:
        """Notify listeners that a plan starts, with the points that `selected` last returned."""
        for one in self.listeners:
            one.begin_plan()

    def end(self, is_done: bool) -> None:
        """Tell listeners that a plan ended; if it is not done, the net is called without it."""
        for one in self.listeners:
            one.end_plan(is_done)

    def compute(self, point: Point, part: ConvPart, like: Any, x: Tensor) -> None:
        """Give listeners the recipe of a value."""
        for one in self.listeners:
            one.to_compute(point, part, like, x)

    def see(self, point: Point, *tensors: Tensor) -> None:
        """Show a result to listeners that do not replace it."""
        result = tensors[0] if type(point.result) is Place else _filled(point.result, tensors)
        for one in self.listeners:
            one.see(point, result)

    def at(self, point: Point, shown: int, tensors: list[Tensor]) -> list[Tensor]:
        """Call the hooks and listeners of a point; return its tensors, which they may replace.

        shown : see `cutting.py`
        """

        def filled(tree: Any) -> Any:
            return _filled(tree, tensors)

        for one in self.listeners:
            one.at(point)
        if point.kind == FUNCTION:
            result = filled(point.result)
            for one in self.listeners:
                answer = one.called(point, result)
                result = result if answer is None else answer
            return list(passing(point.result, result))
        if point.kind == ENTER:
            call = HookedCall(point.maker, filled(point.args), filled(point.kwargs))
            call.run_pre_hooks()
            return [*passing(point.args, call.args), *passing(point.kwargs, call.kwargs)]
        args, kwargs = (point.args, point.kwargs) if shown == CALL else ((), {})
        call = HookedCall(point.maker, filled(args), filled(kwargs))
        call.result = filled(point.result)
        call.run_forward_hooks()
        return list(passing(point.result, call.result))


def _filled(tree: Any, tensors: Sequence[Tensor]) -> Any:
    """Return arguments, or a result, with tensors at their places."""
    return mapped(tree, lambda one: tensors[one.number] if isinstance(one, Place) else one)


class Unwatched:
    """In the place of a `Watch`: nobody watches."""

    def compute(self, point: Point, part: ConvPart, like: Any, x: Tensor) -> None:
        """Do nothing."""

    def see(self, point: Point, *tensors: Tensor) -> None:
        """Do nothing."""

    def at(self, point: Point, shown: int, tensors: list[Tensor]) -> list[Tensor]:
        """Return the tensors that pass."""
        return tensors[: point.n_results]


# Calls of functions


def is_new(result: Any, args: tuple, written: Tensor | None) -> bool:
    """Return whether a function returned tensors that it computed, or wrote into."""
    if not isinstance(result, Tensor):
        return isinstance(result, tuple | list) and any(isinstance(one, Tensor) for one in result)
    # It may return its argument, as `contiguous` does where there is nothing to do.
    return written is not None or all(one is not result for one in args)


@functools.cache
def _place_of_inplace(function: Callable, name: str) -> int | None:
    """Return the index of the ``inplace`` argument; None if the function has none.

    Return 0 for functions that always write into their first argument, such as ``add_``.
    """
    if (name[-1] == "_" and name[-2] != "_") or name == "__setitem__":
        return 0
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code else ()
    return names.index("inplace") if "inplace" in names else None


def written_by(function: Callable, name: str, args: tuple, kwargs: dict) -> Tensor | None:
    """Return the tensor that a call changes in place, if it does that."""
    place = _place_of_inplace(function, name)
    target: Any = None
    if kwargs and kwargs.get("out") is not None:
        target = kwargs["out"]
    elif kwargs.get("inplace"):
        target = args[0] if args else kwargs.get("input")
    elif place is not None and len(args) > place and (not place or args[place]):
        target = args[0]
    return target if isinstance(target, Tensor) else None
