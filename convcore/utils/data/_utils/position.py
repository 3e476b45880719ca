"""The position of a DataLoader's iteration, from which another process can resume it.

The order of an iteration follows from the random states at its beginning.  To resume, the loader
begins again from these states, passes over the indices of the batches that were taken, without
fetching them, and puts the states back.  Workers go on from the states that they had behind the
last of their batches that was taken, which they send along with each batch.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from convcore.engine.runtime.restoring import Calls, restoring
from convcore.random.generator import Generator
from convcore.random.states import get_global_states, set_global_states

# What a position keeps, and of which types.
_KINDS: dict[str, tuple[type, ...]] = {
    "taken": (int, type(None)),
    "start": (dict, type(None)),
    "start_workers": (list, type(None)),
    "workers": (list, type(None)),
    "base_seed": (int, type(None)),
    "drew_seed": (bool,),
    "loader": (dict,),
    "generators": (list,),
}


class Iteration:
    """An iterator over batches that counts them."""

    def __init__(self, batches: Any, taken: int) -> None:
        self._batches, self.taken, self.ended = batches, taken, False

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._batches)
        except StopIteration:
            self.ended = True
            raise
        self.taken += 1
        return batch

    def __len__(self) -> int:
        return len(self._batches)


class Position:
    """Where the newest iteration of a loader stands."""

    def __init__(self) -> None:
        self._iteration: Callable[[], Iteration | None] = lambda: None
        self._resumed: dict[str, Any] | None = None  # what the next iteration goes on from
        self._start: Any = None
        self._base_seed: int | None = None
        self._drew_seed = False
        self._workers: list[Any] | None = None
        self._start_workers: list[Any] | None = None
        self._ended: set[int] = set()  # workers whose streams have ended

    # What the loader and its iterators call.

    def begin(self, loader: Any, iterate: Callable[[], Any]) -> Iteration:
        """Return a new iteration over what ``iterate`` returns, or the one that is resumed."""
        self._iteration, self._drew_seed = lambda: None, False
        self._ended.clear()
        with self._states_of_the_beginning(loader):
            batches = iterate()
        if self._resumed is not None:
            self._workers = _copied(self._resumed["workers"])
            self._start_workers = self._resumed["start_workers"]
            self._drew_seed = self._resumed["drew_seed"]
        if self._resumed is None or self._resumed["taken"] is None:
            self._start_workers = _copied(self._workers)
        iteration = Iteration(batches, self.n_taken)
        self._iteration, self._resumed = weakref.ref(iteration), None
        return iteration

    @restoring
    def _states_of_the_beginning(self, loader: Any) -> Iterator[Calls]:
        now = _states(loader)
        if self._resumed is None or self._resumed["taken"] is None:
            self._start = now
            yield ()
            return
        self._start = self._resumed["start"]
        yield ((_set_states, (loader, now)),)
        _set_states(loader, self._start)

    @property
    def n_taken(self) -> int:
        """The number of batches that the iteration that begins passes over."""
        return (self._resumed or {}).get("taken") or 0

    def seed(self, loader: Any, draw: Callable[[], int]) -> int:
        """Return the seed of the workers, drawn if it was when the iteration began."""
        if self._resumed is None or self._resumed["drew_seed"]:
            self._base_seed = draw()
            self._drew_seed = True
        if self._resumed is None:
            self._workers = [None] * loader.num_workers
        else:
            self._base_seed = self._resumed["base_seed"]
        return self._base_seed  # type: ignore[return-value]

    def workers_states(self, is_stream: bool) -> list[Any] | None:
        """Return the random states from which workers go on; a stream is read again."""
        if self._resumed is None:
            return None
        is_amid = self._resumed["taken"] is not None
        return self._resumed["start_workers" if is_stream and is_amid else "workers"]

    def note(self, worker: int, state: Any, ended: bool = False) -> None:
        """Keep the random state that a worker has behind a batch that was taken, or its last."""
        if ended:
            self._ended.add(worker)
        if self._workers is not None and (ended or worker not in self._ended):
            self._workers[worker] = state

    # What the user calls.

    def state(self, loader: Any) -> dict[str, Any]:
        """Return the position as data."""
        now = [_state(source) for source in _sources(loader)]
        if self._resumed is not None:
            return {**self._resumed, "generators": now}
        iteration = self._iteration()
        is_amid = iteration is not None and not iteration.ended
        is_kept = is_amid or (loader.persistent_workers and self._workers is not None)
        return {
            "taken": iteration.taken if iteration is not None and is_amid else None,
            "start": self._start if is_amid else None,
            "start_workers": self._start_workers if is_amid else None,
            "workers": _copied(self._workers) if is_kept else None,
            "base_seed": self._base_seed if is_kept else None,
            "drew_seed": is_amid and self._drew_seed,
            "loader": _order(loader),
            "generators": now,
        }

    def load(self, loader: Any, state: dict[str, Any]) -> None:
        """Have the next iteration go on where the state's stood; if that fails, all stays."""
        _check(loader, state)
        sources = _sources(loader)
        before = [_state(source) for source in sources]
        try:
            _set_all(sources, state["generators"])
        except BaseException:
            _set_all(sources, before)
            raise
        self._iteration = lambda: None
        is_fresh = state["taken"] is None and state["workers"] is None
        self._resumed = None if is_fresh else state


