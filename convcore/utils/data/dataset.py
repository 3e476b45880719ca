"""Datasets: map-style and iterable ones, tensors, subsets, concatenation, random splits."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from convcore import random
from convcore._tensor import Tensor

__all__ = [
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset:
    """The base class of map-style datasets, whose samples have indices.

    A subclass defines ``__getitem__(index)``, and ``__len__``, which samplers need. It may define
    ``__getitems__(indices)``, which returns a list of samples at once.
    """

    def __class_getitem__(cls, item: Any) -> Any:
        return cls  # Dataset[int] is the same class: the type of samples is not checked

    def __getitem__(self, index: Any) -> Any:
        """Return a sample."""
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """The base class of iterable datasets, such as streams.

    A subclass defines ``__iter__``. In a `DataLoader` each worker iterates over all of it, unless
    ``__iter__`` picks the worker's part by `get_worker_info`.
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        raise TypeError("an IterableDataset has no numbers of samples to be added to others'")


class TensorDataset(Dataset):
    """Samples that are the rows of tensors.

    Parameters
    ----------
    *tensors : Tensor, (n, ...) each

    Raises
    ------
    AssertionError
        The tensors have different numbers of rows.

    Examples
    --------
    >>> import convcore
    >>> data = TensorDataset(convcore.arange(3), convcore.ones(3, 2))
    >>> len(data), data[1]
    (3, (tensor(1), tensor([1., 1.])))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class Subset(Dataset):
    """A subset of a dataset's samples.

    Parameters
    ----------
    dataset : Dataset
    indices : sequence of int
        The samples' indices in ``dataset``.
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Return several samples."""
        whole = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(whole)
        return [self.dataset[i] for i in whole]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """The concatenation of several datasets.

    Parameters
    ----------
    datasets : iterable of Dataset

    Raises
    ------
    AssertionError
        There are none, or one is an `IterableDataset`.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - before]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(
    dataset: Any,
    lengths: Sequence[float],
    generator: random.Generator | None = random.default_generator,
) -> list[Subset]:
    """Split a dataset at random into disjoint subsets.

    Parameters
    ----------
    dataset : Dataset
    lengths : sequence of int, or of float
        Samples of each part, or fractions that sum to 1. Fractions are rounded down, and the
        remaining samples go one by one to the first parts.
    generator : Generator, optional
        The source of the random order.

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        The lengths do not sum to the dataset's, or a fraction is not between 0 and 1.

    Examples
    --------
    >>> import convcore
    >>> parts = random_split(range(10), [0.7, 0.3], convcore.Generator().manual_seed(0))
    >>> [len(part) for part in parts]
    [7, 3]
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _of_shares(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = random.randperm(len(dataset), generator=generator).tolist()
    ends = itertools.accumulate(int(length) for length in lengths)
    starts = [0, *ends]
    return [Subset(dataset, order[a:b]) for a, b in itertools.pairwise(starts)]


def _of_shares(n: int, shares: Sequence[float]) -> list[int]:
    """Return fractions of n samples as integers that sum to n."""
    for number, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction at index {number} is not between 0 and 1")
    lengths = [math.floor(n * share) for share in shares]
    for number in range(n - sum(lengths)):
        lengths[number % len(lengths)] += 1
    for number, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {number} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return lengths
