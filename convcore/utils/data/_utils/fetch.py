"""How a worker, or the loader itself, gets from indices to a batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from convcore.utils.data._utils.collate import default_collate
from convcore.utils.data.dataset import IterableDataset, TensorDataset

__all__ = ["make_fetch"]


def make_fetch(
    dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool
) -> Callable[[Any], Any]:
    """Return a function from indices of samples, or a single one, to a batch.

    At the end of an `IterableDataset` it raises StopIteration.
    """
    if isinstance(dataset, IterableDataset):
        return _fetch_of_stream(dataset, batched, collate, drop_last)
    if not batched:
        return lambda number: collate(dataset[number])
    if type(dataset) is TensorDataset and collate is default_collate:
        # The same as collating the samples, by one subscript of each tensor.
        return lambda numbers: [tensor[[*numbers]] for tensor in dataset.tensors]
    if getattr(dataset, "__getitems__", None):
        return lambda numbers: collate(dataset.__getitems__(numbers))
    return lambda numbers: collate([dataset[number] for number in numbers])


def _fetch_of_stream(
    dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool
) -> Callable[[Any], Any]:
    samples = iter(dataset)
    ended = False  # a stream that has ended is not asked again

    def fetch(numbers: Any) -> Any:
        nonlocal ended
        if ended:
            raise StopIteration
        if not batched:
            return collate(next(samples))
        batch = list(itertools.islice(samples, len(numbers)))
        ended = len(batch) < len(numbers)
        if not batch or (ended and drop_last):
            raise StopIteration
        return collate(batch)

    return fetch
