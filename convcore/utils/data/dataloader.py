"""DataLoader: batches of a dataset, fetched in the caller's thread or by workers."""

from __future__ import annotations

import itertools
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, overload

import numpy as np

from convcore import random
from convcore._errors.calls import KeywordHints
from convcore._tensor import Tensor
from convcore.utils.data._utils.arguments import check_order, check_workers, make_context
from convcore.utils.data._utils.collate import default_collate, default_convert
from convcore.utils.data._utils.fetch import make_fetch
from convcore.utils.data._utils.position import Position
from convcore.utils.data._utils.worker import (
    Ended,
    ExceptionWrapper,
    Job,
    Resume,
    Told,
    get_worker_info,
)
from convcore.utils.data.dataset import Dataset, IterableDataset
from convcore.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    drawn_seed,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)

if TYPE_CHECKING:
    _Value = Tensor | np.ndarray | float  # a batch of which is a tensor
    _T = TypeVar("_T")
    _Samples = Dataset[_T] | Sequence[_T]

    class _Options(TypedDict, total=False):
        sampler: Iterable | None
        num_workers: int
        pin_memory: bool
        drop_last: bool
        timeout: float
        worker_init_fn: Callable[[int], None] | None
        multiprocessing_context: Any
        generator: random.Generator | None
        prefetch_factor: int | None
        persistent_workers: bool
        pin_memory_device: str
        in_order: bool


_FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


