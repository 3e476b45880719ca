"""Messages between two processes arrive as they were sent, or say what does not fit."""

import mpi
import pytest

import convcore
from convcore import distributed as dist

MESSAGES = """
    import convcore as torch, convcore.distributed as dist

    dist.init_process_group("mpi", timeout=30)
    me, n = dist.get_rank(), dist.get_world_size()
    after, before = (me + 1) % n, (me - 1) % n
    for dtype in (torch.float32, torch.int64, torch.bool, torch.float16):
        # Round the ring, each into a tensor of another shape.
        x, got = (torch.arange(6) % (me + 2)).to(dtype).reshape(2, 3).T, torch.ones(6, dtype=dtype)
        version = got._version
        works = [dist.isend(x, after), dist.irecv(got, before)]
        x.zero_()  # what was sent is a copy
        assert all(work.wait() for work in works) and got._version > version
        wanted = (torch.arange(6) % (before + 2)).to(dtype).reshape(2, 3).T.flatten()
        assert torch.equal(got, wanted)
    if me == 0:
        # By tags, in another order than they were sent in; then from anybody.
        x, y = torch.zeros(1), torch.zeros(1)
        assert dist.recv(y, 1, tag=2) == 1 and dist.recv(x, 1, tag=1) == 1
        assert (x.item(), y.item()) == (10, 20)
        found = {dist.recv(x): x.item() for _ in range(n - 1)}
        assert found == {rank: float(rank) for rank in range(1, n)}, found
    else:
        if me == 1:
            dist.send(torch.full((1,), 10.0), 0, tag=1)
            dist.send(torch.full((1,), 20.0), 0, tag=2)
        dist.send(torch.full((1,), float(me)), 0)
    dist.barrier()  # or a message of what follows might be the one from anybody
    # Another size than the message's leaves the tensor as it is.
    for size in (1, 3):
        if me == 1:
            dist.send(torch.ones(2), 0)
        if me == 0:
            x = torch.zeros(size)
            work = dist.irecv(x, 1)
            for wait in (work.wait, work.get_future().wait, work.wait):
                try:
                    wait()
                except ValueError as error:
                    assert f"tensor has {4 * size} bytes, but the message has" in str(error)
                    assert not x.any()
                else:
                    raise AssertionError(size)
        dist.barrier()
    try:
        dist.send(torch.ones(1), me)
    except ValueError as error:
        assert f"dst must be another process than this one, rank {me}" in str(error)
    else:
        raise AssertionError("sent to itself")
    # Places in a group are not ranks among all.
    group = dist.new_group([0, n - 1])
    if me == n - 1:
        dist.send(torch.ones(1) * 5, group=group, group_dst=0)
    if me == 0:
        assert dist.recv(x := torch.zeros(1), group=group) == n - 1 and x.item() == 5
    print(me, "of", n)
    dist.destroy_process_group()
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_arrive(ranks, tmp_path):
    expected = [f"{rank} of {ranks}" for rank in range(ranks)]
    assert mpi.run_in_shared(MESSAGES, ranks, tmp_path) == expected


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda x: dist.send(x, 0), ValueError, "dst must be another process"),
        (lambda x: dist.send(x), ValueError, "dst or group_dst must be given"),
        (lambda x: dist.isend(x, 1), ValueError, "dst must be a rank of the group"),
        (lambda x: dist.recv(x), ValueError, "src must be another process"),
        (lambda x: dist.irecv(x, 0), ValueError, "src must be another process"),
        (lambda x: dist.recv(x, 0, tag=-1), ValueError, "tag must be from 0 to 32767"),
        (lambda x: dist.recv(x, 0, tag="a"), TypeError, "tag must be an int, but got str"),
        (lambda x: dist.recv([1], 0), TypeError, "tensor must be a Tensor"),
    ],
)
def test_wrong_arguments_are_named(alone, wrong, error, says):
    x = convcore.ones(2)
    with pytest.raises(error, match=says):
        wrong(x)
    assert x.tolist() == [1, 1]
