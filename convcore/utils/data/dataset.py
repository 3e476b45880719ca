"""Datasets: map-style and iterable ones, tensors, subsets, concatenation, random splits."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Iterable, TypeVar  # noqa: UP035  # Iterable is Generic there

from convcore import random
from convcore._errors import hinted, hints
from convcore._tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """The base class of map-style datasets, whose samples have indices.

    A subclass defines ``__getitem__(index)``, and ``__len__``, which samplers need. It may define
    ``__getitems__(indices)``, which returns a list of samples at once.
    """

    def __getitem__(self, index: Any) -> _T_co:
        """Return a sample."""
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """The base class of iterable datasets, such as streams.

    A subclass defines ``__iter__``. In a `DataLoader` each worker iterates over all of it, unless
    ``__iter__`` picks the worker's part by `get_worker_info`.
    """

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples that are the rows of tensors.

    Parameters
    ----------
    *tensors : Tensor, (n, ...) each

    Raises
    ------
    AssertionError
        The tensors have different numbers of rows.
    TypeError
        One is no tensor.

    Examples
    --------
    >>> import convcore
    >>> data = TensorDataset(convcore.arange(3), convcore.ones(3, 2))
    >>> len(data), data[1]
    (3, (tensor(1), tensor([1., 1.])))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        for number, one in enumerate(tensors):
            if not callable(getattr(one, "size", None)):
                kind = type(one).__name__
                raise hinted(
                    TypeError(f"TensorDataset(): tensors[{number}] must be Tensor, got {kind}"),
                    hints.not_a_tensor(one),
                )
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            rows = ", ".join(str(tensor.size(0)) for tensor in tensors)
            raise hinted(
                AssertionError("Size mismatch between tensors"), f"their first axes are {rows}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class Subset(Dataset[_T_co]):
    """A subset of a dataset's samples.

    Parameters
    ----------
    dataset : Dataset
    indices : sequence of int
        The samples' indices in ``dataset``.
    """

    def __init__(self, dataset: Dataset[_T_co] | Sequence[_T_co], indices: Sequence[int]) -> None:
        self.dataset: Any = dataset
        self.indices = indices
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__. When subclassing "
                "Subset and overriding __getitem__, you must also override __getitems__ to ensure "
                "DataLoader works correctly with your custom logic."
            )

    def __getitem__(self, index: Any) -> _T_co:
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
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return where each dataset ends."""
        return list(itertools.accumulate(map(len, sequence)))

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


class ChainDataset(IterableDataset):
    """The samples of several iterable datasets, one dataset after the other.

    Parameters
    ----------
    datasets : iterable of IterableDataset

    Raises
    ------
    AssertionError
        While iterating: one is no `IterableDataset`.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._streams())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


def _samples(dataset: Any, indices: list) -> list[Any]:
    """Return several samples of a dataset, all at once where it can."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    samples = dataset.__getitems__(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(samples)}"
        )
    return samples


def random_split(
    dataset: Dataset[_T_co] | Sequence[_T_co],
    lengths: Sequence[float],
    generator: random.Generator | None = random.default_generator,
) -> list[Subset[_T_co]]:
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
    size = len(dataset)  # type: ignore[arg-type]  # a Dataset need not have one, this one does
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _of_shares(size, lengths)
    if sum(lengths) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = random.randperm(size, generator=generator).tolist()
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