class _DatasetKind:
    """PyTorch's numbers of the two kinds of datasets."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler):
    """The sampler of an IterableDataset: None for ever."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(KeywordHints, Generic[_T_co]):
    """Iterate over a dataset in batches.

    Parameters
    ----------
    dataset : Dataset
    batch_size : int, optional
        Samples of a batch; None gives single samples.
    shuffle : bool, optional
        Whether to use a new random order in each iteration.
    sampler : Sampler or iterable of int, optional
        The order, instead of ``shuffle``.
    batch_sampler : iterable of lists of int, optional
        The batches, instead of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
    num_workers : int
        Number of processes that prefetch batches; 0 fetches in the caller's.
    collate_fn : callable, optional
        Makes a batch from a list of samples; `default_collate` by default.
    pin_memory, pin_memory_device
        For accelerators: without effect.
    drop_last : bool
        Whether to drop an incomplete last batch.
    timeout : float
        Seconds to wait for a worker's batch; 0 waits for ever.
    worker_init_fn : callable, optional
        Called in each worker with its number.
    multiprocessing_context : str or multiprocessing context, optional
        How processes start: "fork", "spawn" or "forkserver"; by default as `multiprocessing` does.
        "thread" has threads instead of processes.
    generator : Generator, optional
        The source of random orders and of the workers' seeds.
    prefetch_factor : int, optional
        Batches that each worker prefetches; 2 by default.
    persistent_workers : bool
        Whether to keep the workers for the next iteration.
    in_order : bool
        Whether batches of several workers come in order, not as they are ready.

    Raises
    ------
    ValueError, TypeError
        Arguments are out of their range, of a wrong type, or exclude each other.
    RuntimeError
        While iterating: a worker was killed or exited, or its batch took longer than ``timeout``.

    Notes
    -----
    The same seed gives the same batches as in PyTorch. In a worker process the generators of
    convcore, NumPy and `random` are seeded by ``generator`` and the worker's number; those of the
    main process stay as they are. Batches come in shared memory, which is freed with them, and
    with the processes if they are killed.

    Threads share the dataset, start at once, and help where fetching waits for files or runs in
    NumPy, not where it runs in Python. A thread draws convcore's random numbers from a generator of
    its own; the generators of NumPy and of `random` are shared by all threads.

    An exception in a worker is raised where its batch is taken; its text has the traceback.

    Examples
    --------
    >>> import convcore
    >>> data = convcore.utils.data.TensorDataset(convcore.arange(5))
    >>> for (x,) in DataLoader(data, batch_size=2):
    ...     print(x)
    tensor([0, 1])
    tensor([2, 3])
    tensor([4])
    """

    _iterator: _BaseDataLoaderIter | None

    if TYPE_CHECKING:  # what batches are made of single numbers, of tuples and of dictionaries

        @overload
        def __init__(
            self: DataLoader[Tensor],
            dataset: _Samples[_Value],
            batch_size: int = ...,
            shuffle: bool | None = ...,
            **options: Unpack[_Options],
        ) -> None: ...
        @overload
        def __init__(
            self: DataLoader[list[Tensor]],
            dataset: _Samples[tuple[_Value, ...]],
            batch_size: int = ...,
            shuffle: bool | None = ...,
            **options: Unpack[_Options],
        ) -> None: ...
        @overload
        def __init__(
            self: DataLoader[dict[str, Tensor]],
            dataset: _Samples[dict[str, _Value]],
            batch_size: int = ...,
            shuffle: bool | None = ...,
            **options: Unpack[_Options],
        ) -> None: ...
        @overload
        def __init__(
            self: DataLoader[Any],
            dataset: Any,
            batch_size: int | None = ...,
            shuffle: bool | None = ...,
            sampler: Iterable | None = ...,
            batch_sampler: Iterable | None = ...,
            num_workers: int = ...,
            collate_fn: Callable[[Any], Any] | None = ...,
            pin_memory: bool = ...,
            drop_last: bool = ...,
            timeout: float = ...,
            worker_init_fn: Callable[[int], None] | None = ...,
            multiprocessing_context: Any = ...,
            generator: random.Generator | None = ...,
            *,
            prefetch_factor: int | None = ...,
            persistent_workers: bool = ...,
            pin_memory_device: str = ...,
            in_order: bool = ...,
        ) -> None: ...

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable | None = None,
        batch_sampler: Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: random.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.persistent_workers = persistent_workers
        self.generator = generator
        check_order(dataset, shuffle, sampler, batch_sampler, batch_size, drop_last)
        is_stream = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if is_stream else _DatasetKind.Map
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            sampler = self._default_sampler(shuffle)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._iterator = None
        self._position: Position | None = None  # kept from the first call of state_dict
        self._newest: Callable[[], Any] = lambda: None  # the newest iterator, while it lives
        self._IterableDataset_len_called: int | None = None
        self._made = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool | None) -> Iterable:
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_made" in self.__dict__:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context that workers start in; None for the default one, "thread" for threads."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        self._context = None if value is None else make_context(value, self.num_workers)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """The sampler of batches, or of single samples if there are no batches."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> Iterator[_T_co]:
        if self._position is not None:
            return self._position.begin(self, self._iterate)
        iterator = self._iterate()
        self._newest = weakref.ref(iterator)
        return iterator

    def _iterate(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        kept = self._iterator
        if isinstance(kept, _MultiProcessingDataLoaderIter) and not kept._crew.broken:
            kept._reset(self)
        else:
            kept = self._iterator = self._get_iterator()
        return kept

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        n = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """Return the order and position of the iteration in progress, for another process.

        An iteration is in progress as long as its iterator is there: inside of the ``for`` loop.
        The first call, before an iteration, has workers tell their random states from then on.

        Returns
        -------
        dict
            Data, for `convcore.save`. The states of the default generators are not in it: see
            `convcore.get_rng_state`, or `convcore.serialization.TrainingState`, which saves all.

        Raises
        ------
        RuntimeError
            The first call is made amid an iteration.
        ValueError
            ``in_order`` is False: there is no order to be kept.

        Notes
        -----
        It comes from the states of convcore's, NumPy's and Python's generators at the beginning of
        the iteration, of ``generator``, of samplers' generators, and of samplers that have
        ``state_dict`` and ``load_state_dict``. A sampler must not draw amid an iteration from a
        generator from which others draw too.
        """
        return self._get_position()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Have the next iteration go on where that of `state_dict` stood; else all stays as it was.

        Batches that were taken are not fetched again, except for those of an IterableDataset.
        ``len(loader)`` stays the number of all batches.

        Raises
        ------
        ValueError
            ``state_dict`` is something else, or of a loader with other workers, generators or,
            amid an iteration, another ``batch_size``, ``drop_last`` or length of the dataset.
        Exception
            Whatever a sampler's ``load_state_dict`` raises.
        RuntimeError
            An iteration is in progress, as for `state_dict`.
        """
        self._set_position(state_dict)

    def _get_position(self) -> dict[str, Any]:
        return self._kept_position().state(self)

    def _set_position(self, state: dict[str, Any]) -> None:
        self._kept_position().load(self, state)
        self._iterator = None

    def _kept_position(self) -> Position:
        if not self.in_order:
            raise ValueError("in_order=False: batches come in no order that could be kept")
        if self._position is None:
            if self._newest() is not None:
                raise RuntimeError(
                    "call state_dict() once before the iteration begins: from then on the loader "
                    "keeps what it needs to say where it is"
                )
            self._position = Position()
        return self._position

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more worker processes than CPUs that may be used."""
        if not self.num_workers or self._context == "thread":
            return
        has_affinity = hasattr(os, "sched_getaffinity")
        cpus = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
        if self.num_workers > cpus:
            unaware = "" if has_affinity else " (`cpuset` is not taken into account)"
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {cpus}{unaware}, which is "
                "smaller than what this DataLoader is going to create. Please be aware that "
                "excessive worker creation might get DataLoader running slow or even freeze, lower "
                "the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


class _BaseDataLoaderIter:
    """An iterator over the batches of a DataLoader."""

    def __init__(self, loader: DataLoader) -> None:
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )
        self._dataset = loader.dataset
        self._is_stream = loader._dataset_kind == _DatasetKind.Iterable
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._sampler_iter = iter(self._index_sampler)
        self._position = loader._position
        if self._position is None:
            self._base_seed = drawn_seed(loader.generator)
        else:
            self._base_seed = self._position.seed(loader, lambda: drawn_seed(loader.generator))
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _n_taken(self) -> int:
        """Return how many batches to pass over, of an iteration that is resumed."""
        return 0 if self._position is None else self._position.n_taken

    def _pass_over(self, is_stream: bool) -> None:
        """Pass over batches that were taken; a stream has to be read again."""
        if self._is_stream != is_stream:
            return
        self._num_yielded = count = self._n_taken()
        step = self._next_data if is_stream else self._next_index
        for number in range(count):
            try:
                step()
            except StopIteration:
                raise ValueError(
                    f"the DataLoader goes on behind batch {count}, and there are only {number}"
                ) from None

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        said = self._IterableDataset_len_called
        if self._is_stream and said is not None and self._num_yielded > said:
            hint = (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker, see `get_worker_info`."
                if self._num_workers
                else ""
            )
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {said}"
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been "
                f"fetched. {hint}",
                stacklevel=2,
            )
        return batch

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """An iterator that fetches each batch when it is asked for."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetch = make_fetch(
            self._dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )
        self._pass_over(self._is_stream)

    def _next_data(self) -> Any:
        return self._fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """An iterator over batches that workers prefetch.

    Tasks go to the workers in turn, as many as they may prefetch. Answers to later tasks wait.
    """

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        self._most_tasks = loader.prefetch_factor * self._num_workers
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        job = Job(
            *(self._dataset, loader._auto_collation, loader.collate_fn, loader.drop_last),
            *(loader.worker_init_fn, self._base_seed, self._num_workers),
            *(self._position is not None, self._workers_states()),
        )
        self._crew = _crew(job, loader.multiprocessing_context)
        # At exit multiprocessing ends the processes; a thread is a daemon.
        weakref.finalize(self, self._crew.close).atexit = False
        self._crew.start()  # once an interrupt would close it
        self._reset(loader, first_iter=True)
        self._pass_over(is_stream=True)

    def _workers_states(self) -> list[Any] | None:
        return None if self._position is None else self._position.workers_states(self._is_stream)

    @property
    def _workers(self) -> list[Any]:
        """The worker processes; empty where the workers are threads, or have ended."""
        return getattr(self._crew, "processes", [])

    def _shutdown_workers(self) -> None:
        self._crew.close()

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._n_sent = 0  # the number of the next task
        self._next = 0  # the number of the next answer to be taken
        self._worker_of: dict[int, int] = {}  # of tasks that are not answered yet
        self._answered: dict[int, tuple[int, Any]] = {}  # of tasks whose turn has not come
        self._active = dict.fromkeys(range(self._num_workers), 0)  # tasks at each worker
        self._turn: Iterator[int] = itertools.cycle(range(self._num_workers))
        if first_iter:
            self._pass_over(is_stream=False)
            first = 0 if self._is_stream else self._n_taken() % self._num_workers
            self._turn = itertools.islice(self._turn, first, None)
        else:
            self._resume()
        for _ in range(self._most_tasks):
            self._send_next()

    def _resume(self) -> None:
        """Have persistent workers begin anew, and drop what is left of the last iteration."""
        for worker in range(self._num_workers):
            self._crew.send(worker, None, None)
        missing = self._num_workers
        while missing:
            _, answer = self._receive()
            if isinstance(answer, Resume):
                missing -= 1
                self._note(answer.worker, answer.states)

    def _note(self, worker: int, states: Any, ended: bool = False) -> None:
        if self._position is not None and states is not None:
            self._position.note(worker, states, ended)

    def _send_next(self) -> None:
        """Send the next task to the worker whose turn it is."""
        try:
            indices = self._next_index()
        except StopIteration:
            return
        most = self._most_tasks // max(len(self._active), 1)
        for worker in itertools.islice(self._turn, self._num_workers):
            if worker in self._active and (self._in_order or self._active[worker] < most):
                break
        else:
            return
        self._crew.send(worker, self._n_sent, indices)
        self._worker_of[self._n_sent] = worker
        self._active[worker] += 1
        self._n_sent += 1

    def _receive(self) -> tuple[int | None, Any]:
        if self._timeout > 0:
            answer = self._crew.receive(self._timeout)
            if answer is None:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            return answer
        while (answer := self._crew.receive(None)) is None:
            pass
        return answer

    def _next_data(self) -> Any:
        while True:
            while self._next < self._n_sent and not self._is_expected(self._next):
                self._next += 1
            if self._next == self._n_sent:
                if not self._persistent:
                    self._crew.close()
                raise StopIteration
            if self._next in self._answered:
                return self._taken(*self._answered.pop(self._next))
            number, answer = self._receive()
            worker = self._worker_of.pop(number)  # type: ignore[arg-type]
            if isinstance(answer, Ended):
                self._note(worker, answer.states, ended=True)
                self._end(worker)
            elif number == self._next or not self._in_order:
                return self._taken(worker, answer)
            else:
                self._answered[number] = worker, answer  # type: ignore[index]

    def _is_expected(self, number: int) -> bool:
        """Return whether there is an answer to a task, or will be."""
        return number in self._answered or self._worker_of.get(number) in self._active

    def _end(self, worker: int) -> None:
        """Send no more tasks to a worker whose dataset has ended."""
        del self._active[worker]
        if not self._persistent:
            self._crew.retire(worker)
        self._send_next()

    def _taken(self, worker: int, answer: Any) -> Any:
        """Replace an answered task by a new one, and return the batch."""
        if worker in self._active:
            self._active[worker] -= 1
        self._send_next()
        if isinstance(answer, Told):
            self._note(worker, answer.states)
            answer = answer.batch
        if isinstance(answer, ExceptionWrapper):
            answer.reraise()
        return answer


def _crew(job: Job, context: Any) -> Any:
    """Return the workers, which are threads or processes, not started yet."""
    if context == "thread":
        from convcore.utils.data._utils.threads import Threads

        return Threads(job)
    from convcore.utils.data._utils.processes import Processes  # loads multiprocessing

    return Processes(job, context)
