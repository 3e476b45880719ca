"""What a worker of a DataLoader does, be it a process or a thread.

A worker gets tasks, pairs of a number and indices, and answers each with the number and a batch.
"""

from __future__ import annotations

import functools
import random as python_random
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from convcore import random
from convcore.engine.runtime.threads import set_num_threads
from convcore.random.states import get_global_states, set_global_states
from convcore.utils.data._utils.fetch import make_fetch
from convcore.utils.data.dataset import IterableDataset


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker's number, the number of workers, its seed, and the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


class _Current(threading.local):
    info: WorkerInfo | None = None


_current = _Current()


def get_worker_info() -> WorkerInfo | None:
    """Return the calling worker's ``id``, ``num_workers``, ``seed`` and ``dataset``.

    Returns
    -------
    WorkerInfo, or None outside of workers
        In a process, ``dataset`` is the worker's own copy.
    """
    return _current.info


class _KeyErrorMessage(str):
    """The text of a KeyError, which shows its argument by repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception being handled, with its traceback as text, to be raised elsewhere.

    Parameters
    ----------
    where : str
        Where it was caught, for its message.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        error: Any = sys.exc_info()[1] if exc_info is None else exc_info[1]
        self.exc_type: Any = type(error)
        self.exc_msg = "".join(traceback.format_exception(error))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same type, or a RuntimeError where that takes no message."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = _KeyErrorMessage(text)
        try:
            has_message = getattr(self.exc_type, "message", None)
            error = self.exc_type(message=text) if has_message else self.exc_type(text)
        except Exception:
            error = RuntimeError(text)
        raise error from None


class Job(NamedTuple):
    """What the workers of one iterator have in common."""

    dataset: Any
    batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool
    begin: Callable[[int], None] | None
    base_seed: int
    n: int
    tells_states: bool = False  # whether each batch comes with the worker's random states
    states: list[Any] | None = None  # from which the workers go on


class Resume:
    """The answer of a worker that has begun a new iteration.

    Parameters
    ----------
    worker : int
        Its number.
    states : dict, optional
        Its random states before.
    """

    def __init__(self, worker: int, states: Any = None) -> None:
        self.worker, self.states = worker, states


class Told(NamedTuple):
    """A batch, or its exception, and the worker's random states behind it."""

    batch: Any
    states: Any


class Ended:
    """The answer of a worker whose dataset has ended."""

    states: Any = None  # its random states then


class End(Protocol):
    """A worker's end of the line to the loader."""

    closing: bool  # no more answers are waited for

    def get(self) -> tuple[int | None, Callable[[], Any]] | None:
        """Wait for a task: its number and a function that returns its indices; None is the last."""

    def put(self, number: Any, batch: Any) -> None:
        """Answer a task."""


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return a worker's seed for NumPy's generator, unlike the one for Python's."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()


def seed_process(job: Job, number: int) -> None:
    """Seed all generators of a worker process, and have it compute on one thread."""
    set_num_threads(1)
    seed = job.base_seed + number
    python_random.seed(seed)
    random.manual_seed(seed)
    np.random.seed(_generate_state(job.base_seed, number))


def work(end: End, job: Job, number: int, method: str) -> None:
    """Do tasks until there are no more; ``method`` is what the worker is."""
    where = f"in DataLoader worker {'process' if method == 'multiprocessing' else method} {number}"
    seed = job.base_seed + number
    _current.info = WorkerInfo(number, job.n, seed, job.dataset, worker_method=method)
    get_states = functools.partial(_get_states, job.tells_states, method)
    states = job.states[number] if job.states else None
    begun = _begin(job, functools.partial(_first, job, number, states), where)
    ended = False
    while (task := end.get()) is not None:
        asked, indices = task
        if asked is None:
            _answer(end, None, Resume(number, get_states()), where)
            begun, ended = _begin(job, None, where), False
        elif not ended and not end.closing:
            batch = _batch(begun, indices, where)
            ended = isinstance(batch, Ended)
            if ended:
                batch.states = get_states()
            elif job.tells_states:
                batch = Told(batch, get_states())
            _answer(end, asked, batch, where)
            del batch  # a waiting worker keeps no batch alive


def _get_states(tells: bool, method: str) -> Any:
    """Return a worker's random states, if it tells them: a thread has one generator of its own."""
    if not tells:
        return None
    if method == "thread":
        return {"convcore": random.get_rng_state()}
    return get_global_states()


def _first(job: Job, number: int, states: Any) -> None:
    """Do what a worker does before all else."""
    if job.begin is not None:
        job.begin(number)
    if states is not None:
        set_global_states(states)


def _begin(job: Job, first: Callable[[], Any] | None, where: str) -> Any:
    """Return a function that fetches batches, or the exception that there is none because of."""
    try:
        if first is not None:
            first()
        fetch = make_fetch(job.dataset, job.batched, job.collate, job.drop_last)
    except Exception:
        return ExceptionWrapper(where=where)
    if not isinstance(job.dataset, IterableDataset):
        return fetch

    def fetch_or_end(numbers: Any) -> Any:
        try:
            return fetch(numbers)
        except StopIteration:
            return Ended()

    return fetch_or_end


def _batch(fetch: Any, indices: Callable[[], Any], where: str) -> Any:
    if isinstance(fetch, ExceptionWrapper):
        return fetch
    try:
        return fetch(indices())
    except Exception:
        return ExceptionWrapper(where=where)


def _answer(end: End, asked: int | None, answer: Any, where: str) -> None:
    """Answer a task, where the answer cannot be pickled with that error."""
    try:
        end.put(asked, answer)
    except OSError:  # nobody is there to answer
        raise
    except Exception:
        if isinstance(answer, ExceptionWrapper):  # the type of the exception cannot be pickled
            error = RuntimeError(answer.exc_msg)
            end.put(asked, ExceptionWrapper((RuntimeError, error, None), where))
        else:
            _answer(end, asked, ExceptionWrapper(where=where), where)
