"""The cached plans of one net: one for each kind of input, made at the first call with it."""

from __future__ import annotations

import contextlib
from typing import Any

from convcore._reads import reads
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import inference_mode, no_grad
from convcore.autograd.handle import RemovableHandle
from convcore.autograd.observation import observed
from convcore.engine.conv.algorithms.selection import current
from convcore.engine.runtime import memory
from convcore.engine.runtime.locks import process_lock
from convcore.engine.runtime.threads import get_num_threads
from convcore.inference.execution_plan import Plan
from convcore.inference.layer_trace import recording
from convcore.inference.layers import forget_packed
from convcore.inference.lowering import plan_of
from convcore.inference.op_graph import Constants
from convcore.inference.plan_builder import UnplannedError
from convcore.inference.validation import agree, other_like
from convcore.nn import Module
from convcore.nn.modules._hooks import is_watched
from convcore.random.generator import fork_rng

# Kinds of inputs with a cached plan; the oldest is evicted first.
MOST_KINDS = 4
# Plans made at most, if inputs are of ever new kinds: making a plan takes several runs.
MOST_MADE = 32


Kind = tuple[Plan, list[Plan], type[tuple] | type[list] | None]


class PlanCache:
    """The cached plans of a net in evaluation mode.

    A plan repeats what the net did at the first call with an input of that shape and memory format.
    So there is none for a net whose Python code read elements, or that has hooks, nor where the
    plan's result for a second input differs from the net's.

    Parameters
    ----------
    model : Module
    narrow : bool
        Whether results between a plan's steps may be bfloat16 in memory.
    """

    def __init__(self, model: Module, narrow: bool = False) -> None:
        self._model, self._narrow = model, narrow
        # The plan of a kind of input, its idle copies, and the type of sequence that the net gives
        # results in (None where it gives one tensor); None if there is no plan.
        self._kinds: dict[Any, Kind | None] = {}
        self._n_made = 0
        self._hooks_seen = -1
        self._watched = False
        self._lock = process_lock()

    def __reduce__(self) -> tuple[type[PlanCache], tuple[Module, bool]]:
        return PlanCache, (self._model, self._narrow)  # a copy of the net makes its own plans

    def run(self, input: Tensor) -> Any:
        """Return the net's result for an input; None if there is no plan for it."""
        if self._watched or self._hooks_seen != RemovableHandle.next_id:
            self._look_for_hooks()
        if self._watched:
            return None
        array = input._array
        if not array.flags.aligned:
            return None
        key = array.shape, array.strides, array.dtype, current(), get_num_threads()
        kind = self._kinds.get(key, ...)
        if kind is ...:
            kind = self._add(key, input) if self._n_made < MOST_MADE else None
        if kind is None:
            return None
        first, idle, kept = kind
        try:
            plan = idle.pop()  # atomic: no two threads get one plan
        except IndexError:
            plan = first.copy()
        try:
            results = plan(array)
        finally:
            idle.append(plan)
        return wrap(results[0]) if kept is None else kept(map(wrap, results))

    def _look_for_hooks(self) -> None:
        """Check whether a layer has hooks; called if hooks were registered since the last call."""
        self._hooks_seen = RemovableHandle.next_id
        self._watched = any(map(is_watched, self._model.modules()))

    def _add(self, key: Any, input: Tensor) -> Kind | None:
        """Make and cache the plan for a kind of input, and evict the oldest kind of too many."""
        made = None
        # Errors of the net itself are raised when it is called without a plan. Random numbers are
        # drawn once more for the result; not the same in both runs here, which a plan might keep.
        with contextlib.suppress(Exception), fork_rng():
            made = self._plan_for(input)
        memory.empty_cache()  # of the runs, which took more than the plan's
        with self._lock:
            while len(self._kinds) >= MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
            return self._kinds.setdefault(key, made)

    def _plan_for(self, input: Tensor) -> Kind:
        """Run the net once, and make a plan of its ops."""
        with self._lock:
            self._n_made += 1
            parameters = list(self._model.parameters())
            before = reads.count
            try:
                for parameter in parameters:
                    parameter.requires_grad_(parameter.is_floating_point())
                with inference_mode(False):
                    leaf = wrap(input._array).requires_grad_()
                    constants = Constants(self._model, leaf)
                    with recording(), observed(constants.note):
                        result = self._model(leaf)
                if reads.count != before:
                    raise UnplannedError("what is done depends on elements")
                kept = None if isinstance(result, Tensor) else _sequence_of_tensors(result)
                results = [result] if kept is None else result
                plan = plan_of(leaf, results, constants, self._narrow)
                if not self._is_right(plan, input):
                    raise UnplannedError("what is done does not show in the graph")
                forget_packed(self._model)  # of the net's own runs, which may be packed otherwise
                return plan, [plan], kept
            finally:
                for parameter in parameters:
                    parameter.requires_grad_(False)

    def _is_right(self, plan: Plan, input: Tensor) -> bool:
        """Return whether plan and net agree on another input."""
        other = other_like(input)
        with no_grad():
            made = tuple(map(wrap, plan(other._array)))
            return agree(self._model(other), made)


def _sequence_of_tensors(result: Any) -> Any:
    """Return the type of a tuple or list of tensors."""
    if type(result) not in (tuple, list) or not all(isinstance(one, Tensor) for one in result):
        raise UnplannedError("results that are no tensors")
    return type(result)
