"""Datasets, samplers and loaders without workers: PyTorch's orders and batches."""

import importlib
import itertools
from collections import namedtuple

import numpy as np
import pytest
from against_torch import same_error
from process_targets import Squares

import convcore
from convcore.utils import data
from convcore.utils.data import DataLoader, TensorDataset

Pair = namedtuple("Pair", "x y")


class Stream(data.IterableDataset):
    """Numbers, shared out among workers."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))


def joined(parts):
    """Parts as one list."""
    return list(itertools.chain.from_iterable(parts))


def lists(batches):
    """Batches as lists of Python numbers."""
    return [batch.tolist() for batch in batches]


# Orders


@pytest.mark.parametrize(
    "make",
    [
        lambda d, g: d.RandomSampler(range(11)),
        lambda d, g: d.RandomSampler(range(11), generator=g),
        lambda d, g: d.RandomSampler(range(11), num_samples=27),
        lambda d, g: d.RandomSampler(range(11), replacement=True, num_samples=70),
        lambda d, g: d.SubsetRandomSampler([5, 3, 8, 8]),
        lambda d, g: d.WeightedRandomSampler([0.1, 0.5, 0.2, 3.0], 9, generator=g),
        lambda d, g: d.WeightedRandomSampler([0.1, 0.5, 0.2, 3.0], 3, replacement=False),
        lambda d, g: d.BatchSampler(d.RandomSampler(range(11)), 4, False),
        lambda d, g: d.BatchSampler(d.SequentialSampler(range(11)), 4, True),
    ],
)
def test_orders_are_pytorchs(torch, seed, make):
    orders = []
    for library in (convcore, torch):
        library.manual_seed(seed)
        sampler = make(library.utils.data, library.Generator().manual_seed(seed + 1))
        orders.append((list(sampler), list(sampler), len(sampler)))
    assert orders[0] == orders[1]


@pytest.mark.parametrize("own", [False, True])
def test_loader_shuffles_as_pytorch_does(torch, seed, own):
    batches = []
    for library in (convcore, torch):
        library.manual_seed(seed)
        generator = library.Generator().manual_seed(seed) if own else None
        rows = library.utils.data.TensorDataset(library.arange(23), library.arange(23) * 2)
        loader = library.utils.data.DataLoader(
            rows, batch_size=5, shuffle=True, generator=generator
        )
        twice = [[x.tolist(), y.tolist()] for _ in range(2) for x, y in loader]
        batches.append((twice, library.rand(1).item()))
    assert batches[0] == batches[1]


@pytest.mark.parametrize("lengths", [[3, 4, 4], [0.5, 0.3, 0.2], [0.21, 0.79], [11]])
def test_random_split_is_pytorchs(torch, seed, lengths):
    parts = [
        [
            list(part.indices)
            for part in lib.utils.data.random_split(
                range(11), lengths, lib.Generator().manual_seed(seed)
            )
        ]
        for lib in (convcore, torch)
    ]
    assert parts[0] == parts[1]
    assert sorted(joined(parts[0])) == list(range(11))


def test_random_split_draws_from_the_default_generator():
    convcore.manual_seed(3)
    first = data.random_split(range(9), [4, 5])[0].indices
    convcore.manual_seed(3)
    assert data.random_split(range(9), [4, 5])[0].indices == first


# Datasets


def test_datasets_of_datasets():
    whole = Squares(4) + Squares(3)
    assert len(whole) == 7
    assert [whole[i] for i in (0, 3, 4, 6, -1)] == [0, 9, 0, 4, 4]
    part = data.Subset(whole, [6, 0])
    assert [part[0], part[1], len(part)] == [4, 0, 2]
    assert lists(DataLoader(part, batch_size=2)) == [[4, 0]]
    x = convcore.arange(6).view(3, 2)
    rows = data.Subset(TensorDataset(x, x[:, 0]), [2, 1])
    assert rows[0][0].tolist() == [4, 5]
    assert [b.tolist() for b in next(iter(DataLoader(rows, 2)))] == [[[4, 5], [2, 3]], [4, 2]]


def test_tensors_of_different_lengths_are_refused():
    with pytest.raises(AssertionError, match="Size mismatch"):
        TensorDataset(convcore.zeros(3), convcore.zeros(2))


# Batches


SAMPLES = [
    [1, 2, 3],
    [1.5, 2.5],
    [True, False],
    ["a", "b"],
    [b"a", b"b"],
    [np.float32(1), np.float32(2)],
    [np.arange(3), np.arange(3) + 1],
    [np.array(1.5), np.array(2.5)],
    [(1, 2.0), (3, 4.0)],
    [[1, "x"], [2, "y"]],
    [{"a": 1, "b": (1, 2)}, {"a": 3, "b": (3, 4)}],
    [Pair(1, [2.0]), Pair(3, [4.0])],
]


def shown(value):
    """A batch of either library in plain words: types, dtypes and numbers."""
    if hasattr(value, "detach"):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(item) for item in value]
    return value


def test_names_in_an_array_are_collated_as_strings(torch):
    names = [*np.array(["a.png", "b.png"])]
    assert data.default_collate(names) == torch.utils.data.default_collate(names) == names


@pytest.mark.parametrize("samples", SAMPLES, ids=str)
def test_collated_batches_are_pytorchs(torch, samples):
    ours = shown(data.default_collate(samples))
    assert ours == shown(torch.utils.data.default_collate(samples))
    ours = shown(data.default_convert(samples))
    assert ours == shown(torch.utils.data.default_convert(samples))


@pytest.mark.parametrize("samples", [[object()], [np.array(["a"])], [[1, 2], [1]], [None, None]])
def test_what_cannot_be_collated_raises_as_in_pytorch(torch, samples):
    same_error(torch, lambda lib: lib.utils.data.default_collate(samples))


def test_tensors_are_stacked():
    batch = data.default_collate([convcore.ones(2), convcore.zeros(2)])
    assert batch.tolist() == [[1, 1], [0, 0]]


def test_rows_taken_at_once_are_those_taken_one_by_one():
    x, y = convcore.randn(7, 2, 3), convcore.arange(7)
    rows = TensorDataset(x, y)
    fast = list(DataLoader(rows, 3))
    slow = list(DataLoader(rows, 3, collate_fn=lambda samples: data.default_collate(samples)))
    assert convcore.equal(next(iter(DataLoader(rows, batch_sampler=[(2, 5)])))[1], y[[2, 5]])
    for one, other in zip(fast, slow, strict=True):
        assert type(one) is type(other)
        assert all(convcore.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("options", "expected", "n"),
    [
        ({"batch_size": 3}, [[0, 1, 4], [9, 16, 25], [36]], 3),
        ({"batch_size": 3, "drop_last": True}, [[0, 1, 4], [9, 16, 25]], 2),
        ({"batch_size": 4, "sampler": [6, 0, 2]}, [[36, 0, 4]], 1),
        ({"batch_sampler": [[1, 2], [3]]}, [[1, 4], [9]], 2),
    ],
)
def test_batches_are_what_was_asked_for(workers, options, expected, n):
    loader = DataLoader(Squares(7), num_workers=workers, **options)
    assert lists(loader) == expected and len(loader) == n


@pytest.mark.parametrize("workers", [0, 2])
def test_without_a_batch_size_there_are_single_samples(workers):
    loader = DataLoader(Squares(4), batch_size=None, num_workers=workers)
    assert list(loader) == [0, 1, 4, 9] and len(loader) == 4


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_streams_are_taken_to_their_ends(workers):
    loader = DataLoader(Stream(13), batch_size=3, num_workers=workers)
    assert len(loader) == 5
    for _ in range(2):
        assert sorted(joined(lists(loader))) == list(range(13))
    if workers == 2:  # every second number each
        assert lists(loader)[:3] == [[0, 2, 4], [1, 3, 5], [6, 8, 10]]
    whole = DataLoader(Stream(13), batch_size=5, drop_last=True)
    assert lists(whole) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


# Errors


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.DataLoader(range(3), num_workers=-1),
        lambda d: d.DataLoader(range(3), timeout=-1),
        lambda d: d.DataLoader(range(3), prefetch_factor=2),
        lambda d: d.DataLoader(range(3), num_workers=1, prefetch_factor=-2),
        lambda d: d.DataLoader(range(3), persistent_workers=True),
        lambda d: d.DataLoader(range(3), shuffle=True, sampler=[1]),
        lambda d: d.DataLoader(range(3), batch_sampler=[[1]], batch_size=2),
        lambda d: d.DataLoader(range(3), batch_sampler=[[1]], drop_last=True),
        lambda d: d.DataLoader(range(3), batch_size=None, drop_last=True),
        lambda d: d.DataLoader(range(3), batch_size=0),
        lambda d: d.DataLoader(range(3), batch_size=2, drop_last=2),
        lambda d: d.DataLoader(range(0), shuffle=True),
        lambda d: setattr(d.DataLoader(range(3)), "batch_size", 2),
        lambda d: d.RandomSampler(range(3), replacement=1),
        lambda d: d.WeightedRandomSampler([[1.0]], 2),
        lambda d: d.random_split(range(5), [2, 2]),
        lambda d: d.ConcatDataset([]),
        lambda d: d.Dataset()[0],
    ],
)
def test_errors_are_those_of_pytorch(torch, make):
    same_error(torch, lambda lib: make(lib.utils.data))


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_streams_have_no_order(options):
    with pytest.raises(ValueError, match=f"unspecified {next(iter(options))} option"):
        DataLoader(Stream(3), **options)


def test_pinned_memory_warns():
    with pytest.warns(UserWarning, match="no accelerator is found"):
        list(DataLoader(range(2), pin_memory=True))


def test_empty_part_of_a_split_warns():
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(2), [0.99, 0.01])


def test_samples_are_collated_by_functions_of_their_types(torch):
    class Box:
        def __init__(self, value):
            self.value = value

    def boxes(batch, *, collate_fn_map=None):
        return [box.value for box in batch]

    samples = [{"a": Box(1), "b": (1.5, "x")}, {"a": Box(2), "b": (2.5, "y")}]
    for library in (convcore, torch):
        collate = importlib.import_module(f"{library.__name__}.utils.data._utils.collate")
        functions = {**collate.default_collate_fn_map, Box: boxes}
        batch = collate.collate(samples, collate_fn_map=functions)
        assert batch["a"] == [1, 2] and batch["b"][0].tolist() == [1.5, 2.5]
        assert list(batch["b"][1]) == ["x", "y"]
        with pytest.raises(TypeError, match="must contain tensors, numpy arrays, numbers"):
            collate.collate([Box(1)], collate_fn_map=collate.default_collate_fn_map)
