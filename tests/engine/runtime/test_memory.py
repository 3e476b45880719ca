"""The pool of memory: who owns a block, what is kept, how much, and what is given back."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

import convcore
from convcore import engine
from convcore.engine.runtime import layout, memory

MIB = 1 << 20
FLOAT = np.dtype("float32")
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts faults as Linux")
FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
CUTS = pytest.mark.skipif(sys.platform == "win32", reason="memory is not cut there")


@pytest.fixture(autouse=True)
def fresh_pool(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing idle, and nothing remembered of what other tests used."""
    if request.config.getoption("--exact-scratch"):
        pytest.skip("there is no pool")
    gc.collect()
    limit = convcore.get_cache_limit()
    convcore.empty_cache()
    convcore.reset_peak_memory_stats()
    yield
    convcore.set_cache_limit(limit)
    convcore.empty_cache()


def array(n_bytes: int) -> np.ndarray:
    return memory.empty((n_bytes // 4,), FLOAT)


def address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


class Change:
    """What memory_stats says more, or less, than when this was made."""

    def __init__(self) -> None:
        self.before = convcore.memory_stats()

    def __getitem__(self, name: str) -> int:
        return convcore.memory_stats()[name] - self.before[name]

    @property
    def idle(self) -> int:
        return self["reserved_bytes.current"] - self["allocated_bytes.current"]


# Arrays


@pytest.mark.parametrize("channels_last", [False, True])
def test_array_of_the_pool_looks_like_any_other(channels_last, rng):
    x = layout.empty((2, 16, 40, 50), FLOAT, channels_last)
    like = (
        np.empty((2, 40, 50, 16), FLOAT).transpose(0, 3, 1, 2)
        if channels_last
        else np.empty((2, 16, 40, 50), FLOAT)
    )
    assert (x.shape, x.strides, x.dtype) == (like.shape, like.strides, like.dtype)
    assert x.flags.writeable
    assert x.flags.aligned
    assert x.flags.c_contiguous is like.flags.c_contiguous
    x[...] = rng.standard_normal(x.shape)
    assert np.array_equal(pickle.loads(pickle.dumps(x)), x)
    assert np.array_equal(copy.deepcopy(x), x)
    assert np.shares_memory(x, x[1:, ::2])
    assert not np.shares_memory(x, layout.empty(x.shape, FLOAT, channels_last))
    assert memoryview(x).nbytes == x.nbytes


@pytest.mark.parametrize(
    "n_bytes", [1 << 16, (1 << 16) + 4, 4 * MIB, 4 * MIB + 4, 9 * MIB + 123 * 4]
)
def test_block_starts_on_a_cache_line_and_has_the_bytes_asked_for(n_bytes):
    x = array(n_bytes)
    assert address(x) % 64 == 0
    assert x.nbytes == len(x.base) == n_bytes
    x[...] = 1


def test_small_arrays_are_numpys_own():
    change = Change()
    x = array(memory.LEAST_BYTES - 4)
    assert x.base is None
    assert change["allocation.allocated"] == 0


@pytest.mark.parametrize("shape", [(0,), (0, 1 << 40), (), (3, 0, 5)])
def test_empty_makes_arrays_of_any_shape(shape):
    assert memory.empty(shape, FLOAT).shape == shape


@pytest.mark.parametrize("shape", [(1 << 62,), (1 << 40, 1 << 40), (-1, 5), (-300, -300)])
def test_empty_refuses_what_numpy_refuses(shape):
    with pytest.raises(ValueError) as ours:
        memory.empty(shape, FLOAT)
    with pytest.raises(ValueError) as theirs:
        np.empty(shape, FLOAT)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("n_bytes", [0, -1, sys.maxsize])
def test_block_refuses_sizes_that_are_none(n_bytes):
    with pytest.raises(ValueError, match=f"{n_bytes} bytes"):
        memory.Block(n_bytes)


def test_block_too_large_for_the_machine_is_a_memory_error_and_is_not_counted():
    kept = array(MIB)
    del kept
    change = Change()
    with pytest.raises(MemoryError, match="bytes"):
        memory.Block(1 << 60)
    assert change["allocated_bytes.current"] == change["allocated_bytes.peak"] == 0
    assert change["allocation.current"] == 0
    assert array(MIB).nbytes == MIB


# Who owns a block


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[3:5],
        lambda x: x.reshape(2, -1).T[1:].view(np.int32),
        lambda x: memoryview(x),
        lambda x: np.frombuffer(x, np.uint8),
        lambda x: np.lib.stride_tricks.as_strided(x, (4,), (8,)),
        lambda x: np.from_dlpack(x),
        lambda x: convcore.from_numpy(x).view(-1)[2:],
    ],
)
def test_memory_is_not_reused_before_the_last_view_has_died(view):
    x = array(MIB)
    x[...] = 7
    start, seen = address(x), view(x)
    before = bytes(
        memoryview(np.asarray(seen)).cast("B")
        if isinstance(seen, memoryview)
        else np.asarray(seen).tobytes()
    )
    del x
    gc.collect()
    others = [array(MIB) for _ in range(4)]
    for other in others:
        other[...] = -1
    assert start not in map(address, others)
    assert np.asarray(seen).tobytes() == before
    del seen, others, other
    gc.collect()
    assert start in [address(x) for x in [array(MIB) for _ in range(5)]]


