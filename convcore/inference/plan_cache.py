"""The cached plans of one net: one for each kind of input, made at the first call with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from convcore import overrides
from convcore._errors.frames import is_from_signal_handler
from convcore._tensor import Tensor, wrap
from convcore._tensor.reads import reads
from convcore.autograd.grad_mode import inference_mode, no_grad
from convcore.autograd.handle import RemovableHandle
from convcore.autograd.observation import observed, unobserved
from convcore.engine.conv.selection import current
from convcore.engine.runtime import memory
from convcore.engine.runtime.locks import process_lock
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.engine.runtime.threads import get_num_threads
from convcore.inference.cutting import cut, unfused
from convcore.inference.execution_plan import DepartedError, Plan
from convcore.inference.hidden_runs import HiddenRun, UnrepeatableError
from convcore.inference.layer_trace import recording
from convcore.inference.layers import forget_packed
from convcore.inference.lowering import lowered, ops_of
from convcore.inference.op_graph import Constants, LayerNames, OpGraph
from convcore.inference.plan_builder import UnplannedError
from convcore.inference.points import Point, PointRecorder, Unwatched, Watch
from convcore.inference.simplification import simplified
from convcore.inference.validation import agree, other_like
from convcore.nn import Module
from convcore.nn.modules._hooks import HOOK_TABLES, hooks_instead

# Kinds of inputs whose plan is in memory; the oldest plan is dropped first, and made again of the
# kind's ops.
MAX_PLANS = 4
# Kinds of inputs whose ops are cached; of others the net has to run again.
MAX_KINDS = 64
# Kinds without a plan after which no more are tried, if no kind has had one.
MAX_FAILURES = 8
# Plans for sets of watched points, of one kind, that are in memory.
MAX_WATCHED = 2


# A number of threads, a plan for it, and those of its copies that are idle.
Plans = tuple[int, Plan, list[Plan]]


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
    plans : Plans or None
    watched : WatchedKind or None
        What it does with the points that can be watched; None as long as nobody watched.
    """

    __slots__ = ("ops", "plans", "sequence", "watched")

    def __init__(self, ops: OpGraph, sequence: Any) -> None:
        self.ops, self.sequence = ops, sequence
        self.plans: Plans | None = None
        self.watched: WatchedKind | None = None

    def plan(self, narrow: bool) -> Plan:
        """Make the plan, for the present number of threads."""
        threads = get_num_threads()
        made = lowered(self.ops, narrow)
        self.plans = threads, made, [made]
        return made

    def run(
        self, array: np.ndarray, plans: Plans, watch: Any = None, profilers: Sequence[Any] = ()
    ) -> Any:
        """Return the net's result, by one of the plans that are idle or by a copy of the first."""
        _, first, idle = plans
        try:
            plan = idle.pop()  # atomic: no two threads get one plan
        except IndexError:
            plan = first.copy()
        times: list[int] | None = [] if profilers else None
        try:
            results = plan(array, watch, times)
            for profiler in profilers:
                profiler(plan.records, times)
        finally:
            idle.append(plan)
        return results[0] if self.sequence is None else self.sequence(results)


class WatchedKind:
    """What a net does with inputs of one kind, with markers at all points.

    Attributes
    ----------
    ops : OpGraph or None
        None: values cannot be watched in a plan.
    points : list of Point
    plans : dict of frozenset to Plans or None
        By the points that a plan is cut at; None if there can be none.
    """

    __slots__ = ("ops", "plans", "points")

    def __init__(self, ops: OpGraph | None = None, points: Sequence[Point] = ()) -> None:
        self.ops, self.points = ops, list(points)
        self.plans: dict[frozenset, Plans | None] = {}


