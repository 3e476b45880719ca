"""patch: change activations and gradients of a net's calls by name, or stop at one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from convcore import nn, randn
from convcore._errors import hinted
from convcore._tensor import Tensor, wrap
from convcore.autograd.hooks import register_hook
from convcore.engine.runtime._restoring import Ending
from convcore.engine.runtime.restoring import Calls as Undo
from convcore.functions.shapes.broadcast import broadcast_to
from convcore.inspection._models import check_model
from convcore.inspection.watching.calls import Calls, with_leaves
from convcore.inspection.watching.selection import Selection

Action = Callable[[Tensor], Tensor] | Tensor


class _Stopped(Exception):
    """Ends the net's call; `Patch` takes it."""


def zero(value: Tensor) -> Tensor:
    """Ablate, for `patch`: zeros in the place of an activation or gradient."""
    return value.masked_fill(wrap(np.array(True)), 0)  # of NaN too


def scale(factor: float) -> Callable[[Tensor], Tensor]:
    """Multiply by a number, for `patch`."""
    return lambda value: value * factor


def noise(std: float, generator: Any = None) -> Callable[[Tensor], Tensor]:
    """Add normal noise of a standard deviation, for `patch`.

    Parameters
    ----------
    std : float
    generator : Generator, optional
        Default: the process's own.
    """

    def add(value: Tensor) -> Tensor:
        return value + std * randn(value.shape, dtype=value.dtype, generator=generator)

    return add


def stop(value: Tensor) -> Tensor:
    """Stop at a call, for `patch`: the block ends there, and ``stopped`` is what the call made."""
    raise _Stopped


class Patch(Ending):
    """What `patch` returns.

    Attributes
    ----------
    stopped : Tensor or None
        What the call made at which the net was stopped.
    """

    replaces = True

    def __init__(
        self, model: nn.Module, outputs: Mapping[Any, Action], grads: Mapping[Any, Action]
    ) -> None:
        self.stopped: Any = None
        self._outputs = _Rules(outputs, "outputs")
        self._grads = _Rules(grads, "grads")
        self._calls = Calls(model)
        self._told: Any = None
        self._handles: list[Any] = []
        self._called = False

    def _back(self) -> Undo:
        self._told = self._calls.told(self)
        return (*self._told._back(), (self._forget_hooks, ()))

    def _enter(self) -> Patch:
        self._told._enter()
        return self

    def _ended(self, error: BaseException | None) -> bool:
        self._told = None
        if error is None and self._called:
            self._outputs.check(self._calls.known)
            self._grads.check(self._calls.known)
        return isinstance(error, _Stopped)

    def _forget_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._outputs.begin()
        self._grads.begin()

    # What `Calls` tells

    def begin(self) -> None:
        """Forget what belongs to an earlier call of the net."""
        self._called = True
        self._forget_hooks()

    def before_write(self, tensor: Tensor) -> None:
        """Do nothing: no values are kept."""

    def wants(self, name: str, maker: Any) -> bool:
        """Return whether a call's result may be changed: in plans there are no gradients."""
        return bool(self._outputs.select(name, maker) or self._grads.select(name, maker))

    def made(self, name: str, maker: Any, result: Any) -> Any:
        """Return the call's result with the changes, or None if there are none."""
        changed: list[str] = []

        def change(place: str, value: Tensor) -> Tensor:
            new = value
            for number, action in self._outputs.of(place, maker, value):
                if action is stop:
                    self.stopped = value
                    raise _Stopped
                new = self._outputs.done(number, _applied(action, new, place))
            if new is not value:
                changed.append(place)
            self._watch_gradient(place, maker, new)
            return new

        new = with_leaves(name, result, change)
        return new if changed else None

    def _watch_gradient(self, name: str, maker: Any, value: Tensor) -> None:
        if not value.requires_grad:
            return
        for number, action in self._grads.of(name, maker, value):
            if action is stop:
                raise ValueError(f"grads: {name}: a backward pass cannot be stopped")
            self._grads.done(number, value)
            self._handles.append(register_hook(value, _gradient_hook(action, name)))


