"""What a profile sees while it runs: calls of modules, operations, and their backward passes."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from types import MethodType
from typing import Any

from convcore import nn
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import Node
from convcore.autograd.observation import observed
from convcore.engine.runtime.restoring import Calls
from convcore.inference.layers import PrepackedConv
from convcore.inspection._optimized import is_optimized
from convcore.inspection.profiling._costs import COSTLY, CostlyCall

ENTER, LEAVE, OPERATION, BACKWARD, PLAN = range(5)
_COSTLY_MODULES = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear),
    *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, PrepackedConv),
)


class Operation:
    """One recorded operation: its node's name, the bytes of its results, and what it costs."""

    __slots__ = ("call", "n_bytes", "name")

    def __init__(self, name: str, n_bytes: int, call: CostlyCall | None) -> None:
        self.name, self.n_bytes, self.call = name, n_bytes, call


class _Forward:
    """A module's timed forward; in a copy of the module, or a file, the module's own.

    A function would stay what it is in a copy: one that computes with the weights of the original.
    """

    __slots__ = ("module", "own", "recorder", "timed")

    def __init__(self, recorder: Recorder, timed: Callable, module: nn.Module, own: Any) -> None:
        self.recorder, self.timed, self.module, self.own = recorder, timed, module, own

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.timed(*args, **kwargs)

    def __deepcopy__(self, memo: dict) -> Any:
        if self.own is not None:
            return copy.deepcopy(self.own, memo)
        return MethodType(type(self.module).forward, copy.deepcopy(self.module, memo))

    def __reduce__(self) -> tuple:
        return _own_forward, (self.module, self.own)


def _own_forward(module: nn.Module, own: Any) -> Any:
    """Return the forward of an unpickled module."""
    return MethodType(type(module).forward, module) if own is None else own


def _put_back(module: nn.Module, timed: _Forward) -> None:
    """Give a module the forward that it had, without those of profiles that ended before."""
    own: Any = timed.own
    while isinstance(own, _Forward) and not own.recorder._running:
        own = own.own
    if own is None:
        del module.__dict__["forward"]
    else:
        module.__dict__["forward"] = own