def _check(loader: Any, state: Any) -> None:
    """Raise if a state is none, or of another loader, as far as can be told without setting it."""
    if not isinstance(state, dict) or state.keys() != _KINDS.keys():
        raise ValueError("state_dict: expected what a DataLoader's state_dict() returned")
    for key, kinds in _KINDS.items():
        if type(state[key]) not in kinds:
            raise ValueError(
                f"state_dict: expected what a DataLoader's state_dict() returned, got "
                f"{type(state[key]).__name__} as {key!r}"
            )
    workers, n_sources = state["workers"], len(_sources(loader))
    if workers is not None and len(workers) != loader.num_workers:
        raise ValueError(
            f"state_dict: it is of a loader with num_workers={len(workers)}, and this one has "
            f"{loader.num_workers}: its batches would be others"
        )
    for name, here in _order(loader).items() if state["taken"] is not None else ():
        if state["loader"].get(name) != here:
            raise ValueError(
                f"state_dict: it is amid an iteration with {name}={state['loader'].get(name)}, and "
                f"this loader has {here}: samples would be left out or come twice"
            )
    if len(state["generators"]) != n_sources:
        raise ValueError(
            f"state_dict: it is of a loader with {len(state['generators'])} generators and "
            f"samplers that have a state, and this one has {n_sources}"
        )


def _order(loader: Any) -> dict[str, Any]:
    """Return what must be the same amid an iteration; len(dataset) is None if there is none."""
    try:
        length = len(loader.dataset)
    except (TypeError, NotImplementedError):
        length = None
    return {"batch_size": loader.batch_size, "drop_last": loader.drop_last, "len(dataset)": length}


def _copied(workers: list[Any] | None) -> list[Any] | None:
    return None if workers is None else list(workers)


def _sources(loader: Any) -> list[Any]:
    """Return what an order comes from and has a state: generators, and samplers that say so."""
    batches = loader.batch_sampler
    samplers = [loader.sampler, batches, getattr(batches, "sampler", None)]
    found = [loader.generator, *(getattr(sampler, "generator", None) for sampler in samplers)]
    found = [source for source in found if isinstance(source, Generator)]
    found += [sampler for sampler in samplers if hasattr(sampler, "load_state_dict")]
    return list({id(source): source for source in found}.values())


def _state(source: Any) -> Any:
    if isinstance(source, Generator):
        return source.get_state()
    return copy.deepcopy(source.state_dict())


def _set_state(source: Any, state: Any) -> None:
    if isinstance(source, Generator):
        source.set_state(state)
    else:
        source.load_state_dict(copy.deepcopy(state))


def _set_all(sources: list[Any], states: list[Any]) -> None:
    for source, state in zip(sources, states, strict=True):
        _set_state(source, state)


def _states(loader: Any) -> dict[str, Any]:
    return {"global": get_global_states(), "sources": [_state(one) for one in _sources(loader)]}


def _set_states(loader: Any, states: dict[str, Any]) -> None:
    set_global_states(states["global"])
    _set_all(_sources(loader), states["sources"])
