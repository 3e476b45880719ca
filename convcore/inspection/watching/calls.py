"""Calls of a net by name: its modules through hooks, its functions through interception.

A call's name is the module's path, or the path of the module whose ``forward`` calls a function and
the function's name, as in ``layer1.0.add``; the second call of that name ends in ``:2``. Functions
inside convcore's own layers have no name: the layer has it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any, Protocol

from convcore import nn, overrides
from convcore._tensor import Tensor
from convcore.engine.runtime.restoring import Calls as Undo
from convcore.engine.runtime.restoring import restoring, together
from convcore.inference import OptimizedModule
from convcore.inspection.watching.hooks import Hook
from convcore.inspection.watching.nesting import Nesting
from convcore.nn.modules._hooks import call_hooks

ROOT = "output"  # the name of the net's own call


class Listener(Protocol):
    """What `Calls` tells."""

    def begin(self) -> None:
        """Hear that the whole net is called: names start again."""

    def before_write(self, tensor: Tensor) -> None:
        """Hear that a function is about to change a tensor in place."""

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
        self._names = {module: name or ROOT for name, module in model.named_modules()}
        self._prefixes = {m: _prefix(m, "" if m is model else n) for m, n in self._names.items()}
        self._listener: Any = None
        self._inside: list[str | None] = []
        self._counts: dict[str, int] = {}
        self._nesting = Nesting()
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
        before, after = Hook(self._enter, fused), Hook(self._leave, fused)
        hooks = call_hooks(self._names, before, after, always_call=True)
        watching = together(overrides.watching(self._called), hooks)
        yield (*watching._back(), (self._forget, ()))
        self._thread, self._listener = get_ident(), listener
        watching._enter()

    def _forget(self) -> None:
        """Forget the listener and the calls."""
        self._listener = None
        self._nesting.forget()
        self._restart()

    def _enter(self, module: nn.Module, args: tuple) -> None:
        if get_ident() != self._thread:
            return
        if module is self._model and self._nesting.enter():
            self._inside.clear()  # of an interrupted call, which no hook saw the end of
            self._restart()
            self._listener.begin()
        if not self._nesting.inner:
            self._inside.append(self._prefixes[module])

    def _leave(self, module: nn.Module, args: tuple, result: Any) -> Any:
        if get_ident() != self._thread or not self._inside:
            return None
        inner = self._nesting.inner
        if module is self._model:
            self._nesting.leave()
        if inner:
            return None
        self._inside.pop()
        name = self._numbered(self._names[module])
        return overrides.unwatched(self._listener.made, name, module, result)

    # This and what it calls is done at each call of a function: few steps, no generators.
    def _called(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        written = written_by(function, name, args, kwargs)
        if written is not None:
            overrides.unwatched(self._listener.before_write, written)
        prefix = self._prefix_here()
        result = function(*args, **kwargs)
        if prefix is None or not (isinstance(result, Tensor) or _has_tensors(result)):
            return result
        if written is None:
            for one in args:
                if one is result:
                    return result  # as `contiguous` where there is nothing to do
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
        return self._inside[-1] if self._inside and not self._nesting.inner else None

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


def _prefix(module: nn.Module, name: str) -> str | None:
    """Return what names of functions in a module's `forward` begin with; None: they have none."""
    if is_own(module):
        return None
    return f"{name}." if name else ""


def is_own(module: nn.Module) -> bool:
    """Return whether a module's class is one of convcore's layers, or a node of ONNX."""
    # torch is the name of classes in PyTorch's place: see compat/door.py.
    return type(module).__module__.startswith(("convcore.nn.", "torch.nn.", "convcore.onnx.nodes"))


def _has_tensors(value: Any) -> bool:
    return isinstance(value, tuple | list) and any(isinstance(one, Tensor) for one in value)


@functools.cache
def _place_of_inplace(function: Callable, name: str) -> int | None:
    """Return which argument says that a function writes into its first; None: there is none.

    It is the first one itself of functions that always do.
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


def leaves(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a call's result, a nested one's by names such as 'lstm[1][0]'."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(f"{name}[{key}]", item)
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from leaves(f"{name}[{number}]", item)


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
