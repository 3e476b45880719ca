"""DistributedSampler: each process its part of a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from convcore import distributed, random
from convcore.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every n-th sample of an order that n processes have in common.

    Parameters
    ----------
    dataset : Dataset
    num_replicas : int
        The number of processes, n; that of the default process group by default.
    rank : int
        The number of this process, from 0 on; that in the default process group by default.
    shuffle : bool
        Whether the order is random, a new one after each `set_epoch`.
    seed : int
        The seed of the order, the same in all processes.
    drop_last : bool
        Whether what remains of the dataset is dropped, so that all processes get equally many
        samples; else samples from the start are repeated.

    Raises
    ------
    RuntimeError
        ``num_replicas`` or ``rank`` is not given, and there is no process group.
    ValueError
        ``rank`` is not below ``num_replicas``.

    Examples
    --------
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if distributed.is_initialized():
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if num_replicas is None or rank is None:
            raise RuntimeError(
                "Requires distributed package to be available, or num_replicas and rank to be given"
            )
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else -(-n // num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order: Any = range(n)
        if self.shuffle:
            generator = random.Generator().manual_seed(self.seed + self.epoch)
            order = random.randperm(n, generator=generator).tolist()
        repeated = itertools.islice(itertools.cycle(order), self.total_size)
        return itertools.islice(repeated, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which gives another random order."""
        self.epoch = epoch
