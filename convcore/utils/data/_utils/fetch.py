"""Fetching a batch from indices of samples, in a worker or in the loader itself."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

from convcore._errors import hinted, hints
from convcore.utils.data._utils.collate import default_collate
from convcore.utils.data.dataset import IterableDataset, TensorDataset


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
    at_once = getattr(dataset, "__getitems__", None)

    def fetch(numbers: Any) -> Any:
        samples = at_once(numbers) if at_once else _samples(dataset, numbers)
        try:
            return collate(samples)
        except (RuntimeError, TypeError) as error:
            if isinstance(numbers, list | tuple):
                hinted(error, hints.samples(numbers, samples))
            raise

    return fetch


def _samples(dataset: Any, numbers: Any) -> list[Any]:
    """Return the samples of some indices; an error says which it was."""
    left = iter(numbers)
    try:
        return [dataset[number] for number in left]
    except Exception as error:
        if isinstance(numbers, list | tuple):  # which can be read again
            last = len(numbers) - operator.length_hint(left) - 1
            hinted(error, f"it came from dataset[{numbers[last]}]")
        raise


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
