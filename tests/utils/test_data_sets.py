"""Datasets of datasets, samplers of parts, generic classes, and the lengths of streams."""

import typing

import pytest
from against_torch import same_error

import convcore
from convcore.utils import data
from convcore.utils.data import distributed


class Rows(data.Dataset):
    """Numbers from a start on; with the number of calls for several at once."""

    def __init__(self, start, n, together=True):
        self.start, self.n, self.calls = start, n, 0
        if together:
            self.__getitems__ = self.several

    def several(self, indices):
        self.calls += 1
        return [self[index] for index in indices]

    def __getitem__(self, index):
        return self.start + index

    def __len__(self):
        return self.n


def stream(library, n, said=None):
    """An iterable dataset of n numbers that says it has others."""

    class Stream(library.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(n))

        def __len__(self):
            return n if said is None else said

        def __repr__(self):
            return "Stream"

    return Stream()


def test_all_names_of_pytorch_but_pipes_are_there(torch):
    pipes = {"DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation"}
    pipes |= {"functional_datapipe", "guaranteed_datapipes_determinism", "runtime_validation"}
    pipes |= {"non_deterministic", "runtime_validation_disabled"}
    pipes.add("StackDataset")
    missing = {name for name in torch.utils.data.__all__ if not hasattr(data, name)}
    assert missing == pipes
    assert data.distributed is distributed
    assert data.dataloader.default_collate is data._utils.collate.default_collate


@pytest.mark.parametrize(
    "make",
    [
        lambda d, lib: list(d.ChainDataset([[1]])),
        lambda d, lib: len(d.ChainDataset([[1]])),
        lambda d, lib: d.ConcatDataset([stream(lib, 3)]),
        lambda d, lib: d.ConcatDataset([[1]])[-2],
        lambda d, lib: d.distributed.DistributedSampler([1], 2, 2),
        lambda d, lib: d.distributed.DistributedSampler([1], 2, -1),
        lambda d, lib: d.DataLoader(stream(lib, 3), shuffle=True),
        lambda d, lib: d.RandomSampler([1], num_samples=0),
        lambda d, lib: d.RandomSampler([1], num_samples=1.5),
        lambda d, lib: d.RandomSampler([1], replacement="no"),
        lambda d, lib: d.WeightedRandomSampler([1.0], 0),
        lambda d, lib: d.WeightedRandomSampler([1.0], True),
        lambda d, lib: d.WeightedRandomSampler([1.0], 1, replacement=0),
        lambda d, lib: d.BatchSampler([1], 0, False),
        lambda d, lib: d.BatchSampler([1], True, False),
        lambda d, lib: d.BatchSampler([1], 1, 0),
        lambda d, lib: next(iter(d.Sampler())),
        lambda d, lib: iter(d.DataLoader([1], timeout=1)),
        lambda d, lib: d.random_split([1, 2], [1.5, -0.5]),
        lambda d, lib: d.IterableDataset(),
    ],
)
def test_errors_are_those_of_pytorch(torch, make):
    same_error(torch, lambda lib: make(lib.utils.data, lib))


def test_streams_are_chained():
    chained = stream(convcore, 2) + stream(convcore, 3)
    assert isinstance(chained, data.ChainDataset) and len(chained) == 5
    assert list(chained) == list(chained) == [0, 1, 0, 1, 2]
    assert [b.tolist() for b in data.DataLoader(chained, 2)] == [[0, 1], [0, 1], [2]]


def test_longer_streams_than_they_say_warn(lib):
    loader = lib.utils.data.DataLoader(stream(lib, 3, said=2), batch_size=None)
    assert list(loader) == [0, 1, 2]  # nobody has asked for the length
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="Stream was reported to be 2.*but 3 samples have been"):
        assert list(loader) == [0, 1, 2]


@pytest.mark.parametrize("n", [1, 3, 10, 11])
@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"drop_last": True}, {"seed": 5}])
def test_distributed_orders_are_pytorchs(torch, n, options):
    for replicas in (1, 2, 4):
        for rank in range(replicas):
            orders = []
            for library in (convcore, torch):
                sampler = library.utils.data.distributed.DistributedSampler(
                    range(n), replicas, rank, **options
                )
                order = [list(sampler), len(sampler), sampler.total_size]
                sampler.set_epoch(3)
                orders.append([*order, list(sampler)])
            assert orders[0] == orders[1]


def test_processes_have_to_be_counted():
    with pytest.raises(RuntimeError, match="Requires distributed package to be available"):
        data.DistributedSampler(range(3))


def test_samplers_draw_when_they_are_iterated(lib):
    """An iterator that nobody uses draws nothing."""
    lib.manual_seed(1)
    for sampler in ("WeightedRandomSampler([1.0, 2.0], 5)", "RandomSampler([1, 2])"):
        iter(eval(f"lib.utils.data.{sampler}"))
    drawn = lib.rand(1).item()
    lib.manual_seed(1)
    assert drawn == lib.rand(1).item()


def test_classes_are_generic(lib):
    d = lib.utils.data
    for generic in (d.Dataset, d.IterableDataset, d.DataLoader, d.Sampler, d.TensorDataset):
        if generic is not d.TensorDataset:
            assert typing.get_origin(generic[int]) is generic

    class Numbers(d.Dataset[int]):
        pass

    assert issubclass(Numbers, d.Dataset) and d.DataLoader[int]([1, 2]).batch_size == 1


def test_part_that_overrides_one_access_has_to_override_both(lib):
    class Part(lib.utils.data.Subset):
        def __getitem__(self, index):
            return 0

    with pytest.raises(
        NotImplementedError, match="Part overrides __getitem__ but not __getitems__"
    ):
        Part([1], [0])
