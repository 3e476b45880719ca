"""Workers of loaders: processes and threads, PyTorch's bits and orders, and how they end."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from process_targets import Augmented, AugmentedOfConvcore, Squares

import convcore
from convcore.engine.runtime import shared
from convcore.utils import data
from convcore.utils.data import DataLoader, TensorDataset
from convcore.utils.data._utils import handover
from convcore.utils.data._utils.worker import _generate_state

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
]

# What tests define in themselves can only be forked.
KINDS = ("fork", "thread")


def loader(dataset, *args, kind="fork", workers=2, library=convcore, **options):
    """A loader with workers of a kind."""
    return library.utils.data.DataLoader(
        dataset, *args, num_workers=workers, multiprocessing_context=kind, **options
    )


class Big(data.Dataset):
    """Images too large for a socket, in several dtypes and shapes."""

    def __len__(self):
        return 9

    def __getitem__(self, index):
        image = np.full((3, 100, 100), index, np.float32)
        return {
            "image": convcore.from_numpy(image),
            "array": image[:1, :0],
            "last": convcore.from_numpy(image).permute(1, 2, 0),
            "label": index,
            "name": "n" * 1000,
        }


def lists(batches):
    """Batches as lists of Python numbers."""
    return [batch.tolist() for batch in batches]


def augmented_stream(library):
    """The same as a stream, shared out among workers."""

    class Stream(library.utils.data.IterableDataset):
        def __iter__(self):
            info = library.utils.data.get_worker_info()
            first, step = (0, 1) if info is None else (info.id, info.num_workers)
            samples = Augmented(library)
            return (samples[index] for index in range(first, 11, step))

    return Stream()


def epochs(library, seed, make, persistent, **options):
    """All that three epochs yield, the second of them broken off, and what is drawn afterwards."""
    library.manual_seed(seed)
    np.random.seed(seed + 1)
    random.seed(seed + 2)
    batches = library.utils.data.DataLoader(make(library), persistent_workers=persistent, **options)
    found = []
    for epoch in range(3):
        for batch in batches:
            found.append([np.asarray(part).tolist() for part in batch])
            if epoch == 1:
                break
    after = [library.rand(2).tolist(), np.random.rand(), random.random()]
    return found, after


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["map", "stream"])
def test_bits_order_and_seeds_are_pytorchs(torch, seed, kind, workers, persistent):
    if persistent and not workers:
        pytest.skip("nobody persists")
    options = {"batch_size": 2, "num_workers": workers, "shuffle": kind == "map"}
    make = Augmented if kind == "map" else augmented_stream
    results = [epochs(library, seed, make, persistent, **options) for library in (convcore, torch)]
    assert results[0] == results[1]


def test_generators_of_workers_differ_and_the_main_process_keeps_its_own(seed):
    results = []
    for workers in (0, 2):
        np.random.seed(seed)
        random.seed(seed)
        rows = list(DataLoader(Augmented(convcore), None, num_workers=workers))
        results.append((np.random.rand(), random.random()))
    numbers = [float(row[1][0]) for row in rows] + [row[2] for row in rows]
    assert len(set(numbers)) == len(numbers)
    np.random.seed(seed)
    random.seed(seed)
    assert results[1] == (np.random.rand(), random.random())


def test_numpys_seed_mixes_the_base_seed_with_the_workers_number(torch):
    from torch.utils.data._utils import worker as theirs

    for base, number in [(0, 0), (5, 1), (2**63 - 1, 7), (2**40 + 3, 2)]:
        assert _generate_state(base, number) == theirs._generate_state(base, number)


def test_spawned_workers_draw_the_same(seed):
    results = []
    for kind in ("fork", "spawn"):
        convcore.manual_seed(seed)
        results.append([np.asarray(row[1]).tolist() for row in spawnable(kind)])
    assert results[0] == results[1]


def spawnable(kind):
    return loader(AugmentedOfConvcore(), None, kind=kind, workers=1)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_slow_workers_come_in_order(kind):
    batches = loader(Squares(20, wait=0.002), 2, kind=kind, workers=4)
    assert lists(batches) == [[i * i, (i + 1) ** 2] for i in range(0, 20, 2)]


def test_batches_may_come_as_they_are_ready():
    class Late(Squares):
        def __getitem__(self, index):
            time.sleep(0.5 if index == 0 else 0)
            return index

    assert lists(loader(Late(4), in_order=False))[0] != [0]
    assert sorted(lists(loader(Late(6), in_order=False))) == [[i] for i in range(6)]


@pytest.mark.parametrize("kind", KINDS)
def test_large_batches_arrive_whole(kind):
    batches = list(loader(Big(), 4, kind=kind))
    assert [len(batch["label"]) for batch in batches] == [4, 4, 1]
    for batch in batches:
        label = batch["label"].view(-1, 1, 1, 1).to(convcore.float32)
        assert (batch["image"] == label).all() and (batch["last"] == label).all()
        assert batch["array"].shape[1:] == (1, 0, 100) and batch["name"][0] == "n" * 1000
        batch["image"] += 1  # memory of this process


def test_batches_share_memory_and_free_it():
    files = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
    batches = list(loader(Big(), 4))
    image = batches[0]["image"]._array
    assert shared.is_shared(image)
    gone = weakref.ref(shared._block(image))
    del batches, image
    assert gone() is None
    if files is not None:
        assert len(os.listdir("/proc/self/fd")) <= files


def test_many_kept_batches_need_no_more_descriptors(monkeypatch):
    monkeypatch.setattr(shared, "MOST_MAPS", shared._n_maps + 2)
    batches = list(loader(Big(), 1))
    assert sum(shared.is_shared(batch["image"]._array) for batch in batches) == 2
    assert [batch["image"][0, 0, 0, 0].item() for batch in batches] == list(range(9))


@pytest.mark.subprocess
@pytest.mark.parametrize("limit", [100, 256])
def test_many_kept_batches_fit_into_few_descriptors(run_child, limit):
    out = run_child(f"""if True:
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, hard))
    import convcore
    from convcore.utils.data import DataLoader

    images = [convcore.full((50_000,), float(number)) for number in range({limit})]
    pairs = list(DataLoader([(image, image) for image in images], num_workers=2))
    print(all(number == a[0, 0] == b[0, 0] for number, (a, b) in enumerate(pairs)), len(pairs))
    """)
    assert out.split() == ["True", str(limit)]


def test_without_descriptors_batches_are_copied(monkeypatch):
    monkeypatch.setattr(handover, "_has_descriptors", False)
    batches = list(loader(Big(), 4))
    assert not shared.is_shared(batches[0]["image"]._array)
    assert batches[2]["image"][0, 0, 0, 0].item() == 8


def test_arguments_and_answers_larger_than_a_pipe_do_not_block():
    class Text(Squares):
        def __getitem__(self, index):
            return "x" * 60_000

    few = loader(range(1), batch_sampler=[[0] * 60_000] * 12, prefetch_factor=6, collate_fn=len)
    assert list(few) == [60_000] * 12
    many = iter(loader(Text(40), batch_size=None, prefetch_factor=10))
    next(many)
    before = time.monotonic()
    del many  # workers wait to send what nobody takes
    assert time.monotonic() - before < 4


def test_what_threads_draw_does_not_depend_on_who_is_first(seed):
    class Noisy(Squares):
        def __getitem__(self, index):
            super().__getitem__(index)
            return convcore.rand(2)

    results = []
    for wait in (0.0, 0.002):
        convcore.manual_seed(seed)
        results.append(lists(loader(Noisy(12, wait), 2, kind="thread", workers=3)))
    assert results[0] == results[1]
    assert len({number for batch in results[0] for row in batch for number in row}) == 24


@pytest.mark.parametrize("kind", KINDS)
def test_worker_knows_itself_and_is_initialized(seed, kind):
    class Told(Squares):
        def __getitem__(self, index):
            info = data.get_worker_info()
            return (begun, info.id, info.num_workers, info.seed, info.dataset is self)

    def begin(number):
        nonlocal begun
        begun += number + 1

    begun = 0
    generator = convcore.Generator().manual_seed(seed)
    options = {"worker_init_fn": begin, "generator": generator, "batch_size": None}
    told = list(loader(Told(2), kind=kind, **options))
    first = data.sampler.drawn_seed(convcore.Generator().manual_seed(seed))
    assert [row[1:] for row in told] == [[i, 2, first + i, True] for i in range(2)]
    if kind == "fork":
        assert [row[0] for row in told] == [1, 2] and begun == 0
    else:
        assert all(row[0] for row in told) and begun == 3
    assert data.get_worker_info() is None


class Unpicklable(Exception):
    """An exception that takes more than a message."""

    def __init__(self, a, b):
        super().__init__(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (IndexError("nine"), IndexError),
        (KeyError("key"), KeyError),
        (OSError("no disk"), OSError),
        (Unpicklable(1, 2), RuntimeError),
    ],
)
def test_exception_is_raised_with_the_workers_traceback(kind, error, raised):
    class Faulty(Squares):
        def __getitem__(self, index):
            if index == 1:
                raise error
            return index

    batches = iter(loader(Faulty(5), kind=kind))
    assert next(batches).tolist() == [0]
    with pytest.raises(raised) as found:
        next(batches)
    where = "process" if kind == "fork" else "thread"
    caught = f"Caught {type(error).__name__} in DataLoader worker {where} 1.\nOriginal Traceback"
    assert str(found.value).startswith(caught)
    assert "in __getitem__\n    raise error\n" in str(found.value)
    assert lists(batches) == [[2], [3], [4]]


def test_texts_of_exceptions_are_pytorchs(torch):
    class Faulty(Squares):
        def __getitem__(self, index):
            raise KeyError("nine")

    texts = []
    for library in (convcore, torch):
        batches = iter(loader(Faulty(1), workers=1, library=library))
        with pytest.raises(KeyError) as found:
            next(batches)
        assert list(batches) == []  # PyTorch's worker ends here, and not when it is collected
        texts.append(str(found.value).split("\nHint: ")[0].rstrip().split("\n"))
    assert texts[0][:2] == texts[1][:2] and texts[0][-1] == texts[1][-1]


def test_exception_whose_type_cannot_be_pickled_arrives():
    class Local(Exception):
        pass

    class Faulty(Squares):
        def __getitem__(self, index):
            raise Local("here")

    with pytest.raises(RuntimeError, match=r"(?s)in DataLoader worker process 0.*Local: here"):
        next(iter(loader(Faulty(5))))


def test_batch_that_cannot_be_pickled_is_an_error():
    with pytest.raises(Exception, match=r"Caught \w+ in DataLoader worker process 0.*"):
        next(iter(loader(Squares(5), collate_fn=lambda batch: lambda: batch)))


@pytest.mark.parametrize("kind", KINDS)
def test_exception_of_the_initialization_reaches_the_caller(kind):
    def begin(number):
        raise OSError("no disk")

    with pytest.raises(OSError, match=r"(?s)Caught OSError in .*no disk"):
        next(iter(loader(Squares(5), kind=kind, worker_init_fn=begin)))


@pytest.mark.parametrize("kind", KINDS)
def test_late_batch_is_an_error(kind):
    late = loader(Squares(5, wait=0.5), sampler=[1], kind=kind, timeout=0.02)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.02 seconds"):
        next(iter(late))


def test_killed_worker_is_an_error():
    batches = iter(loader(Squares(100, wait=0.01)))
    next(batches)
    pid = batches._workers[1].pid
    os.kill(pid, signal.SIGKILL)
    before = time.monotonic()
    with pytest.raises(RuntimeError, match="exited unexpectedly") as error:
        list(batches)
    assert time.monotonic() - before < 4
    assert str(error.value) == (
        f"DataLoader worker (pid(s) {pid}) exited unexpectedly\nWorker 1 was killed by SIGKILL."
    )


def test_exiting_worker_is_an_error_and_the_next_epoch_starts_others(tmp_path):
    class Leaving(Squares):
        def __getitem__(self, index):
            if index == 3 and not (tmp_path / "left").exists():
                (tmp_path / "left").touch()
                sys.exit(7)
            return index

    batches = loader(Leaving(6), persistent_workers=True)
    with pytest.raises(RuntimeError, match="exited unexpectedly") as raised:
        list(batches)
    assert str(raised.value).endswith("\nWorker 1 exited with code 7.")
    assert lists(batches) == [[i] for i in range(6)]


def test_thread_that_leaves_is_an_error():
    class Leaving(Squares):
        def __getitem__(self, index):
            threading.excepthook = lambda args: None
            raise SystemExit

    hook, before = threading.excepthook, set(threading.enumerate())
    try:
        with pytest.raises(RuntimeError, match="worker thread 0 exited unexpectedly"):
            list(loader(Leaving(6), kind="thread", workers=1))
        for worker in set(threading.enumerate()) - before:  # it tells its hook last
            worker.join(timeout=30)
    finally:
        threading.excepthook = hook


def test_threads_end_with_the_iteration():
    before = set(threading.enumerate())
    batches = iter(loader(Squares(9), kind="thread", workers=3))
    next(batches)
    workers = set(threading.enumerate()) - before
    assert len(workers) == 3 and all("DataLoader" in worker.name for worker in workers)
    del batches
    for worker in workers:
        worker.join(timeout=30)
        assert not worker.is_alive()


def test_threads_work_at_the_same_time():
    """Each of three samples waits for two others to be fetched."""
    barrier = threading.Barrier(3, timeout=30)

    class Meeting(Squares):
        def __getitem__(self, index):
            barrier.wait()
            return index

    assert lists(loader(Meeting(6), kind="thread", workers=3)) == [[i] for i in range(6)]


def test_processes_end_with_the_iteration():
    for leave_early in (True, False):
        batches = iter(loader(Squares(9)))
        processes = batches._workers
        next(batches)
        if not leave_early:
            list(batches)
        del batches
        assert [process.exitcode for process in processes] == [0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_persistent_workers_stay(kind):
    class Named(Squares):
        def __getitem__(self, index):
            return f"{os.getpid()} {threading.get_ident()}"

    batches = loader(Named(6), None, kind=kind, persistent_workers=True)
    first, second = list(batches), list(batches)
    assert set(first) == set(second) and len(set(first)) == 2
    assert set(loader(Named(6), None, kind="fork")).isdisjoint(first)


def test_convolutions_run_in_forked_workers(threads):
    threads(2)
    here = convcore.get_num_threads()  # 1 in a build without OpenMP
    image, weight = convcore.ones(1, 4, 40, 40), convcore.ones(4, 4, 3, 3)
    expected = convcore.nn.functional.conv2d(image, weight)  # OpenMP's threads are there

    class Convolved(Squares):
        def __getitem__(self, index):
            return convcore.nn.functional.conv2d(image, weight), convcore.get_num_threads()

    for out, n_threads in loader(Convolved(4), timeout=60):
        assert convcore.equal(out[0], expected) and n_threads.item() == 1
    assert convcore.get_num_threads() == here


def test_loaders_in_each_other():
    outer, inner = loader(Squares(3)), loader(Squares(2))
    assert [[a.item(), *lists(inner)] for a in outer] == [[i * i, [0], [1]] for i in range(3)]


def test_training_on_batches_of_workers_learns():
    convcore.manual_seed(0)
    x = convcore.randn(64, 3)
    y = (x * convcore.tensor([1.0, -2.0, 0.5])).sum(1, keepdim=True)
    net = convcore.nn.Linear(3, 1)
    sgd = convcore.optim.SGD(net.parameters(), lr=0.3)
    for _ in range(10):
        for a, b in loader(TensorDataset(x, y), 16, shuffle=True, kind="thread"):
            loss = convcore.nn.functional.mse_loss(net(a), b)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    assert loss.item() < 1e-2


# The main process ends

PROGRAM = """
import os, signal, sys, time
from convcore.utils import data