def test_output_outlives_its_tensor():
    x, w = convcore.ones(1, 16, 64, 64), convcore.ones(16, 16, 1, 1)
    y = convcore.nn.functional.conv2d(x, w)
    row = y.numpy()[0, 0, 0]
    del y
    gc.collect()
    for _ in range(3):
        convcore.nn.functional.conv2d(x, -w)
    assert (row == 16).all()


def test_results_are_the_same_in_memory_that_was_used(rng):
    x = rng.standard_normal((2, 16, 60, 60)).astype(FLOAT)
    w = rng.standard_normal((24, 16, 3, 3)).astype(FLOAT)

    def maps():
        y = engine.conv_forward(x, w, padding=1)
        gx = engine.conv_input_grad(y, w, (60, 60), padding=1)
        return y, gx, engine.conv_weight_grad(x, y, (3, 3), padding=1)

    first = [part.copy() for part in maps()]
    for _ in range(3):
        spoilt = [memory.take(0), *(memory.empty(part.shape, FLOAT) for part in first)]
        for block in spoilt:
            np.frombuffer(block, np.uint8)[...] = 0xFF  # NaN, whatever the dtype
        memory.give(spoilt[0])
        del spoilt, block
        for part, expected in zip(maps(), first, strict=True):
            assert np.array_equal(part, expected)


# What is reused


def test_like_steps_take_nothing_more_from_the_system():
    sizes = [3 * MIB, MIB, 100_000, 7 * MIB, MIB, 65_536]

    def step():
        return [array(n_bytes) for n_bytes in sizes]

    step()
    change = Change()
    for _ in range(20):
        step()
    assert change["segment.allocated"] == 0
    assert change["allocation.allocated"] == 20 * len(sizes)


@CUTS
def test_chain_of_falling_and_rising_sizes_lives_in_the_memory_of_its_largest_pair():
    """As the activations of a net do without a graph, where only two are there at once."""

    def chain():
        x = array(8 * MIB)
        for n_bytes in (8 * MIB, 4 * MIB, 4 * MIB, MIB, 300_000, 2 * MIB, 5 * MIB, 70_000):
            y = array(n_bytes)
            y[::1024] = 1
            x = y  # noqa: F841

    held = convcore.memory_stats()["reserved_bytes.current"]  # by what other tests left
    chain()
    change = Change()
    for _ in range(10):
        chain()
    assert change["segment.allocated"] == 0
    assert convcore.memory_stats()["reserved_bytes.peak"] - held <= 16 * MIB + (1 << 16)


@CUTS
def test_cut_memory_is_joined_again():
    whole = array(8 * MIB)
    start = address(whole)
    del whole
    change = Change()
    parts = [array(MIB) for _ in range(8)]
    assert sorted(map(address, parts)) == [start + i * MIB for i in range(8)]
    del parts[3], parts[1], parts[1], parts[0]
    parts.clear()
    assert address(array(8 * MIB)) == start
    assert change["segment.allocated"] == 0