class PlanCache:
    """The cached plans of a net in evaluation mode.

    A plan repeats what the net did at the first call with an input of that shape and memory format.
    So there is none for a net whose Python code read elements, or changes anything else than its
    result, nor where the plan's result for a second input differs from the net's.  Whether there is
    one depends on the kind of input, never on earlier calls.

    Where modules have hooks, another plan is made that is cut at the points that these watch.  It
    is made of another run of the net, without the hooks, in which no layers are fused.

    Parameters
    ----------
    model : Module
    narrow : bool
        Whether results between a plan's steps may be bfloat16 in memory.

    Attributes
    ----------
    profilers : tuple of function
        Called after each run of a plan with its records and times: see `Plan`.
    is_recording : bool
        Whether the net is run to make a plan.
    """

    def __init__(self, model: Module, narrow: bool = False) -> None:
        self._model, self._narrow = model, narrow
        # None: there is no plan.
        self._kinds: dict[Any, Kind | None] = {}
        self._planned: list[Kind] = []  # those whose plan is in memory, the oldest first
        self._n_failures: int | None = 0  # None: some kind has had a plan
        self._is_allowed = True
        # The number of the next hook of all, and how many the modules have.
        self._hooks_seen = -1, 0
        self._modules: list[Module] = []
        self._tables: list[dict] = []
        self._watch: Watch | None = None
        # The layers that the last plan computed alone, though they are folded into others; None
        # where there was no plan.
        self.unfused: Sequence[Module] | None = None
        self.profilers: tuple[Any, ...] = ()
        self.is_recording = False
        self._lock = process_lock()

    def __reduce__(self) -> tuple[type[PlanCache], tuple[Module, bool]]:
        return PlanCache, (self._model, self._narrow)  # a copy of the net makes its own plans

    def run(self, input: Tensor) -> Any:
        """Return the net's result for an input; None if there is no plan for it."""
        watch, self.unfused = self._watch, None
        if watch is not None or self._hooks_seen[0] != RemovableHandle.next_id:
            watch = self._look_for_hooks()
        if not self._is_allowed or (watch is not None and not watch.is_plannable):
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
        if watch is None:
            self.unfused = ()
            return kind.run(array, plans, None, self.profilers)
        watched = kind.watched
        if watched is None:
            watched = kind.watched = self._recorded_points(input)
        with no_grad():
            return self._run_watched(kind, watched, plans, input, watch)

    def _run_watched(
        self, kind: Kind, watched: WatchedKind, plans: Plans, input: Tensor, watch: Watch
    ) -> Any:
        """Return the net's result by a plan that is cut where it is watched; None without one.

        plans : those that are not cut
        """
        if watched.ops is None:
            return None
        key = frozenset(watch.selected(watched.points).items())
        chosen: Plans | None = plans
        if key:
            chosen = watched.plans.get(key)
            if key not in watched.plans or (chosen and chosen[0] != get_num_threads()):
                chosen = self._cut(kind, watched, key, plans, input)
        if chosen is None:
            return None
        self.unfused = chosen[1].unfused
        is_done = True
        watch.begin()
        try:
            return kind.run(input._array, chosen, watch, self.profilers)
        except DepartedError:
            is_done = False
            watched.plans[key] = None  # from now on the net is called
            return None
        finally:
            watch.end(is_done)

    def _recorded_points(self, input: Tensor) -> WatchedKind:
        """Run the net once more, with markers at all points."""
        try:
            made = overrides.unwatched(self._recorded, input, True)
        except (Exception, UnrepeatableError) as error:
            if isinstance(error, MemoryError) or is_from_signal_handler(error):
                raise
            made = WatchedKind()
        finally:
            forget_packed(self._model)
        return made

    def _cut(
        self, kind: Kind, watched: WatchedKind, key: frozenset, plans: Plans, input: Tensor
    ) -> Plans | None:
        """Make and cache a plan that is cut at points; None if there can be none."""
        made = None
        with self._lock:
            try:
                assert watched.ops is not None
                ops = simplified(cut(watched.ops, {point.node: shown for point, shown in key}))
                plan = lowered(ops, self._narrow)
                plan.unfused = tuple(unfused(ops))
                made, other = (get_num_threads(), plan, [plan]), other_like(input)._array
                if not agree(kind.run(other, plans), kind.run(other, made, Unwatched())):
                    made = None
            except MemoryError:
                raise
            except Exception as error:
                if is_from_signal_handler(error):
                    raise
                made = None
            watched.plans.pop(key, None)
            while len(watched.plans) >= MAX_WATCHED:
                del watched.plans[next(iter(watched.plans))]
            watched.plans[key] = made
        forget_packed(self._model)
        return made

    def forbid(self) -> None:
        """Make no plans from now on, and drop those made: the net has a state that they lack."""
        with self._lock:
            self._is_allowed = False
            self._kinds.clear()
            self._planned.clear()

    def _look_for_hooks(self) -> Watch | None:
        """Return who watches; called if hooks are there, or were registered since the last call."""
        newest = RemovableHandle.next_id
        if self._hooks_seen[0] != newest:
            self._modules = list(self._model.modules())
            self._tables = [vars(one)[name] for one in self._modules for name in HOOK_TABLES]
        seen = newest, sum(map(len, self._tables))  # as many as before are the same hooks
        if self._hooks_seen != seen:
            self._watch = Watch(self._modules) or None
            self._hooks_seen = seen
        return self._watch

    def _replanned(self, kind: Kind) -> Plans:
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
            kind.plans = kind.watched = None
        del self._planned[:-MAX_PLANS]

    def _add(self, key: Any, input: Tensor) -> Kind | None:
        """Make and cache the plan for a kind of input."""
        if self._n_failures is not None and self._n_failures >= MAX_FAILURES:
            return None
        made = None
        try:
            made = overrides.unwatched(self._recorded, input)
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

    def _recorded(self, input: Tensor, with_points: bool = False) -> Any:
        """Run the net once, and make a plan of its ops; or return them with markers at points."""
        names = LayerNames(self._model)
        naming = hooks_instead(names.enter, names.leave, hidden=True)
        with self._lock, naming, unobserved(), self._recording():
            before = reads.count
            with differentiable(self._model), inference_mode(False), HiddenRun(self._model) as run:
                leaf = wrap(input._array).requires_grad_()
                constants = Constants(self._model, leaf)
                points = PointRecorder(constants, names)
                marking = points.marking() if with_points else contextlib.nullcontext()
                with recording(), observed(constants.note), observed(names.note), marking:
                    result = self._model(leaf)
                sequence = None if isinstance(result, Tensor) else _sequence_of_tensors(result)
                results = [result] if sequence is None else result
                ops = ops_of(leaf, results, constants, points.nodes(), names)
            if not run.is_pure:
                raise UnrepeatableError("its code changes its state")
            if reads.count != before:
                raise UnplannedError("what is done depends on elements")
            array = input._array
            ops.input._array = cast(
                np.ndarray, _Layout(array.shape, array.strides, array.dtype, array.size)
            )
            if with_points:
                return WatchedKind(ops, points.points)
            ops = simplified(ops)
            kind = Kind(ops, sequence)
            plan = kind.plan(self._narrow)
            if not self._is_right(plan, input):
                raise UnplannedError("what is done does not show in the graph")
            forget_packed(self._model)  # of the net's own runs, which may be packed otherwise
            return kind

    @restoring
    def _recording(self) -> Iterator[Calls]:
        yield ((setattr, (self, "is_recording", False)),)
        self.is_recording = True

    def _is_right(self, plan: Plan, input: Tensor) -> bool:
        """Return whether plan and net agree on another input."""
        other = other_like(input)
        with no_grad():
            made = tuple(plan(other._array))
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
