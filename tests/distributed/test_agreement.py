"""Ranks that do not do the same get an error that says what each does, not wrong numbers."""

import re

import mpi
import pytest

pytestmark = pytest.mark.subprocess

# What the first rank does and what the others do, and what each is said to have begun. Each in
# groups of its own, for a group in which ranks disagreed is of no more use.
DISAGREEMENTS = """
    import sys, time, numpy as np, convcore as torch, convcore.distributed as dist
    from convcore import nn
    from convcore.nn.parallel import DistributedDataParallel as DDP

    dist.init_process_group("mpi", timeout=20)
    me, n = dist.get_rank(), dist.get_world_size()
    ones, op = torch.ones, dist.ReduceOp

    def skipped(group):  # one rank skips a batch's backward pass, as for a loss that is NaN
        net = DDP(nn.Linear(2, 2), process_group=group)
        loss = net(ones(3, 2)).sum()
        if me:
            loss.backward()
        else:
            net(ones(3, 2))

    def in_shards(shards, count):
        def step(group):
            net = DDP(nn.Linear(2, 2), process_group=group, shards=shards)
            net.backward(lambda x: net(x).sum(), ones(count, 2))
        return step

    def begun(group):
        work = dist.all_reduce(ones(5 + me), group=group, async_op=True)
        dist.barrier(group)
        work.wait()

    cases = [
        (lambda g: dist.all_reduce(ones(4), group=g), lambda g: dist.all_reduce(ones(3), group=g),
         "all_reduce of 4 x float32, SUM", "all_reduce of 3 x float32, SUM"),
        (lambda g: dist.all_reduce(ones(4), group=g),
         lambda g: dist.all_reduce(ones(4).double(), group=g),
         "all_reduce of 4 x float32, SUM", "all_reduce of 4 x float64, SUM"),
        (lambda g: dist.all_reduce(ones(4), op.AVG, g), lambda g: dist.all_reduce(ones(4), group=g),
         "all_reduce of 4 x float32, AVG", "all_reduce of 4 x float32, SUM"),
        (lambda g: dist.barrier(g), lambda g: dist.broadcast(ones(10**6), 0, g),
         "barrier", "broadcast of 1000000 x float32 from rank 0"),
        (lambda g: dist.broadcast(ones(2), 0, g), lambda g: dist.broadcast(ones(2), 1, g),
         "broadcast of 2 x float32 from rank 0", "broadcast of 2 x float32 from rank 1"),
        (lambda g: dist.broadcast_object_list([1], 0, g),
         lambda g: dist.all_gather_object([1] * n, 1, g),
         "broadcast_object_list from rank 0", "all_gather_object"),
        (begun, begun, "all_reduce of 5 x float32, SUM", "all_reduce of 6 x float32, SUM"),
        (skipped, skipped, "a pass of DistributedDataParallel", "the gradients of 2 parameters"),
        (in_shards(4, 8), in_shards(4, 9),
         "a step of 8 samples in 4 shards", "a step of 9 samples in 4 shards"),
        (lambda g: DDP(nn.Linear(2, 2), process_group=g), lambda g: dist.barrier(g),
         "all_gather_object", "barrier"),
    ]
    start = time.monotonic()
    for first, others, says, other_says in cases:
        group = dist.new_group()
        try:
            (others if me else first)(group)
        except dist.DistBackendError as error:
            assert str(error).startswith("ranks call different collectives at step "), error
            assert f": rank 0 began {says}; rank 1 began {other_says}" in str(error), error
        else:
            raise AssertionError(says)
    try:
        dist.new_group([0] if me else [0, 1])
    except dist.DistBackendError as error:
        assert "rank 0 began new_group of [0, 1]; rank 1 began new_group of [0]" in str(error)
    assert time.monotonic() - start < 10
    print(me, "done", flush=True)
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_do_not_do_the_same_are_told_apart(ranks, tmp_path):
    assert mpi.run(DISAGREEMENTS, ranks, tmp_path) == [f"{rank} done" for rank in range(ranks)]


GROUPS = """
    import gc, warnings, weakref, convcore as torch, convcore.distributed as dist

    dist.init_process_group("mpi", timeout=20)
    me, n = dist.get_rank(), dist.get_world_size()

    # What is begun and forgotten keeps the memory that MPI writes to until it has.
    if me == 1:
        dist.recv(torch.ones(1), 0)
    works = [weakref.ref(dist.all_reduce(torch.ones(10**6), async_op=True))]
    gc.collect()
    assert works[0]() is not None
    if me == 0:
        dist.send(torch.ones(1), 1)
    for _ in range(50):
        dist.barrier()
    gc.collect()
    assert works[0]() is None

    # Who is no member does nothing, and is told.
    group = dist.new_group([1])
    y = torch.ones(1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        dist.all_reduce(y, group=group)
    assert [str(one.message) for one in seen] == [] if me == 1 else [
        f"Running all_reduce on global rank {me} which does not belong to the given group."]
    assert dist.get_rank(group) == (0 if me == 1 else -1)
    assert dist.get_world_size(group) == (1 if me == 1 else -1)
    assert (group is dist.GroupMember.NON_GROUP_MEMBER) == (me != 1)

    # Groups are given back: MPI has some 2,000 communicators.
    for _ in range(750):
        dist.destroy_process_group(dist.new_group([0, 1]))
    everybody = dist.new_group()
    dist.destroy_process_group(everybody)
    for call in (dist.barrier, dist.get_rank, dist.destroy_process_group):
        try:
            call(everybody)
        except ValueError as error:
            assert "was destroyed" in str(error), error
        else:
            raise AssertionError(call)
    for _ in range(550):
        dist.destroy_process_group()
        dist.init_process_group("mpi", timeout=20)
    dist.all_reduce(y)
    assert y.item() == n
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    dist.destroy_process_group()
    try:
        net(y)
    except ValueError as error:
        assert "was destroyed" in str(error)
    print(me, "done")
"""


def test_groups_end_and_begin_again(tmp_path):
    assert mpi.run(GROUPS, 2, tmp_path) == ["0 done", "1 done"]


LATE = """
    import sys, time, convcore.distributed as dist, mpi4py.MPI as MPI
    if MPI.COMM_WORLD.rank:
        time.sleep(6)
        sys.exit()
    dist.init_process_group(timeout=1)
"""


def test_init_waits_no_longer_than_the_limit(tmp_path):
    process = mpi.start(LATE, 2, tmp_path)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    assert re.search("waited for more than 1 s: init_process_group at step 0", errors), errors