@CUTS
def test_parts_of_a_mapping_go_back_to_the_system_one_by_one():
    whole = array(8 * MIB)
    del whole
    parts = [array(MIB) for _ in range(8)]
    for i, part in enumerate(parts):
        part[...] = i
    change = Change()
    del parts[2:5], part
    convcore.empty_cache()
    assert change["reserved_bytes.current"] == -3 * MIB
    assert [x[0] for x in parts] == [0, 1, 5, 6, 7]
    assert all((x == x[0]).all() for x in parts)
    parts.clear()
    convcore.empty_cache()
    assert change["reserved_bytes.current"] == -8 * MIB


@LINUX
@pytest.mark.subprocess
def test_results_fault_in_no_fresh_pages_from_the_second_step_on(run_child):
    out = run_child("""if True:
    import resource
    import numpy as np
    from convcore import engine

    engine.set_num_threads(2)  # of many, some would touch their scratch in a later step only
    x, w = np.ones((2, 16, 224, 224), "f4"), np.ones((64, 16, 3, 3), "f4")
    faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    def step():  # held together and then dropped: what malloc gives back to the system
        results = [engine.conv_forward(x, w, padding=1) for _ in range(3)]
        return sum(y.nbytes for y in results)
    step()
    before = faults()
    n_bytes = step() + step()
    print(faults() - before, n_bytes // resource.getpagesize())
    """)
    faults, pages = map(int, out.split())
    assert pages > 10_000
    assert faults < pages / 500  # huge pages alone would make it pages / 512, and cost the same


