"""The cached plans of one net: one for each kind of input, made at the first call with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from convcore._errors.frames import is_from_signal_handler
from convcore._tensor import Tensor, wrap
from convcore._tensor.reads import reads
from convcore.autograd.grad_mode import inference_mode, no_grad
from convcore.autograd.handle import RemovableHandle
from convcore.autograd.observation import observed
from convcore.engine.conv.selection import current
from convcore.engine.runtime import memory
from convcore.engine.runtime.locks import process_lock
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.engine.runtime.threads import get_num_threads
from convcore.inference.execution_plan import Plan
from convcore.inference.hidden_runs import HiddenRun, UnrepeatableError
from convcore.inference.layer_trace import recording
from convcore.inference.layers import forget_packed
from convcore.inference.lowering import lowered, ops_of
from convcore.inference.op_graph import Constants, OpGraph
from convcore.inference.plan_builder import UnplannedError
from convcore.inference.validation import agree, other_like
from convcore.nn import Module
from convcore.nn.modules._hooks import is_watched

# Kinds of inputs whose plan is in memory; the oldest plan is dropped first, and made again of the
# kind's ops.
MAX_PLANS = 4
# Kinds of inputs whose ops are cached; of others the net has to run again.
MAX_KINDS = 64
# Kinds without a plan after which no more are tried, if no kind has had one.
MAX_FAILURES = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The layout of an input: what a plan depends on."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    size: int


class Kind:
    """What the net does with inputs of one kind.

    Attributes
    ----------
    ops : OpGraph
    sequence : type or None
        In which the net gives several results: tuple or list; None where it gives one tensor.
    plans : (int, Plan, list of Plan) or None
        A number of threads, a plan for it, and those of its copies that are idle.
    """

    __slots__ = ("ops", "plans", "sequence")

    def __init__(self, ops: OpGraph, sequence: Any) -> None:
        self.ops, self.sequence = ops, sequence
        self.plans: tuple[int, Plan, list[Plan]] | None = None

    def plan(self, narrow: bool) -> Plan:
        """Make the plan, for the present number of threads."""
        threads = get_num_threads()
        made = lowered(self.ops, narrow)
        self.plans = threads, made, [made]
        return made


class PlanCache:
    """The cached plans of a net in evaluation mode.

    A plan repeats what the net did at the first call with an input of that shape and memory format.
    So there is none for a net whose Python code read elements, or that has hooks, or changes
    anything else than its result, nor where the plan's result for a second input differs from the
    net's.  Whether there is one depends on the kind of input, never on earlier calls.

    Parameters
    ----------
    model : Module
    narrow : bool
        Whether results between a plan's steps may be bfloat16 in memory.
    """

    def __init__(self, model: Module, narrow: bool = False) -> None:
        self._model, self._narrow = model, narrow
        # None: there is no plan.
        self._kinds: dict[Any, Kind | None] = {}
        self._planned: list[Kind] = []  # those whose plan is in memory, the oldest first
        self._n_failures: int | None = 0  # None: some kind has had a plan
        self._is_allowed = True
        self._hooks_seen = -1
        self._watched = False
        self._lock = process_lock()

    def __reduce__(self) -> tuple[type[PlanCache], tuple[Module, bool]]:
        return PlanCache, (self._model, self._narrow)  # a copy of the net makes its own plans

    def run(self, input: Tensor) -> Any:
        """Return the net's result for an input; None if there is no plan for it."""
        if self._watched or self._hooks_seen != RemovableHandle.next_id:
            self._look_for_hooks()
        if self._watched or not self._is_allowed:
            return None
        array = input._array
        if not array.flags.aligned:
            array = np.array(array, order="K")
            input = wrap(array)
        key = array.shape, array.strides, array.dtype, current()
        kind = self._kinds.get(key, ...)
        if kind is ...:
            kind = self._add(key, input)
        if kind is None:
            return None
        plans = kind.plans
        if plans is None or plans[0] != get_num_threads():
            plans = self._replanned(kind)
        _, first, idle = plans
        try:
            plan = idle.pop()  # atomic: no two threads get one plan
        except IndexError:
            plan = first.copy()
        try:
            results = plan(array)
        finally:
            idle.append(plan)
        sequence = kind.sequence
        return wrap(results[0]) if sequence is None else sequence(map(wrap, results))

    def forbid(self) -> None:
        """Make no plans from now on, and drop those made: the net has a state that they lack."""
        with self._lock:
            self._is_allowed = False
            self._kinds.clear()
            self._planned.clear()

    def _look_for_hooks(self) -> None:
        """Check whether a layer has hooks; called if hooks were registered since the last call."""
        self._hooks_seen = RemovableHandle.next_id
        self._watched = any(map(is_watched, self._model.modules()))

    def _replanned(self, kind: Kind) -> tuple[int, Plan, list[Plan]]:
        """Make a plan again that was dropped, or made for another number of threads."""
        with self._lock:
            kind.plan(self._narrow)
            self._keep_few(kind)
            plans = kind.plans
            assert plans is not None
            return plans

    def _keep_few(self, newest: Kind) -> None:
        self._planned = [kind for kind in self._planned if kind is not newest] + [newest]
        for kind in self._planned[:-MAX_PLANS]:
            kind.plans = None
        del self._planned[:-MAX_PLANS]

    def _add(self, key: Any, input: Tensor) -> Kind | None:
        """Make and cache the plan for a kind of input."""
        if self._n_failures is not None and self._n_failures >= MAX_FAILURES:
            return None
        made = None
        try:
            made = self._recorded(input)
        except UnrepeatableError:
            self.forbid()
            return None
        except MemoryError:
            raise  # later calls would have other bits than one without a plan
        except Exception as error:  # the net raises its own again when it is called without a plan
            if is_from_signal_handler(error):
                raise
        memory.empty_cache()  # of the runs, which took more than the plan's
        with self._lock:
            if not self._is_allowed:
                return None
            if made is not None:
                self._n_failures = None
                self._keep_few(made)
            elif self._n_failures is not None:
                self._n_failures += 1
            while len(self._kinds) >= MAX_KINDS:
                del self._kinds[next(iter(self._kinds))]
            return self._kinds.setdefault(key, made)

    def _recorded(self, input: Tensor) -> Kind:
        """Run the net once, and make a plan of its ops."""
        with self._lock:
            before = reads.count
            with differentiable(self._model), inference_mode(False), HiddenRun(self._model) as run:
                leaf = wrap(input._array).requires_grad_()
                constants = Constants(self._model, leaf)
                with recording(), observed(constants.note):
                    result = self._model(leaf)
                sequence = None if isinstance(result, Tensor) else _sequence_of_tensors(result)
                results = [result] if sequence is None else result
                ops = ops_of(leaf, results, constants)
            if not run.is_pure:
                raise UnrepeatableError("its code changes its state")
            if reads.count != before:
                raise UnplannedError("what is done depends on elements")
            kind = Kind(ops, sequence)
            plan = kind.plan(self._narrow)
            if not self._is_right(plan, input):
                raise UnplannedError("what is done does not show in the graph")
            forget_packed(self._model)  # of the net's own runs, which may be packed otherwise
            array = input._array
            ops.input._array = cast(
                np.ndarray, _Layout(array.shape, array.strides, array.dtype, array.size)
            )
            return kind

    def _is_right(self, plan: Plan, input: Tensor) -> bool:
        """Return whether plan and net agree on another input."""
        other = other_like(input)
        with no_grad():
            made = tuple(map(wrap, plan(other._array)))
            with HiddenRun(self._model) as run:
                result = self._model(other)
                right = agree(result, made)
            if not run.is_pure:
                raise UnrepeatableError("its code changes its state")
            return right


@restoring
def differentiable(model: Module) -> Iterator[Calls]:
    """Let a net's parameters require gradients, which they do not after the block."""
    parameters = list(model.parameters())
    yield tuple((each.requires_grad_, (False,)) for each in parameters)
    for parameter in parameters:
        parameter.requires_grad_(parameter.is_floating_point())


def _sequence_of_tensors(result: Any) -> Any:
    """Return the type of a tuple or list of tensors."""
    if type(result) not in (tuple, list) or not all(isinstance(one, Tensor) for one in result):
        raise UnplannedError("results that are no tensors")
    return type(result)
