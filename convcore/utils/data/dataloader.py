"""DataLoader: batches of a dataset, fetched in the caller's thread or by worker threads."""

from __future__ import annotations

import functools
import itertools
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from convcore import random
from convcore.utils.data.collate import default_collate, default_convert
from convcore.utils.data.dataset import IterableDataset, TensorDataset
from convcore.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    drawn_seed,
)
from convcore.utils.data.worker import WorkerInfo, Workers

__all__ = ["DataLoader"]

_END = object()  # the batch after the last of an IterableDataset

_FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


class DataLoader:
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
        Number of threads that prefetch batches; 0 fetches in the caller's thread.
    collate_fn : callable, optional
        Makes a batch from a list of samples; `default_collate` by default.
    pin_memory, pin_memory_device, multiprocessing_context
        For accelerators and processes: without effect.
    drop_last : bool
        Whether to drop an incomplete last batch.
    timeout : float
        Seconds to wait for a worker's batch; 0 waits for ever.
    worker_init_fn : callable, optional
        Called in each worker with its number.
    generator : Generator, optional
        The source of random orders and of the workers' seeds.
    prefetch_factor : int, optional
        Batches that each worker prefetches; 2 by default.
    persistent_workers : bool
        Whether to keep the workers for the next iteration.
    in_order : bool
        Without effect: batches always come in order.

    Raises
    ------
    ValueError
        Arguments are out of their range, or exclude each other.

    Notes
    -----
    The same seed gives the same batches as in PyTorch. Workers are threads: they share the dataset,
    and help if fetching waits for files or runs in NumPy, not if it runs in Python. A worker draws
    convcore's random numbers from a generator of its own, seeded with the worker's seed; the
    generators of NumPy and of `random` are shared by all threads.
    An exception in a worker is raised when its batch is taken.

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

    _iterator: _Threaded | None

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
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_order(dataset, shuffle, sampler, batch_sampler, batch_size, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.in_order = in_order
        self.persistent_workers = persistent_workers
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
        self._made = True

    def _default_sampler(self, shuffle: bool | None) -> Iterable:
        if isinstance(self.dataset, IterableDataset):
            return _Endless()
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
    def _index_sampler(self) -> Any:
        """The sampler of batches, or of single samples if there are no batches."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=2,
            )
        if self.num_workers == 0:
            drawn_seed(self.generator)  # the workers' seed, so that later draws are PyTorch's
            return _batches(self._make_fetch(), self._index_sampler)
        if not self.persistent_workers or self._iterator is None:
            self._iterator = None
            made = _Threaded(self)
            if self.persistent_workers:
                self._iterator = made
            return made
        self._iterator.begin(self)
        return self._iterator

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            n = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self._index_sampler)

    def _make_fetch(self) -> Callable[[Any], Any]:
        """Return the function from an item of the sampler to a batch."""
        return make_fetch(
            self.dataset, self.batch_sampler is not None, self.collate_fn, self.drop_last
        )


def make_fetch(
    dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool
) -> Callable[[Any], Any]:
    """Return a function from indices of samples, or a single one, to a batch, or to `_END`."""
    if isinstance(dataset, IterableDataset):
        samples = iter(dataset)

        def take(numbers: Any) -> Any:
            if not batched:
                sample = next(samples, _END)
                return sample if sample is _END else collate(sample)
            batch = list(itertools.islice(samples, len(numbers)))
            full = len(batch) == len(numbers)
            return collate(batch) if full or (batch and not drop_last) else _END

        return take
    if not batched:
        return lambda number: collate(dataset[number])
    if type(dataset) is TensorDataset and collate is default_collate:
        # The same as collating the samples, by one subscript of each tensor.
        return lambda numbers: [tensor[numbers] for tensor in dataset.tensors]
    if callable(getattr(dataset, "__getitems__", None)):
        return lambda numbers: collate(dataset.__getitems__(numbers))
    return lambda numbers: collate([dataset[number] for number in numbers])


def _batches(fetch: Callable[[Any], Any], numbers: Iterable) -> Iterator[Any]:
    """Yield batches, each fetched when it is asked for."""
    for asked in numbers:
        batch = fetch(asked)
        if batch is _END:
            return
        yield batch


class _Endless:
    """The sampler of an IterableDataset: None for ever."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class _Threaded:
    """An iterator over batches that workers prefetch."""

    def __init__(self, loader: DataLoader) -> None:
        n = loader.num_workers
        seed = drawn_seed(loader.generator)
        infos = [WorkerInfo(i, n, (seed + i) % 2**63, loader.dataset) for i in range(n)]
        # No reference to this iterator here: the threads end when it is freed.
        options = (loader.batch_sampler is not None, loader.collate_fn, loader.drop_last)
        fetch = functools.partial(_fetch_of_epoch, loader.dataset, options)
        self._workers = Workers(infos, fetch, loader.worker_init_fn)
        weakref.finalize(self, self._workers.close)
        self._n = n
        self._epoch = 0
        self._start(loader)

    def begin(self, loader: DataLoader) -> None:
        """Iterate over the data once more, with the same workers."""
        drawn_seed(loader.generator)
        self._epoch += 1
        self._start(loader)

    def _start(self, loader: DataLoader) -> None:
        self._epochout = loader.timeout or None
        self._numbers = iter(loader._index_sampler)
        self._next = itertools.cycle(range(self._n))
        self._ended: set[int] = set()
        self._waiting: deque[tuple[int, Future]] = deque()
        for _ in range(self._n * (loader.prefetch_factor or 1)):
            self._ask()

    def _ask(self) -> None:
        """Have the next worker whose dataset has not ended fetch the next batch."""
        if len(self._ended) == self._n:
            return
        try:
            numbers = next(self._numbers)
        except StopIteration:
            return
        worker = next(worker for worker in self._next if worker not in self._ended)
        self._waiting.append((worker, self._workers.fetch(worker, (self._epoch, numbers))))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._waiting:
            worker, future = self._waiting.popleft()
            try:
                batch = future.result(self._epochout)
            except TimeoutError as error:
                if future.done():  # the worker raised it
                    raise
                raise RuntimeError(
                    f"DataLoader timed out after {self._epochout} seconds"
                ) from error
            finally:
                del future
            if batch is _END:
                self._ended.add(worker)
            self._ask()
            if batch is not _END:
                return batch
        raise StopIteration


def _fetch_of_epoch(dataset: Any, options: tuple) -> Callable[[Any], Any]:
    """Return a worker's fetch, a function of (number of the iteration, indices)."""
    made: dict[int, Callable[[Any], Any]] = {}

    def fetch(argument: tuple[int, Any]) -> Any:
        epoch, numbers = argument
        if epoch not in made:  # an IterableDataset starts again
            made.clear()
            made[epoch] = make_fetch(dataset, *options)
        return made[epoch](numbers)

    return fetch


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 "
            "to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_order(
    dataset: Any,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    batch_size: int | None,
    drop_last: bool,
) -> None:
    if isinstance(dataset, IterableDataset):
        for name, value in (
            ("shuffle", shuffle or None),
            ("sampler", sampler),
            ("batch_sampler", batch_sampler),
        ):
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                    f"{name}={value}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (
        batch_size != 1 or shuffle or sampler is not None or drop_last
    ):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
            "drop_last"
        )
    if batch_size is None and drop_last and batch_sampler is None:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )
