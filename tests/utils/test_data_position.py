"""A loader's iteration goes on where another's stood: the same batches, fetched once."""

import io
import os
import random

import numpy as np
import pytest
from process_targets import AugmentedByAll, Stream

import convcore
from convcore.utils import data
from convcore.utils.data import DataLoader

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
N = 23
BATCH = 4
KINDS = {
    "here": {},
    "threads": {"num_workers": 2, "multiprocessing_context": "thread"},
    "kept threads": {
        **{"num_workers": 3, "multiprocessing_context": "thread", "persistent_workers": True}
    },
}
if hasattr(os, "fork"):
    processes = {"num_workers": 2, "multiprocessing_context": "fork"}
    KINDS |= {"processes": processes, "kept processes": {**processes, "persistent_workers": True}}


class Eager(data.Sampler):
    """Draws its order from NumPy's generator, at once."""

    def __init__(self, source):
        self.source = source

    def __iter__(self):
        return iter(np.random.permutation(len(self.source)).tolist())

    def __len__(self):
        return len(self.source)


class Counting(data.Sampler):
    """Has a state of its own."""

    def __init__(self, source):
        self.source, self.epoch = source, 0

    def __iter__(self):
        self.epoch += 1
        return iter([(3 * k + self.epoch) % len(self.source) for k in range(len(self.source))])

    def __len__(self):
        return len(self.source)

    def state_dict(self):
        return {"epoch": self.epoch}

    def load_state_dict(self, state):
        self.epoch = state["epoch"]


ORDERS = {
    "in order": lambda dataset: {},
    "shuffled": lambda dataset: {"shuffle": True},
    "of a generator": lambda dataset: {
        "shuffle": True,
        "generator": convcore.Generator().manual_seed(3),
    },
    "weighted": lambda dataset: {
        "sampler": data.WeightedRandomSampler(np.arange(1, N + 1) / N, 2 * N)
    },
    "subset": lambda dataset: {"sampler": data.SubsetRandomSampler(range(2, N))},
    "replaced": lambda dataset: {
        "sampler": data.RandomSampler(dataset, True, 70, convcore.Generator().manual_seed(5))
    },
    "eager": lambda dataset: {"sampler": Eager(dataset)},
    "counting": lambda dataset: {"sampler": Counting(dataset)},
    "stream": lambda dataset: {},
}


def made(kind, order):
    alone = KINDS[kind].get("multiprocessing_context") != "thread"
    dataset = Stream(N, alone) if order == "stream" else AugmentedByAll(N, alone)
    return DataLoader(dataset, batch_size=BATCH, **ORDERS[order](dataset), **KINDS[kind])


def seed_all():
    convcore.manual_seed(1)
    np.random.seed(2)
    random.seed(3)


def run(loader, epochs, stop=None, start=(0, 0)):
    """Batches of a run, with a number drawn after each; stop after one, and return the states."""
    seen, (first, taken) = [], start
    for epoch in range(first, epochs):
        for number, batch in enumerate(loader, taken if epoch == first else 0):
            seen.append((batch.tolist(), convcore.rand(1).item(), random.random()))
            if (epoch, number) == stop:
                return seen, saved(loader)
        seen.append(("end", convcore.rand(1).item()))
        if (epoch, "end") == stop:
            return seen, saved(loader)
    return seen, None


def saved(loader):
    file = io.BytesIO()
    states = convcore.random.states.get_global_states()
    convcore.save([loader.state_dict(), states], file)
    return file


# Processes are told indices, as threads are, and nothing of what drew them.
OF_PROCESSES = ("shuffled", "eager", "stream")
CASES = [
    (kind, order) for kind in KINDS for order in (OF_PROCESSES if "processes" in kind else ORDERS)
]


@pytest.mark.parametrize(("kind", "order"), CASES)
def test_an_iteration_goes_on_in_another_loader(kind, order):
    seed_all()
    loader = made(kind, order)
    loader.state_dict()
    whole, _ = run(loader, 3)
    n_batches = next(k for k, one in enumerate(whole) if one[0] == "end")
    for stop in ((0, 0), (1, 1), (1, n_batches - 1), (0, "end")):
        seed_all()
        loader = made(kind, order)
        loader.state_dict()
        seen, file = run(loader, 3, stop)
        for _ in range(2):  # the second from what the first says before it goes on
            convcore.manual_seed(99)
            again = made(kind, order)
            state, states = convcore.load(file)
            again.load_state_dict(state)
            convcore.random.states.set_global_states(states)
            file = saved(again)
        start = (stop[0] + 1, 0) if stop[1] == "end" else (stop[0], stop[1] + 1)
        more, _ = run(again, 3, start=start)
        assert [*seen, *more] == whole, stop


class Fetched(data.Dataset):
    def __init__(self):
        self.asked = []

    def __len__(self):
        return 10

    def __getitem__(self, number):
        self.asked.append(number)
        return number


def test_batches_that_were_taken_are_not_fetched_again():
    dataset = Fetched()
    loader = DataLoader(dataset, batch_size=2)
    loader.state_dict()
    for number, _ in enumerate(loader):
        if number == 2:
            state = loader.state_dict()
            break
    dataset.asked.clear()
    loader.load_state_dict(state)
    assert len(loader) == 5 and [batch.tolist() for batch in loader] == [[6, 7], [8, 9]]
    assert dataset.asked == [6, 7, 8, 9]
    assert len(list(loader)) == 5  # the next iteration is a whole one


def test_an_iteration_that_was_left_is_over():
    loader = DataLoader(range(10))
    loader.state_dict()
    for _ in loader:
        break
    assert loader.state_dict()["taken"] is None


def test_the_states_of_all_generators_stay_as_they_are():
    loader = DataLoader(range(10), shuffle=True)
    loader.state_dict()
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    convcore.manual_seed(7)
    before = convcore.get_rng_state()
    loader.load_state_dict(state)
    next(iter(loader))
    assert convcore.equal(convcore.get_rng_state(), before)


def test_what_cannot_be_kept_is_told():
    loader = DataLoader(range(10))
    batches = iter(loader)
    with pytest.raises(RuntimeError, match="once before the iteration begins"):
        loader.state_dict()
    del batches
    state = loader.state_dict()
    with pytest.raises(ValueError, match="expected what a DataLoader's state_dict"):
        loader.load_state_dict({"epoch": 1})
    other = DataLoader(range(10), shuffle=True, generator=convcore.Generator())
    with pytest.raises(ValueError, match=r"0 generators and samplers that have a state, .* 1"):
        other.load_state_dict(state)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    workers = DataLoader(range(10), num_workers=1, multiprocessing_context="thread")
    with pytest.raises(ValueError, match="num_workers=0, and this one has 1"):
        workers.load_state_dict(state)
    pairs = DataLoader(range(10), batch_size=2)
    with pytest.raises(ValueError, match="batch_size=1, and this loader has 2"):
        pairs.load_state_dict(state)
    assert [len(batch) for batch in pairs] == [2] * 5
    for other in (DataLoader(range(9)), DataLoader(range(10), drop_last=True)):
        with pytest.raises(ValueError, match=r"(drop_last|len\(dataset\))=.*and this loader has"):
            other.load_state_dict(state)
        assert len(list(other)) == len(other)
    short = DataLoader(range(10), sampler=[])
    short.load_state_dict(state)
    with pytest.raises(ValueError, match="goes on behind batch 1, and there are only 0"):
        iter(short)
    unordered = DataLoader(
        range(9), num_workers=1, in_order=False, multiprocessing_context="thread"
    )
    with pytest.raises(ValueError, match="in_order=False"):
        unordered.state_dict()


class Refusing(Counting):
    """Has a state that no other takes."""

    def load_state_dict(self, state):
        self.epoch = -1
        if state["epoch"] != 0:
            raise KeyError("epoch")
        self.epoch = 0


def test_what_fails_late_leaves_all_as_it_was():
    generator = convcore.Generator().manual_seed(3)
    loader = DataLoader(range(10), sampler=Refusing(range(10)), generator=generator)
    state = loader.state_dict()
    convcore.rand(2, generator=generator)
    before = generator.get_state()
    state["generators"][1]["epoch"] = 5
    with pytest.raises(KeyError, match="epoch"):
        loader.load_state_dict(state)
    assert convcore.equal(generator.get_state(), before) and loader.sampler.epoch == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("taken", "1"), ("taken", True), ("workers", 3), ("generators", None), ("drew_seed", 1)],
)
def test_a_state_of_other_types_is_refused(key, value):
    loader = DataLoader(range(10))
    with pytest.raises(ValueError, match=f"got {type(value).__name__} as '{key}'"):
        loader.load_state_dict(loader.state_dict() | {key: value})
