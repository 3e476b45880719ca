"""Samplers: the order of samples and batches, the same as PyTorch's for the same seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from convcore import random
from convcore._errors import hinted, hints
from convcore._tensor import Tensor
from convcore._tensor.creation import as_tensor, empty
from convcore._tensor.dtypes import float64, int64

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


_T_co = TypeVar("_T_co", covariant=True)


def drawn_seed(generator: random.Generator | None = None) -> int:
    """Draw a seed for another generator."""
    seed = empty((), dtype=int64)
    random.fill_random(seed._array, 0, None, generator)
    return int(seed.item())


class Sampler(Generic[_T_co]):
    """The base class of samplers; a subclass defines ``__iter__``, over indices of samples."""

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Samples in the order of their indices.

    Parameters
    ----------
    data_source : Dataset
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples in a random order, a new one in each iteration.

    Parameters
    ----------
    data_source : Dataset
    replacement : bool
        Whether a sample may be drawn several times.
    num_samples : int, optional
        Number of draws; by default the length of ``data_source``.
    generator : Generator, optional
        By default a new one in each iteration, with a seed that the default generator draws.

    Raises
    ------
    TypeError
        ``replacement`` is not a bool.
    ValueError
        ``num_samples`` is not a positive int.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: random.Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _check_count("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator or random.Generator().manual_seed(drawn_seed())
        whole, rest = divmod(self.num_samples, 32 if self.replacement else n)
        if self.replacement:
            for size in [32] * whole + [rest]:
                yield from random.randint(high=n, size=(size,), generator=generator).tolist()
            return
        for _ in range(whole):
            yield from random.randperm(n, generator=generator).tolist()
        yield from random.randperm(n, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """A subset of the samples in a random order, a new one in each iteration.

    Parameters
    ----------
    indices : sequence of int
    generator : Generator, optional
    """

    def __init__(self, indices: Sequence[int], generator: random.Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for number in random.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[number]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Samples drawn with probabilities proportional to weights.

    Parameters
    ----------
    weights : sequence of numbers
        One a sample; they need not sum to 1.
    num_samples : int
    replacement : bool
        Whether a sample may be drawn several times.
    generator : Generator, optional

    Raises
    ------
    ValueError
        ``weights`` is not one-dimensional, ``num_samples`` not a positive int, or ``replacement``
        not a bool.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: random.Generator | None = None,
    ) -> None:
        _check_count("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = random.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Batches: lists of ``batch_size`` indices of another sampler.

    Parameters
    ----------
    sampler : Sampler or iterable of int
    batch_size : int
    drop_last : bool
        Whether to drop an incomplete last batch.

    Raises
    ------
    ValueError
        ``batch_size`` is not a positive int, or ``drop_last`` not a bool.

    Examples
    --------
    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise hinted(
            ValueError(f"{name} should be a positive integer value, but got {name}={value}"),
            hints.ONE_DATASET if isinstance(value, Tensor) else "",
        )