# What a shell starts in the background begins with interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Slow(data.Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, index):
        time.sleep(0.01)
        return index

def say_and_wait():
    print(os.getpid(), flush=True)
    time.sleep(2)

if __name__ == "__main__":
    if sys.argv[2] == "begin":
        os.register_at_fork(after_in_child=say_and_wait)
    options = {"num_workers": 2, "multiprocessing_context": sys.argv[1]}
    loader = data.DataLoader(Slow(), persistent_workers=True, **options)
    batches = iter(loader)
    next(batches)
    print(*[worker.pid for worker in batches._workers], flush=True)
    if sys.argv[2] == "wait":
        time.sleep(60)
"""


def gone(pid):
    """Whether a process, not a child of this one, ends within ten seconds."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def start(tmp_path, *arguments):
    """Start the program; return it and the workers' numbers."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, "-W", "ignore", str(path), *arguments]
    paths = [os.path.dirname(os.path.dirname(convcore.__file__)), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    program = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return program, [int(pid) for pid in program.stdout.readline().split()]


@pytest.mark.subprocess
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks into /proc")
@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver"])
def test_workers_end_with_a_killed_main_process(tmp_path, kind):
    program, workers = start(tmp_path, kind, "wait")
    program.kill()
    program.communicate(timeout=60)
    assert len(workers) == 2 and all(map(gone, workers))


@pytest.mark.subprocess
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks into /proc")
def test_a_worker_ends_whose_main_process_is_killed_before_it_begins(tmp_path):
    program, workers = start(tmp_path, "fork", "begin")
    program.kill()
    program.communicate(timeout=20)  # what the worker has open ends with it
    assert len(workers) == 1 and gone(workers[0])


@pytest.mark.subprocess
def test_nothing_hangs_when_the_interpreter_exits(tmp_path):
    program, workers = start(tmp_path, "fork", "exit")
    assert program.communicate(timeout=30)[1] == "" and program.returncode == 0
    assert all(map(gone, workers))


@pytest.mark.subprocess
def test_interrupt_ends_all(tmp_path):
    program, workers = start(tmp_path, "fork", "wait")
    os.killpg(program.pid, signal.SIGINT)
    error = program.communicate(timeout=30)[1]
    assert error.count("Traceback") == 1 and error.rstrip().endswith("KeyboardInterrupt")
    assert all(map(gone, workers))


# Errors


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_workers": 1, "multiprocessing_context": "bad"}, ValueError),
        ({"num_workers": 1, "multiprocessing_context": object()}, TypeError),
        ({"num_workers": 0, "multiprocessing_context": "fork"}, ValueError),
    ],
)
def test_context_is_one_of_multiprocessings(torch, options, error):
    texts = []
    for library in (convcore, torch):
        with pytest.raises(error) as raised:
            library.utils.data.DataLoader(range(3), **options)
        texts.append(str(raised.value).replace(", 'thread'", "").partition(" at 0x")[0])
    assert texts[0] == texts[1]


@pytest.mark.filterwarnings("error:This DataLoader will create")
def test_more_processes_than_cpus_warn():
    with pytest.warns(UserWarning, match="This DataLoader will create 1000 worker processes"):
        DataLoader(range(3), num_workers=1000)
    DataLoader(range(3), num_workers=1000, multiprocessing_context="thread")


def test_dataset_that_cannot_be_pickled_warns_how_to_start_workers():
    with (
        pytest.warns(UserWarning, match="Got pickle error when attempting to start a worker"),
        pytest.raises((AttributeError, TypeError)),
    ):
        iter(loader([lambda: 0], kind="spawn"))
