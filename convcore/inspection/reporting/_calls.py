"""The calls of a net's forward pass: a tree of who calls whom, and a flow of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from convcore import nn, overrides
from convcore._tensor import Tensor
from convcore.engine.conv.plan import Plan
from convcore.engine.runtime._restoring import within
from convcore.engine.runtime.restoring import together
from convcore.inference.op_graph import is_own
from convcore.inspection.profiling._costs import CostlyCall
from convcore.inspection.summary import shapes
from convcore.inspection.watching.calls import leaves
from convcore.inspection.watching.nesting import Nesting
from convcore.inspection.work import multiply_adds
from convcore.nn.modules._hooks import call_hooks

INPUT = -1  # in place of a call's number: what the net is given
_CONVOLUTIONS = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
)


@dataclass
class Call:
    """One call of a module or function.

    ``name`` is as `capture` names it, ``given`` are the shapes of the tensors that it takes,
    ``inputs`` the numbers of the calls whose results those are, ``children`` those of the calls
    inside it; ``output`` its result with shapes in place of tensors. Multiply-adds and bytes of new
    results include the calls inside.
    """

    number: int
    name: str
    type: str
    parent: int | None
    module: nn.Module | None = None
    given: list[list[int]] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    output: Any = None
    parameters: int = 0
    multiply_adds: int = 0
    bytes: int = 0
    plan: Plan | None = None


class _Recorder:
    """Records calls, from the net's being entered to its being left, but none of it inside."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.names = {module: name or "output" for name, module in model.named_modules()}
        self.calls: list[Call] = []
        self._inside: list[Call] = []
        self._nesting = Nesting()
        self._counts: Counter[str] = Counter()
        self._makers: dict[int, int] = {}  # id of a tensor -> the call that made it
        self._weights = {*model.parameters(), *model.buffers()}
        self._kept: list[Tensor] = []  # an id stays a tensor's own as long as the tensor lives

    def enter(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        """Begin a module's call (a forward pre-hook)."""
        if module is self.model and self._nesting.enter():
            self.calls.clear()
            self._inside.clear()
            self._counts.clear()
        if self._nesting.inner:
            return
        call = self._begin(self.names[module], module._get_name(), (args, kwargs))
        call.module = module
        call.parameters = sum(parameter.numel() for parameter in module.parameters())
        self._inside.append(call)

    def leave(self, module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        """End it (a forward hook)."""
        inner = self._nesting.inner
        if module is self.model:
            self._nesting.leave()
        if inner:
            return
        call = self._inside.pop()
        call.multiply_adds += multiply_adds(module, args, output, kwargs)
        if isinstance(module, _CONVOLUTIONS):
            product = CostlyCall.of_module(module, args, output)
            call.plan = None if product is None else product.plan()
        self._end(call, (args, kwargs), output)

    def called(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        """Record the call of a function, unless it is part of one of convcore's layers.

        Of those that have layers inside, as a transformer's, it is recorded: what flows from one to
        the next goes through it.
        """
        result = function(*args, **kwargs)
        told = self._inside and not self._nesting.inner
        module = self._inside[-1].module if told else None
        if module is None or (is_own(module) and not any(module.children())):
            return result
        if next(leaves("", result), None) is None:
            return result
        in_place = name.endswith("_") and not name.endswith("__")
        if any(result is one for one in args) and not in_place:  # there was nothing to do
            return result
        path = "" if module is self.model else f"{self.names[module]}."
        name = name.strip("_")
        call = self._begin(f"{path}{name}", name, (args, kwargs))
        self._end(call, (args, kwargs), result)
        return result

    def _begin(self, name: str, type: str, given: Any) -> Call:
        parent = self._inside[-1].number if self._inside else None
        call = Call(len(self.calls), name, type, parent)
        tensors = [tensor for _, tensor in leaves("", given)]
        call.given = [list(tensor.shape) for tensor in tensors]
        known = (self._makers.get(id(one)) for one in tensors if one not in self._weights)
        call.inputs = sorted({INPUT if one is None else one for one in known})
        if parent is not None:
            self.calls[parent].children.append(call.number)
        self.calls.append(call)
        return call

    def _end(self, call: Call, given: Any, output: Any) -> None:
        """Name a call, in the order in which calls end, and note what it made."""
        self._counts[call.name] += 1
        number = self._counts[call.name]
        call.name += f":{number}" if number > 1 else ""
        call.output = shapes(output)
        taken = {tensor.data_ptr() for _, tensor in leaves("", given)}
        for _, tensor in leaves("", output):
            if self._makers.get(id(tensor), INPUT) <= call.number:  # by no call inside this one
                self._makers[id(tensor)] = call.number
            self._kept.append(tensor)
            if not call.children and tensor.data_ptr() not in taken:
                call.bytes += tensor.nbytes
        if call.parent is not None:
            self.calls[call.parent].bytes += call.bytes
            self.calls[call.parent].multiply_adds += call.multiply_adds


def calls_of(model: nn.Module, run: Callable[[], Any]) -> list[Call]:
    """Run a net and return its calls, each before those inside it; the first is its own.

    Parameters
    ----------
    model : Module
    run : callable
        Calls the net.
    """
    seen = _Recorder(model)
    hooks = call_hooks(seen.names, seen.enter, seen.leave, with_kwargs=True)
    within(together(hooks, overrides.watching(seen.called)), run)
    return seen.calls


def inside(calls: Sequence[Call], number: int) -> Iterator[int]:
    """Yield a call's number and those of all calls inside it."""
    yield number
    for child in calls[number].children:
        yield from inside(calls, child)