def huge_pages() -> bool:
    """Return whether the system gives huge pages to who asks for them."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
            return "[never]" not in file.read()
    except OSError:
        return False


@pytest.mark.skipif(not huge_pages(), reason="this system gives no huge pages")
@pytest.mark.subprocess
def test_first_use_of_small_blocks_faults_in_huge_pages(run_child):
    out = run_child("""if True:
    import resource
    import numpy as np
    from convcore.engine.runtime import memory

    def faults_of(number):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(number):
            held.append(memory.empty((100_000,), np.dtype("float32")))
            held[-1].fill(1)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    held = []
    faults_of(3)
    print(faults_of(100), sum(x.nbytes for x in held) // resource.getpagesize())
    held.clear()
    """)
    faults, pages = map(int, out.split())
    assert faults < pages / 10


# Bounds


def test_reserved_memory_never_exceeds_the_most_that_was_used(rng):
    held: list[np.ndarray] = []
    change, most = Change(), 0
    for _ in range(3000):
        if held and rng.random() < 0.5:
            held.pop(rng.integers(len(held)))
        else:
            held.append(array(int(2 ** rng.uniform(16, 22)) // 4 * 4))
            held[-1][0] = 1
        most = max(most, change["allocated_bytes.current"])
        assert change.idle >= 0
        assert change["reserved_bytes.current"] <= most
    assert change["allocated_bytes.current"] <= 1.125 * sum(x.nbytes + 4096 for x in held)
    spans = sorted((address(x), x.nbytes) for x in held)
    assert all(a + n <= b for (a, n), (b, _) in pairwise(spans))


def test_longest_idle_memory_goes_first():
    first, second, third = array(MIB), array(2 * MIB), array(4 * MIB)
    starts = [address(x) for x in (first, second, third)]
    convcore.set_cache_limit(6 * MIB)
    del first, second, third
    assert [address(array(n * MIB)) == start for n, start in zip((2, 4), starts[1:], strict=True)]
    change = Change()
    array(MIB)  # its memory is gone
    assert change["segment.allocated"] == 1


def test_cache_limit_bounds_what_is_kept_and_frees_at_once():
    change = Change()
    several = [array(MIB) for _ in range(8)]
    convcore.set_cache_limit(5 * MIB)
    del several
    assert change.idle == 5 * MIB
    convcore.set_cache_limit(2 * MIB)
    assert change.idle == 2 * MIB
    large = array(3 * MIB)
    del large
    assert change.idle <= 2 * MIB
    convcore.set_cache_limit(0)
    assert change.idle == 0


def test_block_above_the_limit_pushes_nothing_out():
    convcore.set_cache_limit(4 * MIB)
    change = Change()
    small, large = array(MIB), array(5 * MIB)
    del small
    del large
    assert change.idle == MIB


@pytest.mark.parametrize("wrong", [True, 1.5, "1", None])
def test_cache_limit_must_be_an_int(wrong):
    with pytest.raises(TypeError, match="n_bytes must be an int"):
        convcore.set_cache_limit(wrong)


def test_cache_limit_must_not_be_negative():
    with pytest.raises(ValueError, match="n_bytes must not be negative, got -1"):
        convcore.set_cache_limit(-1)


def test_cache_limit_may_be_larger_than_any_machine():
    convcore.set_cache_limit(1 << 100)
    assert convcore.get_cache_limit() >= 1 << 60


def test_empty_cache_releases_all_that_is_idle_and_nothing_else():
    held = array(2 * MIB)
    held[...] = 3
    block = memory.take(MIB)
    memory.give(block)
    del block
    others = [array(MIB) for _ in range(5)]
    del others
    convcore.empty_cache()
    stats = convcore.memory_stats()
    assert stats["reserved_bytes.current"] == stats["allocated_bytes.current"]
    assert (held == 3).all()


@LINUX
@pytest.mark.subprocess
def test_empty_cache_gives_pages_back_to_the_system(run_child):
    out = run_child("""if True:
    import resource
    import numpy as np
    import convcore
    from convcore.engine.runtime import memory

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    arrays = [memory.empty((4 << 20,), np.dtype("float32")) for _ in range(10)]
    for x in arrays:
        x[...] = 1
    del x
    full = resident()
    arrays.clear()
    kept = resident()
    convcore.empty_cache()
    print(full - kept, kept - resident())
    """)
    when_dropped, when_emptied = map(int, out.split())
    assert when_dropped < 10 * MIB
    assert when_emptied > 150 * MIB


# Scratch


def test_scratch_is_one_block_whatever_the_sizes():
    start = address(np.frombuffer(hold := memory.take(3 * MIB), np.uint8))
    memory.give(hold)
    del hold
    for n_bytes in (0, 100, MIB, 3 * MIB, 2 * MIB):
        block = memory.take(n_bytes)
        assert len(block) >= n_bytes
        assert address(np.frombuffer(block, np.uint8)) == start
        memory.give(block)


def test_scratch_kept_is_bounded():
    blocks = [memory.take(MIB) for _ in range(2 * memory.MOST_SCRATCH)]
    blocks.append(memory.take(memory.MOST_SCRATCH_BYTES + 1))
    for block in reversed(blocks):
        memory.give(block)
    del blocks, block
    assert (
        Change().before["allocated_bytes.current"]
        <= memory.MOST_SCRATCH * memory.MOST_SCRATCH_BYTES
    )
    again = [memory.take(0) for _ in range(memory.MOST_SCRATCH + 1)]
    assert sorted(map(len, again)) == [memory.LEAST_BYTES] + [MIB] * memory.MOST_SCRATCH


# Statistics


def test_stats_count_bytes_and_blocks():
    change = Change()
    x = array(MIB)
    y = array(2 * MIB)
    assert change["allocated_bytes.current"] == change["reserved_bytes.current"] == 3 * MIB
    assert change["allocation.current"] == 2
    assert change["allocation.allocated"] == change["segment.allocated"] == 2
    del x
    assert change["allocated_bytes.current"] == 2 * MIB
    assert change["reserved_bytes.current"] == 3 * MIB
    assert change["allocation.current"] == 1
    del y
    assert change["allocated_bytes.peak"] == change["reserved_bytes.peak"] == 3 * MIB
    assert change["allocation.allocated"] == 2


def test_peaks_begin_anew():
    x = array(4 * MIB)
    del x
    y = array(MIB)
    convcore.reset_peak_memory_stats()
    stats = convcore.memory_stats()
    assert stats["allocated_bytes.peak"] == stats["allocated_bytes.current"]
    assert stats["reserved_bytes.peak"] == stats["reserved_bytes.current"]
    assert y.nbytes == MIB


def test_every_statistic_is_documented():
    text = memory.memory_stats.__doc__
    names = convcore.memory_stats()
    assert all(f"``{name}``" in text or name.endswith(".peak") for name in names)
    assert all(isinstance(value, int) for value in names.values())


# Threads, forks, the end


def test_threads_share_the_pool_and_never_a_block(seed):
    failed = []

    def work(number: int) -> None:
        rng = np.random.default_rng((seed, number))
        held: list[np.ndarray] = []
        for i in range(400):
            if i % 50 == 49:
                convcore.empty_cache()
            x = array(int(2 ** rng.uniform(16, 19)) // 4 * 4)
            x[...] = number
            held.append(x)
            if len(held) > 6:
                x = held.pop(rng.integers(len(held)))
                if not (x == number).all():
                    failed.append(number)

    change = Change()
    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    gc.collect()
    assert not failed
    assert change["allocation.current"] == change["allocated_bytes.current"] == 0
    assert change["allocation.allocated"] == 8 * 400


def test_block_may_die_in_the_garbage_collector():
    class Ring:
        def __init__(self) -> None:
            self.ring, self.x = self, array(MIB)

    change = Change()
    for _ in range(20):
        Ring()
    gc.collect()
    assert change["allocation.current"] == 0


@FORK
@pytest.mark.subprocess
def test_forked_child_has_its_own_copy_of_every_block(run_child):
    out = run_child("""if True:
    import os, warnings
    import numpy as np
    import convcore
    from convcore.engine.runtime import memory

    warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
    float32 = np.dtype("float32")
    held = memory.empty((1 << 18,), float32)
    held[...] = 1
    idle = memory.empty((1 << 20,), float32)
    del idle
    child = os.fork()
    if child == 0:
        assert (held == 1).all()
        held[...] = 2
        before = convcore.memory_stats()["segment.allocated"]
        new = memory.empty((1 << 20,), float32)
        new[...] = 2
        assert convcore.memory_stats()["segment.allocated"] == before
        del held, new
        convcore.empty_cache()
        assert convcore.memory_stats()["reserved_bytes.current"] == 0
        os._exit(0)
    _, status = os.waitpid(child, 0)
    new = memory.empty((1 << 20,), float32)
    new[...] = 3
    print(status, (held == 1).all(), convcore.memory_stats()["segment.allocated"])
    """)
    assert out.split() == ["0", "True", "2"]


@pytest.mark.subprocess
def test_blocks_may_die_while_the_interpreter_ends(run_child):
    out = run_child("""if True:
    import sys
    import numpy as np
    from convcore.engine.runtime import memory

    class Last:
        def __del__(self):
            self.x = memory.empty((1 << 20,), np.dtype("float32"))
    x = memory.empty((1 << 20,), np.dtype("float32"))
    sys.kept = [x, Last()]
    sys.kept.append(sys.kept)
    print("done")
    """)
    assert out == "done\n"


def test_gradient_of_a_linear_layers_weight_is_made_once(rng):
    """As large as the weight, and no copy stands beside it, in another order or of a view."""
    layer = convcore.nn.Linear(512, 1024)
    x = convcore.from_numpy(rng.standard_normal((8, 512)).astype("f4"))
    layer(x).sum().backward()
    layer.zero_grad()
    y = layer(x)
    convcore.empty_cache()
    convcore.reset_peak_memory_stats()
    before = convcore.memory_stats()["allocated_bytes.current"]
    y.sum().backward()
    size = layer.weight.numel() * layer.weight.element_size()
    added = convcore.memory_stats()["allocated_bytes.peak"] - before
    assert size <= added < 1.5 * size
    assert layer.weight.grad.is_contiguous()
    assert not layer.weight.grad._is_view()