class Recorder:
    """A list of events, in nanoseconds, of one thread.

    Attributes
    ----------
    events : list of tuple
        (ENTER, time, module's number), (LEAVE, time, costly call or None), (OPERATION, start, end,
        operation), (BACKWARD, start, end, operation, needs), (PLAN, start, ends, records): see
        `convcore.inference.execution_plan.Plan`.
    names, types : list of str
        Of the modules, by number.
    """

    def __init__(self, model: nn.Module) -> None:
        self.events: list[tuple] = []
        self.names: list[str] = []
        self.types: list[str] = []
        self._thread = threading.get_ident()
        self._last = perf_counter_ns()
        self._watching: Any = None
        self._wrapped: list[tuple[nn.Module, _Forward]] = []
        self._steps: tuple[Node, CostlyCall] | None = None  # whose node is not described yet
        self._running = False
        self._planned = 0  # calls of optimized nets that go on
        self._modules = list(_watched(model))
        self._caches: list[Any] = [m._plans for _, m in self._modules if is_optimized(m)]

    def back(self) -> Calls:
        """Return the calls that undo `start`."""
        self._watching = observed(self._operation)
        return ((self._stop, ()), *self._watching._back(), (self._describe, ()))

    def start(self) -> None:
        """Begin to record, after a call of `back`."""
        self._thread = threading.get_ident()
        self._watching._enter()
        self._running = True
        for cache in self._caches:
            cache.profilers += (self._plan_ran,)
        inside = None  # the beginning of the names of what an optimized net is made of
        for name, module in self._modules:
            if inside is None or not name.startswith(inside[0]):
                plans = module._plans if is_optimized(module) else None
                inside = plans and (f"{name}." if name else "", plans)
            timed = self._timed_forward(module, len(self.names), inside and inside[1])
            self._wrapped.append((module, timed))
            module.__dict__["forward"] = timed
            self.names.append(name)
            self.types.append(module._get_name())
        self._modules = []
        self._last = perf_counter_ns()

    def _stop(self) -> None:
        """Give the modules the forward that they had."""
        self._running = False
        for cache in self._caches:
            cache.profilers = tuple(one for one in cache.profilers if one != self._plan_ran)
        self._caches = []
        while self._wrapped:
            module, timed = self._wrapped[-1]
            if module.__dict__.get("forward") is timed:  # else a later profile does so
                _put_back(module, timed)
            self._wrapped.pop()

    def _plan_ran(self, records: Sequence[Any], times: list[int]) -> None:
        """Note the steps of a plan."""
        if threading.get_ident() == self._thread and self._running:
            self.events.append((PLAN, times[0], times[1:], records))

    def _timed_forward(self, module: nn.Module, number: int, plans: Any) -> _Forward:
        """Return a module's forward that notes when it is entered and left.

        plans : the `PlanCache` of the optimized net that it is in: runs that plans are made of are
        not noted
        """
        forward, events, thread = module.forward, self.events, self._thread
        own = module.__dict__.get("forward")
        costly = isinstance(module, _COSTLY_MODULES)
        planned = is_optimized(module)

        def timed(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread or not self._running:
                return forward(*args, **kwargs)
            if plans is not None and plans.is_recording:
                return forward(*args, **kwargs)
            call = None
            events.append((ENTER, perf_counter_ns(), number))
            self._last = perf_counter_ns()
            self._planned += planned
            try:
                result = forward(*args, **kwargs)
                if costly and not mode.enabled:  # the operation is not recorded
                    call = CostlyCall.of_module(module, args, result)
                return result
            finally:
                self._planned -= planned
                events.append((LEAVE, perf_counter_ns(), call))
                self._last = perf_counter_ns()

        return _Forward(self, timed, module, own)

    def _operation(self, node: Node, inputs: tuple, outputs: Any) -> None:
        """Note an operation, which has just been recorded, and have its backward measured."""
        if self._planned:  # it is of a run that a plan is made from
            return
        now = perf_counter_ns()
        if self._steps is not None:
            self._describe()
        name = type(node).__name__
        call = None
        if name in COSTLY:
            call = CostlyCall.of_node(name, inputs, outputs)
            self._steps = node, call
        operation = Operation(name, _new_bytes(inputs, outputs), call)
        self.events.append((OPERATION, self._last, now, operation))
        if node._backward is not None:
            node._backward = self._timed_backward(node._backward, operation)
        self._last = perf_counter_ns()

    def _describe(self) -> None:
        """Take a convolution's steps from its node, which gets them after it is recorded."""
        if self._steps is not None:
            node, call = self._steps
            call.describe(**node.attributes)
            self._steps = None

    def _timed_backward(self, backward: Callable, operation: Operation) -> Callable:
        """Return a node's backward function that notes when it runs, as long as this records."""

        def timed(needs: tuple[bool, ...], *args: Any) -> Any:
            if not self._running:
                return backward(needs, *args)
            start = perf_counter_ns()
            result = backward(needs, *args)
            self.events.append((BACKWARD, start, perf_counter_ns(), operation, needs))
            self._last = perf_counter_ns()
            return result

        return timed


def _watched(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the modules to measure: those that have a forward of their own.

    What an optimized net is made of is called by its plan before its layers are fused; it is then
    measured as a whole.
    """
    found: list[tuple[str, nn.Module]] = []
    inside = None  # the beginning of the names of what an optimized net is made of
    for name, module in model.named_modules():
        if inside is not None and name.startswith(inside):
            continue
        if is_optimized(module) and not module._fused:
            inside = f"{name}." if name else ""
        if type(module).forward is not nn.Module.forward:
            found.append((name, module))
    return found


def _new_bytes(inputs: tuple, outputs: Any) -> int:
    """Return the bytes of an operation's results that are neither views nor made in place."""
    total = 0
    for output in outputs if isinstance(outputs, tuple) else (outputs,):
        array = output._array
        if output._view is None:
            for tensor in inputs:
                if isinstance(tensor, Tensor) and tensor._array is array:
                    break
            else:
                total += array.nbytes
    return total
