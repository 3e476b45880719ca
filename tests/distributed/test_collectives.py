"""Collectives against what NumPy makes of the tensors of all ranks."""

import gc
import sys
import types
import weakref

import mpi
import pytest

import convcore
from convcore import distributed as dist
from convcore.distributed import ReduceOp

# What every rank can compute of every other: a tensor by rank and dtype.
COLLECTIVES = """
    import importlib.util, numpy as np, convcore as torch, convcore.distributed as dist
    from convcore.distributed import ReduceOp

    dist.init_process_group("mpi", timeout=30)
    me, n = dist.get_rank(), dist.get_world_size()

    def of(rank, dtype):
        numbers = np.random.default_rng(rank).integers(0, 5, (3, 4, 2))
        return torch.from_numpy(numbers).to(dtype)

    def array(tensor):
        return tensor.cpu().to(torch.float64).numpy() if tensor.dtype != torch.complex64 \\
            else tensor.numpy()

    dtypes = [torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.float16,
              torch.complex64]
    if importlib.util.find_spec('ml_dtypes'):
        dtypes.append(torch.bfloat16)
    for dtype in dtypes:
        all_of_them = np.stack([array(of(rank, dtype)) for rank in range(n)])
        x = of(me, dtype)
        assert dist.all_reduce(x) is None
        total = all_of_them.sum(0)
        np.testing.assert_array_equal(array(x), total > 0 if dtype == torch.bool else total)
        x = of(me, dtype)
        dist.broadcast(x, n - 1)
        np.testing.assert_array_equal(array(x), all_of_them[n - 1])
        parts = [torch.empty(3, 4, 2, dtype=dtype) for _ in range(n)]
        dist.all_gather(parts, of(me, dtype))
        np.testing.assert_array_equal([array(part) for part in parts], all_of_them)
        joined = torch.empty(3 * n, 4, 2, dtype=dtype)
        dist.all_gather_into_tensor(joined, of(me, dtype))
        np.testing.assert_array_equal(array(joined), all_of_them.reshape(3 * n, 4, 2))
        mine = torch.empty(3, 4, 2, dtype=dtype)
        dist.scatter(mine, [of(rank, dtype) for rank in range(n)] if me == 1 else None, src=1)
        np.testing.assert_array_equal(array(mine), all_of_them[me])
        parts = [torch.empty(3, 4, 2, dtype=dtype) for _ in range(n)] if me == 1 else None
        dist.gather(of(me, dtype), parts, dst=1)
        if me == 1:
            np.testing.assert_array_equal([array(part) for part in parts], all_of_them)

    floats = np.stack([of(rank, torch.float32).numpy() for rank in range(n)])
    for op, of_all in ((ReduceOp.MAX, floats.max(0)), (ReduceOp.MIN, floats.min(0)),
                       (ReduceOp.PRODUCT, floats.prod(0)), (ReduceOp.AVG, floats.mean(0))):
        x = of(me, torch.float32).to(memory_format=torch.contiguous_format).transpose(0, 1)
        version = x._version
        work = dist.all_reduce(x, op, async_op=True)
        assert work.wait() and work.is_completed() and x._version > version
        np.testing.assert_allclose(x.numpy(), of_all.transpose(1, 0, 2), rtol=1e-6)
        x = of(me, torch.float32)
        dist.reduce(x, n - 1, op)
        np.testing.assert_allclose(x.numpy(), of_all if me == n - 1 else floats[me], rtol=1e-6)

    objects = [None] * n
    dist.all_gather_object(objects, "a" * me)
    assert objects == ["a" * rank for rank in range(n)]
    told = [me, "b" * me]
    dist.broadcast_object_list(told, src=1)
    assert told == [1, "b"]

    odd = dist.new_group([1]), dist.new_group([n - 1, 0])
    assert [dist.get_rank(one) >= 0 for one in odd] == [me == 1, me in (0, n - 1)]
    if me in (0, n - 1):
        x = of(me, torch.float32)
        dist.all_reduce(x, group=odd[1])
        np.testing.assert_array_equal(x.numpy(), floats[0] + floats[n - 1])
        dist.broadcast(x, src=n - 1, group=odd[1])
    dist.barrier()
    try:
        dist.all_reduce(torch.ones(2, dtype=torch.int64), ReduceOp.AVG)
    except ValueError as error:
        assert "needs floating point" in str(error)
    assert list(torch.utils.data.DistributedSampler(range(8), shuffle=False)) == [*range(me, 8, n)]
    # Futures of several, which whoever waits moves on.
    begun = [dist.all_reduce(torch.ones(2) * i, async_op=True).get_future() for i in range(3)]
    first, whole = torch.futures.wait_all(begun[:2]), torch.futures.collect_all(begun)
    assert [one.tolist() for one, in first] == [[0, 0], [n, n]]
    assert whole.then(lambda done: len(done.value())).wait() == 3 and whole.done()
    print(me, "of", n)
    dist.destroy_process_group()
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_are_numpys(ranks, tmp_path):
    expected = [f"{rank} of {ranks}" for rank in range(ranks)]
    assert mpi.run_in_shared(COLLECTIVES, ranks, tmp_path) == expected


@pytest.mark.subprocess
def test_one_process_of_mpi_is_a_group(tmp_path):
    program = """
        import sys, convcore, convcore.distributed as dist
        dist.init()
        x = convcore.ones(2)
        dist.all_reduce(x)
        dist.barrier()
        try:
            dist.recv(x)  # from anybody, and there is nobody
        except ValueError as error:
            assert "src must be another process" in str(error)
        print(dist.rank(), dist.world_size(), x.tolist(), "mpi4py" in sys.modules)
    """
    assert mpi.run(program, 1, tmp_path) == ["0 1 [1.0, 1.0] True"]


def test_one_process_is_a_group(alone):
    x = convcore.arange(3.0)
    for op in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MAX):
        dist.all_reduce(x, op)
        dist.reduce(x, 0, op)
    dist.broadcast(x, 0)
    parts = [convcore.zeros(3)]
    dist.all_gather(parts, x)
    dist.gather(x, parts, 0)
    dist.scatter(x, parts, 0)
    dist.barrier()
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    dist.broadcast_object_list(objects, 0)
    assert x.tolist() == parts[0].tolist() == [0, 1, 2] and objects == [{"a": 1}]
    assert (dist.rank(), dist.world_size(), dist.get_backend()) == (0, 1, "mpi")
    group = dist.new_group([0])
    assert dist.get_process_group_ranks(group) == [0]
    dist.all_reduce(x, group=dist.group.WORLD)
    assert dist.group.WORLD.size() == 1 and x.tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="twice"):
        dist.init()


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda x: dist.all_reduce([1]), TypeError, "tensor must be a Tensor, but got list"),
        (lambda x: dist.all_reduce(x, "sum"), TypeError, "op must be a ReduceOp, but got str"),
        (lambda x: dist.all_reduce(x, ReduceOp.BAND), ValueError, "needs integers"),
        (lambda x: dist.broadcast(x, 1), ValueError, "src must be a rank of the group"),
        (lambda x: dist.broadcast(x, 0, group_src=0), ValueError, "cannot both"),
        (lambda x: dist.reduce(x, group_dst=1), ValueError, "group_dst must be below 1"),
        (lambda x: dist.all_gather([], x), ValueError, "must have 1 tensors"),
        (lambda x: dist.all_gather([x[:1]], x), ValueError, "must be of shape"),
        (lambda x: dist.gather(x), TypeError, "gather_list must be a list"),
        (lambda x: dist.all_gather_into_tensor(x[:1], x), ValueError, "output_tensor must have 1"),
        (lambda x: dist.all_gather_object([], x), ValueError, "must have 1 places"),
        (lambda x: dist.new_group([1]), ValueError, "must be different ones"),
        (lambda x: dist.new_group(backend="gloo"), ValueError, "backend must be 'mpi'"),
        (lambda x: dist.new_group(timeout=0), ValueError, "timeout must be above 0"),
    ],
)
def test_wrong_arguments_are_named(alone, wrong, error, says):
    x = convcore.ones(2)
    with pytest.raises(error, match=says):
        wrong(x)
    assert x.tolist() == [1, 1]


def test_a_communication_that_is_done_keeps_no_tensor(alone):
    for async_op in (False, True):
        x = convcore.ones(3)
        work, lives = dist.all_reduce(x, async_op=async_op), weakref.ref(x)
        if work is not None:
            assert [one is x for one in work.get_future().wait()] == [True]
        del x, work
        gc.collect()
        assert lives() is None


def test_without_a_group_functions_say_so():
    for call in (dist.get_rank, dist.world_size, dist.barrier, dist.destroy_process_group):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    for wrong in ({"backend": "nccl"}, {"timeout": -1}, {"world_size": 3}, {"rank": 1}):
        with pytest.raises(ValueError, match=r"must be|is \d, as the launcher says"):
            dist.init_process_group(**wrong)
        assert not dist.is_initialized()


def test_processes_that_another_launcher_started_are_refused(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"WORLD_SIZE is 2, .* started 1: .* -n 2`"):
        dist.init_process_group()
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group()
    dist.destroy_process_group()


def test_missing_mpi_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setenv("PMI_SIZE", "3")
    with pytest.raises(ImportError, match=r"3 processes were started.*convcore\[mpi\]"):
        dist.init()
    assert not dist.is_mpi_available() and dist.is_available() and not dist.is_initialized()


def test_mpi_for_one_thread_is_refused(monkeypatch):
    library = types.SimpleNamespace(
        Query_thread=lambda: 1, THREAD_SERIALIZED=2, Is_finalized=lambda: True
    )
    package = types.SimpleNamespace(MPI=library, rc=types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mpi4py", package)
    with pytest.raises(RuntimeError, match="initialized for a single thread"):
        dist.init()
