"""Calls of a net by name: its modules through hooks, its functions through interception.

A call's name is the module's path, or the path of the module whose ``forward`` calls a function and
the function's name, as in ``layer1.0.add``; the second call of that name ends in ``:2``. Functions
inside convcore's own layers have no name: the layer has it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any, Protocol

from convcore import nn, overrides
from convcore._tensor import Tensor
from convcore.engine.runtime.restoring import Calls as Undo
from convcore.engine.runtime.restoring import restoring, together
from convcore.inference import OptimizedModule
from convcore.inference.layers import ConvPart
from convcore.inference.op_graph import is_own
from convcore.inference.points import FUNCTION, LEAVE, Place, Point, is_new, written_by
from convcore.inspection.watching.hooks import Hook
from convcore.inspection.watching.nesting import Nesting
from convcore.inspection.watching.recipes import convolution
from convcore.nn.modules._hooks import call_hooks

ROOT = "output"  # the name of the net's own call


class Listener(Protocol):
    """What `Calls` tells.

    Attributes
    ----------
    replaces : bool
        Whether `made` may return results to take in the place of others.
    """

    replaces: bool

    def begin(self) -> None:
        """Hear that the whole net is called: names start again."""

    def before_write(self, tensor: Tensor) -> None:
        """Hear that a function is about to change a tensor in place."""

    def wants(self, name: str, maker: Any) -> bool:
        """Return whether `made` has to hear what a call in a plan returned."""

    def made(self, name: str, maker: Any, result: Any) -> Any:
        """Hear what a call returned; a value other than None replaces it."""


class Calls:
    """Tells a listener the calls of a net, in a block of `told` and in this thread.

    Of a call of the net inside its own call, as from a hook of its own, nothing is told.

    Outside the block it knows no listener: an object that has a `Calls` and listens to it is in no
    cycle of references.

    Attributes
    ----------
    known : set of str
        The names that were heard, without numbers; complete after the block.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        paths = {module: name for name, module in named_modules(model)}
        self._names = {module: path or ROOT for module, path in paths.items()}
        self._prefixes = {module: _prefix(module, path) for module, path in paths.items()}
        # What nets of `optimize_for_inference` are made of: those have the names.
        self._unnamed = {m.model for m in self._names if isinstance(m, OptimizedModule)}
        self._listener: Any = None
        self._inside: list[str | None] = []
        self._counts: dict[str, int] = {}
        self._nesting = Nesting()
        self._planned: _Planned | None = None  # while a plan runs
        self._last_plan: _Planned | None = None
        self._fused: Any = None
        self._seen: list[tuple[Point, Any]] = []  # in a plan, and not told yet
        self._here: str | None = None  # the name of the point of a plan that is passed
        self._thread = 0
        self.known: set[str] = set(self._names.values())

    @restoring
    def told(self, listener: Listener, fused: Any = None) -> Iterator[Undo]:
        """Tell a listener the calls until the block ends.

        Parameters
        ----------
        listener : Listener
        fused : FusedCalls, optional
            What hears of layers that run as one function. Without it they run one by one.

        Raises
        ------
        RuntimeError
            The net, or one inside it, is an optimized one whose layers are not fused yet. It is
            open already.
        """
        if self._listener is not None:
            raise RuntimeError("this block is open already: make another one")
        for module, name in self._names.items():
            if isinstance(module, OptimizedModule) and not module._fused:
                raise RuntimeError(
                    f"{name}: an optimized net fuses its layers at its first call: call it before"
                )
        before, after = Hook(self._enter, fused, self), Hook(self._leave, fused, self)
        hooks = call_hooks(self._names, before, after, always_call=True)
        watching = together(overrides.watching(self._called), hooks)
        yield (*watching._back(), (self._forget, ()))
        self._thread, self._listener, self._fused = get_ident(), listener, fused
        watching._enter()

    def _forget(self) -> None:
        """Forget the listener and the calls."""
        self._listener = self._fused = self._planned = self._last_plan = self._here = None
        self._nesting.forget()
        self._restart()

    def _enter(self, module: nn.Module, args: tuple) -> None:
        if get_ident() != self._thread or self._planned is not None:
            return
        if module is self._model and self._nesting.enter():
            self._inside.clear()  # of an interrupted call, which no hook saw the end of
            self._restart()
            self._listener.begin()
        if not self._nesting.inner:
            self._inside.append(self._prefixes[module])

    def _leave(self, module: nn.Module, args: tuple, result: Any) -> Any:
        if get_ident() != self._thread:
            return None
        if self._planned is not None:
            return self._tell_planned(module, result)
        if not self._inside:
            return None
        inner = self._nesting.inner
        if module is self._model:
            self._nesting.leave()
        if inner:
            return None
        self._inside.pop()
        if module in self._unnamed:
            return None
        name = self._numbered(self._names[module])
        return overrides.unwatched(self._listener.made, name, module, result)

    # This and what it calls is done at each call of a function: few steps, no generators.
    def _called(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        written = written_by(function, name, args, kwargs)
        if written is not None:
            overrides.unwatched(self._listener.before_write, written)
        prefix = self._prefix_here()
        result = function(*args, **kwargs)
        if prefix is None or not is_new(result, args, written):
            return result
        place = self._numbered(prefix + name.strip("_"))
        answer = overrides.unwatched(self._listener.made, place, function, result)
        if answer is None:
            return result
        # What a function changed in place has other users than those of the function's result.
        return answer if written is None else written.copy_(answer)

    def _numbered(self, base: str) -> str:
        number = self._counts[base] = self._counts.get(base, 0) + 1
        return base if number == 1 else f"{base}:{number}"

    def _restart(self) -> None:
        """Have names start again."""
        self.known.update(self._counts)
        self._counts.clear()

    def _prefix_here(self) -> str | None:
        """Return what names of functions that are called now begin with; None: they have none."""
        if self._planned is not None or self._nesting.inner:  # a hook of others calls it
            return None
        return self._inside[-1] if self._inside else None

    # What plans of `optimize_for_inference` tell: see `inference.points.Watch`

    def plan(self, points: list[Point]) -> list[Point]:
        """Return the points of a plan that the listener wants to hear of."""
        if get_ident() != self._thread or self._nesting.inner:
            return []
        last = self._last_plan
        if last is None or not last.fits(points, self._inside, self._counts):
            last = self._last_plan = self._named(points)
        return last.wanted

    def begin_plan(self) -> None:
        """Hear that the points of the last plan are passed now."""
        last = self._last_plan
        if last is None or get_ident() != self._thread or self._nesting.inner:
            return
        if last.has_root:
            self._restart()
            self._listener.begin()
        self._planned = last
        self._counts = dict(last.counts)

    def end_plan(self, is_done: bool) -> None:
        """Hear that a plan ended; if it is not done, the net is called next, without it."""
        if get_ident() != self._thread:
            return
        self._tell_seen()
        if self._planned is not None and not is_done:
            self._counts = dict(self._planned.counts_before)
        self._planned = self._here = None

    def at(self, point: Point) -> None:
        """Hear at which point hooks are called next."""
        if get_ident() == self._thread:
            self._tell_seen()
            self._here = self._name_of(point)

    def takes_recipes(self) -> bool:
        """Return whether recipes of values are enough where values would have to be unfused."""
        return self._fused is not None and self._fused.is_enough()

    def changes(self) -> bool:
        """Return whether the listener may replace results."""
        return self._listener.replaces

    def to_compute(self, point: Point, *recipe: Any) -> None:
        """Hear how a value is computed that a plan did not write: see `recipes.convolution`."""
        self.see(point, recipe)

    def see(self, point: Point, result: Any) -> None:
        """Hear what a call in a plan returned, which is not replaced."""
        if self._planned is not None and get_ident() == self._thread:
            self._seen.append((point, result))

    def _tell_seen(self) -> None:
        """Tell the listener what was seen in a plan, or have it told when it needs that."""
        planned, seen = self._planned, self._seen
        if not seen or planned is None:
            return
        self._seen, names, fused, made = [], planned.names, self._fused, self._listener.made

        def tell() -> None:
            for point, result in seen:
                name = names.get(point)
                if name is None:
                    continue
                if type(result) is tuple and isinstance(result[0], ConvPart):
                    fused.to_compute(name, point.maker, convolution(*result))
                else:
                    made(name, point.maker, result)

        if self.takes_recipes():
            fused.later(functools.partial(overrides.unwatched, tell))
        else:
            overrides.unwatched(tell)

    def _name_of(self, point: Point) -> str | None:
        if self._planned is None or get_ident() != self._thread:
            return None
        return self._planned.names.get(point)

    def called(self, point: Point, result: Any) -> Any:
        """Hear what a function in a plan returned; a value other than None replaces it."""
        if get_ident() != self._thread:
            return None
        return self._tell_planned(point.maker, result)

    def _tell_planned(self, maker: Any, result: Any) -> Any:
        name, self._here = self._here, None
        if name is None:
            return None
        return overrides.unwatched(self._listener.made, name, maker, result)

    def _named(self, points: list[Point]) -> _Planned:
        """Return the names of points, as they would be in a call of the net's layers."""
        planned = _Planned(points, self._inside, self._counts)
        inside, counts = list(self._inside), dict(self._counts)
        for point in points:
            maker, base = point.maker, None
            if point.kind == FUNCTION:
                prefix = inside[-1] if inside else None
                base = None if prefix is None else f"{prefix}{point.name}"
            elif maker not in self._names:
                continue
            elif point.kind == LEAVE:
                if inside:
                    inside.pop()
                    base = None if maker in self._unnamed else self._names[maker]
            else:
                if maker is self._model:
                    planned.has_root = True
                    inside.clear()
                    counts.clear()
                inside.append(self._prefixes[maker])
            if base is not None:
                number = counts[base] = counts.get(base, 0) + 1
                name = planned.names[point] = base if number == 1 else f"{base}:{number}"
                places = [place for place, _ in leaves(name, point.result, Place | Tensor)]
                if any([self._listener.wants(place, maker) for place in places]):
                    planned.wanted.append(point)
        planned.counts = counts
        return planned

    # What `FusedCalls` asks

    def are_told(self) -> bool:
        """Return whether calls are told now."""
        return not self._nesting.inner

    def of_module(self, module: nn.Module) -> str:
        """Return the name of a module's next call, and count that."""
        return self._numbered(self._names[module])

    def of_function(self, name: str) -> str | None:
        """Return the name of a function's next call here, counted; None if it has none."""
        prefix = self._prefix_here()
        return None if prefix is None else self._numbered(f"{prefix}{name}")


class _Planned:
    """What `Calls` knows of a plan: the points' names, and those that are wanted.

    Attributes
    ----------
    counts_before, counts : dict
        Of names, before and after the plan.
    has_root : bool
        Whether the whole net is called in the plan.
    """

    def __init__(
        self, points: list[Point], inside: list[str | None], counts: dict[str, int]
    ) -> None:
        self.points, self.inside, self.counts_before = points, list(inside), dict(counts)
        self.counts: dict[str, int] = {}
        self.names: dict[Point, str] = {}
        self.wanted: list[Point] = []
        self.has_root = False

    def fits(self, points: list[Point], inside: list[str | None], counts: dict[str, int]) -> bool:
        """Return whether it is of a plan that is called there."""
        is_same = self.points is points and self.inside == inside
        return is_same and (self.has_root or self.counts_before == counts)


def named_modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules of a net and their names, in optimized nets those of the net before."""
    parts: dict[str, str] = {}  # what names inside of optimized nets begin with, and shall
    for path, module in model.named_modules():
        name = path
        for begin, own in parts.items():
            if path == begin or path.startswith(f"{begin}."):
                name = f"{own}{path[len(begin) :]}".lstrip(".")
        if isinstance(module, OptimizedModule):
            parts[f"{path}.model" if path else "model"] = name
        yield name, module


def _prefix(module: nn.Module, name: str) -> str | None:
    """Return what names of functions in a module's `forward` begin with; None: they have none."""
    if is_own(module):
        return None
    return f"{name}." if name else ""


def leaves(name: str, value: Any, kind: Any = Tensor) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a call's result, a nested one's by names such as 'lstm[1][0]'."""
    if isinstance(value, kind):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(f"{name}[{key}]", item, kind)
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from leaves(f"{name}[{number}]", item, kind)


def with_leaves(name: str, value: Any, change: Callable[[str, Tensor], Tensor]) -> Any:
    """Return a call's result with each of its tensors replaced by ``change(name, tensor)``."""
    if isinstance(value, Tensor):
        return change(name, value)
    if isinstance(value, dict):
        return type(value)(
            (key, with_leaves(f"{name}[{key}]", item, change)) for key, item in value.items()
        )
    if isinstance(value, tuple | list):
        items = [with_leaves(f"{name}[{k}]", item, change) for k, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


overrides.prepare()  # here, not in the first block: it takes about as long as a pass of a small net