class _Rules:
    """The actions by selector, and what each of them changed last."""

    def __init__(self, given: Mapping[Any, Action], argument: str) -> None:
        if not isinstance(given, Mapping):
            raise TypeError(
                f"{argument} must be a mapping of selectors to functions or tensors, got "
                f"{type(given).__name__}"
            )
        for selector, action in given.items():
            if not isinstance(action, Tensor) and not callable(action):
                raise TypeError(
                    f"{argument}[{selector!r:.99}] must be a function or a tensor, got "
                    f"{type(action).__name__}"
                )
        self._actions = list(given.values())
        self._selection = Selection(list(given), argument)
        self._last: dict[int, tuple[Tensor, int]] = {}

    def begin(self) -> None:
        self._last.clear()

    def check(self, names: Iterable[str]) -> None:
        self._selection.check(names)

    def select(self, name: str, maker: Any) -> list[int]:
        """Return the numbers of the selectors that a call fits."""
        return self._selection.of(name, maker)

    def of(self, name: str, maker: Any, value: Tensor) -> list[tuple[int, Action]]:
        """Return the actions for a value; not those that made it, for a module passes it on."""
        numbers = self.select(name, maker)
        return [(k, self._actions[k]) for k in numbers if not self._is_done(k, value)]

    def done(self, number: int, value: Tensor) -> Tensor:
        self._last[number] = value, value._counter[0]
        return value

    def _is_done(self, number: int, value: Tensor) -> bool:
        last = self._last.get(number)
        return last is not None and last[0] is value and last[1] == value._counter[0]


def _applied(action: Action, value: Tensor, name: str) -> Tensor:
    """Return what an action makes of a value; it has the same shape and dtype."""
    new = action if isinstance(action, Tensor) else action(value)
    if new is None:
        return value
    if not isinstance(new, Tensor):
        text = f"{name}: a function returned {type(new).__name__} in place of a tensor"
        made = f"{getattr(action, '__name__', 'it')} makes a function: call it first, as scale(0.5)"
        raise hinted(TypeError(text), made if callable(new) else "")
    if new.dtype != value.dtype:
        raise TypeError(f"{name}: {new.dtype} cannot take the place of {value.dtype}")
    if new.shape != value.shape:
        if new is not action:
            raise ValueError(f"{name}: a function changed {list(value.shape)} to {list(new.shape)}")
        try:
            return broadcast_to(new, value.shape)
        except RuntimeError:
            raise ValueError(
                f"{name}: a tensor of shape {list(new.shape)} cannot take the place of one of "
                f"{list(value.shape)}"
            ) from None
    return new


def _gradient_hook(action: Action, name: str) -> Callable[[Tensor | None], Tensor | None]:
    def hook(grad: Tensor | None) -> Tensor | None:
        # Of a result that nothing reads there is none, as of one half of a split.
        return None if grad is None else _applied(action, grad, f"gradient of {name}")

    return hook


def patch(
    model: nn.Module,
    outputs: Mapping[Any, Action] | None = None,
    *,
    grads: Mapping[Any, Action] | None = None,
) -> Patch:
    """Change activations or gradients of a net's layers and functions, as a context manager.

    Parameters
    ----------
    model : Module
    outputs, grads : dict, optional
        By selector, as of `capture`: a function ``tensor -> tensor``, or a tensor that takes the
        place, broadcast if need be. `zero`, `scale`, `noise` and `stop` are ready-made functions. A
        function that returns None changes nothing; it may change the activation in place.

    Returns
    -------
    Patch

    Raises
    ------
    TypeError, ValueError
        An argument, or what took a tensor's place, is of another kind, dtype or shape; at the end
        of the block: a glob fitted no call.
    RuntimeError
        The net is an optimized one that was never called.

    Notes
    -----
    Names are those of `capture`. ``layer2.*`` selects all that is inside layer2, and each value is
    changed by each call that makes one; what a module only passes on is changed once. The net has
    no patch after the block, whatever happened in it; a net stopped by `stop` ends the block.

    Examples
    --------
    >>> import convcore
    >>> from convcore import inspection, nn
    >>> net = nn.Sequential(nn.Flatten(), nn.ReLU())
    >>> x = convcore.ones(1, 2, requires_grad=True)
    >>> with inspection.patch(net, {"0": inspection.scale(3)}, grads={"1": inspection.scale(10)}):
    ...     y = net(x)
    ...     y.sum().backward()
    >>> y.tolist(), x.grad.tolist()
    ([[3.0, 3.0]], [[30.0, 30.0]])
    """
    check_model(model)
    return Patch(model, {} if outputs is None else outputs, {} if grads is None else grads)
