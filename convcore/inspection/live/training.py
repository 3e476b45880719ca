"""What a training loop does, seen from outside: its losses, its steps, and now and then its layers.

Optimizers have hooks that run after every step of any of them; there the gradients are complete.
Of the net, which no optimizer knows, the hooks of all modules tell: it is the module called that
has most of the optimizer's parameters. Layers are looked at in a single step from time to time, as
hooks cost time and keep functions from being fused; between two looks a step costs microseconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor
from convcore.autograd.handle import RemovableHandle
from convcore.engine.runtime._restoring import undo
from convcore.engine.runtime.restoring import Calls as Undo
from convcore.inspection.live.report import Layer, Report
from convcore.inspection.watching.calls import Calls, leaves
from convcore.nn.modules._hooks import _global_forward_pre_hooks
from convcore.optim.optimizer import Optimizer, _global_post_hooks

_RELUS = (nn.ReLU, nn.ReLU6)
_RELU_NAMES = {"relu", "relu_", "relu6"}


class Training:
    """Calls ``told(report)`` after steps that were looked at, from `open` to `close`.

    `close` may be called again where it was interrupted, and where `open` was.

    Parameters
    ----------
    told : callable
    every : float
        The least seconds between two looks.
    """

    replaces = False

    def __init__(self, told: Callable[[Report], Any], every: float) -> None:
        self.steps = 0
        self._told, self._every = told, every
        self._stepping = RemovableHandle(_global_post_hooks)
        self._called: dict[nn.Module, None] = {}  # in the order of their first calls
        self._finding: Any = None  # the handle of the hook that notes them
        self._looking: Undo = ()  # what ends the look at a step
        self._net: nn.Module | None = None
        self._dead: dict[str, np.ndarray] = {}
        self._last_dead: dict[str, np.ndarray] = {}
        self._reported = 0  # steps, of the last report
        self._parameters: list[Tensor] = []  # of the last step
        self._loss: Any = None
        self._thread = 0
        self._noted: Any = None

    def open(self) -> None:
        """Register the hooks."""
        self._thread = get_ident()
        self._begun = self._looked = time.perf_counter()
        self._backward = vars(Tensor)["backward"]
        self._noted = _noting(self._backward, self._backward_of)
        Tensor.backward = self._noted
        _global_post_hooks[self._stepping.id] = self._stepped
        self._find()

    def close(self) -> None:
        """Remove the hooks, and report the last step if it was not."""
        self._look_away()
        self._found()
        self._stepping.remove()
        if self._noted is not None and vars(Tensor)["backward"] is self._noted:
            Tensor.backward = self._backward  # else the function that replaced it calls it
        try:
            if self.steps > self._reported:
                self._report(self._parameters)
        finally:
            self._net = self._loss = None
            self._parameters = []

    # What hooks tell

    def _backward_of(self, loss: Tensor) -> None:
        if get_ident() == self._thread and loss._array.size == 1:
            self._loss = loss._array

    def _stepped(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        if get_ident() != self._thread:
            return
        self.steps += 1
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        self._parameters = parameters
        if self._finding is not None:
            self._net = _net_of(parameters, self._called)
            self._found()
        if self._looking or self.steps == 1:
            self._look_away()
            self._report(parameters)
        elif time.perf_counter() - self._looked >= self._every:
            self._look()

    def _report(self, parameters: list[Tensor]) -> None:
        layers = _gradients(parameters, self._net)
        # A last step that nobody looked at has the units of the look before.
        self._dead, self._last_dead = {}, self._dead or self._last_dead
        for name, dead in self._last_dead.items():
            layers.setdefault(name, Layer()).add(Layer(None, int(dead.sum()), dead.size))
        self._reported = self.steps
        layers = _in_order(layers, self._net)
        loss = None if self._loss is None else float(self._loss.reshape(-1)[0].real)
        now = time.perf_counter()
        self._told(Report(self.steps, now - self._begun, loss, layers))
        self._looked = time.perf_counter()

    # The net

    def _find(self) -> None:
        self._finding = RemovableHandle(_global_forward_pre_hooks)
        _global_forward_pre_hooks[self._finding.id] = self._note_called

    def _found(self) -> None:
        if self._finding is not None:
            self._finding.remove()
        self._finding = None
        self._called.clear()

    def _note_called(self, module: nn.Module, args: tuple) -> None:
        if get_ident() == self._thread:
            self._called[module] = None

    def _look(self) -> None:
        """Have the next step's calls told to `made`."""
        if self._net is None:
            self._find()
            self._looked = time.perf_counter()
            return
        told = Calls(self._net).told(self)
        self._looking = told._back()
        told._enter()

    def _look_away(self) -> None:
        undo(self._looking)
        self._looking = ()

    # What `Calls` tells

    def begin(self) -> None:
        """Do nothing: a step may call the net several times."""

    def before_write(self, tensor: Tensor) -> None:
        """Do nothing: no values are kept."""

    def wants(self, name: str, maker: Any) -> bool:
        """Return whether a call is one of a ReLU."""
        return isinstance(maker, _RELUS) or getattr(maker, "__name__", "") in _RELU_NAMES

    def made(self, name: str, maker: Any, result: Any) -> None:
        """Note which units of a ReLU's result are zeros."""
        if not self.wants(name, maker):
            return
        for place, tensor in leaves(name, result):
            array = np.asarray(tensor._array)
            axes = tuple(axis for axis in range(array.ndim) if axis != 1)
            if array.ndim > 1 and array.size:
                dead: np.ndarray = ~np.asarray(array.any(axis=axes))
                before = self._dead.get(place)
                if before is not None and before.shape == dead.shape:
                    dead = dead & before
                self._dead[place] = dead


def _noting(backward: Callable, note: Callable) -> Callable:
    """Return a method `backward` that also says which tensor it was called of."""

    def noted(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        note(self)
        return backward(self, *args, **kwargs)

    noted.__wrapped__ = backward  # type: ignore[attr-defined]
    return noted


def _net_of(parameters: list[Tensor], called: dict[nn.Module, None]) -> nn.Module | None:
    """Return the first of the modules called that has most of the parameters; None if none has."""
    wanted = set(map(id, parameters))

    def share(module: nn.Module) -> int:
        return sum(id(one) in wanted for one in module.parameters())

    best = max(called, key=share, default=None)
    return best if best is not None and share(best) else None


def _gradients(parameters: list[Tensor], net: nn.Module | None) -> dict[str, Layer]:
    """Return the norms of gradients by the modules whose parameters they are of."""
    named: dict[int, str] = {}
    if net is not None:  # its own parameters, as a lone layer's, are of its class
        own = type(net).__name__
        paths = ((id(one), name.rpartition(".")[0]) for name, one in net.named_parameters())
        named = {key: path or own for key, path in paths}
    found: dict[str, Layer] = {}
    for parameter in parameters:
        grad = parameter.grad
        array = getattr(grad, "_array", None)
        if isinstance(array, np.ndarray):
            name = named.get(id(parameter), "(others)")
            norm = math.sqrt(float(np.square(np.abs(array), dtype=np.float64).sum()))
            found.setdefault(name, Layer()).add(Layer(norm))
    return found


def _in_order(layers: dict[str, Layer], net: nn.Module | None) -> dict[str, Layer]:
    """Return layers in the order in which the net was made."""
    places = {} if net is None else {name: k for k, (name, _) in enumerate(net.named_modules())}

    def place(name: str) -> int:
        return places.get(name.partition("[")[0].partition(":")[0], len(places))

    return {name: layers[name] for name in sorted(layers, key=place)}
