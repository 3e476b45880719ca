"""SyncBatchNorm in several processes against BatchNorm2d of one with the whole batch."""

import mpi
import pytest

pytestmark = pytest.mark.subprocess

NORMS = """
    import copy, numpy as np, convcore as torch, convcore.distributed as dist
    from convcore import nn
    from convcore.nn.parallel import DistributedDataParallel as DDP

    dist.init_process_group("mpi", timeout=30)
    me, n = dist.get_rank(), dist.get_world_size()
    F = nn.functional

    def close(ours, theirs, what):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, what
        tolerance = 1e-10 if ours.dtype == torch.float64 else 2e-5
        ours, theirs = ours.detach(), theirs.detach()
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance, err_msg=what)

    def parts(sizes):
        ends = np.cumsum(sizes)
        return slice(ends[me] - sizes[me], ends[me])

    # The layer alone, where losses are added: also in float64, twice differentiated, of a part
    # without images, a cumulative average, without weights.
    for dtype, sizes, options in (
        (torch.float32, [3] * n, {}),
        (torch.float64, [*range(2, 2 + n)], {"momentum": None}),
        (torch.float64, [0, *[3] * (n - 1)], {"affine": False}),
    ):
        torch.manual_seed(4)
        x = (torch.randn(sum(sizes), 3, 4, 5) * 3 + 10).to(dtype).requires_grad_()
        target = torch.randn(sum(sizes), 3, 4, 5).to(dtype)
        plain = nn.BatchNorm2d(3, dtype=dtype, **options)
        if plain.affine:
            with torch.no_grad():
                plain.weight.uniform_()
                plain.bias.uniform_()
        layer = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain))
        assert type(layer) is nn.SyncBatchNorm
        own = parts(sizes)
        mine = x.detach()[own].requires_grad_()
        for step in range(2):
            whole, part = plain(x), layer(mine)
            close(part, whole[own], "output")
            gx, = torch.autograd.grad((whole * target).square().sum(), x, create_graph=True)
            g, = torch.autograd.grad((part * target[own]).square().sum(), mine, create_graph=True)
            close(g, gx[own], "gradient")
            ggx, = torch.autograd.grad(gx.square().sum(), x)
            gg, = torch.autograd.grad(g.square().sum(), mine)
            close(gg / 1e3, ggx[own] / 1e3, "gradient of the gradient")
        for (name, ours), theirs in zip(layer.named_buffers(), plain.buffers()):
            close(ours, theirs, name)
        assert not torch.equal(layer.running_mean, torch.zeros(3, dtype=dtype))
        layer.eval(), plain.eval()
        close(layer(x), plain(x), "evaluation")

    # Under the wrapper, weighed by sizes: one step is that of the joined batch.
    sizes = [*range(3, 3 + n)]
    torch.manual_seed(6)
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 3, 3),
                        nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3 * 9, 5))
    ddp = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(net)))
    x, y = torch.randn(sum(sizes), 2, 7, 7), torch.arange(sum(sizes)) % 5
    own = parts(sizes)
    for step in range(2):
        net.zero_grad()
        ddp.zero_grad()
        F.cross_entropy(net(x), y).backward()
        F.cross_entropy(ddp(x[own]), y[own]).backward()
        for (name, p), q in zip(net.named_parameters(), ddp.module.parameters()):
            close(q.grad, p.grad, name)

    # bfloat16 and float16 keep their dtype; one value a channel in a process is enough.
    half = nn.SyncBatchNorm(2)
    assert half(torch.randn(4, 2).half()).dtype == torch.float16
    assert half(torch.randn(1, 2)).shape == (1, 2)

    # In shards, each as if alone.
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    x, results = torch.randn(16, 3), []
    for convert in (nn.SyncBatchNorm.convert_sync_batchnorm, lambda net: net):
        ddp = DDP(convert(copy.deepcopy(net)), shards=4)
        ddp.backward(lambda x: ddp(x).square().mean(), x)
        results.append([p.grad.tolist() for p in ddp.parameters()])
    assert results[0] == results[1]

    for wrong, says in ((torch.randn(4), "at least 2D"), (torch.randn(4, 5), "2 channels in axis")):
        try:
            half(wrong)
        except ValueError as error:
            assert says in str(error), error
        else:
            raise AssertionError(says)
    group = dist.new_group([0])
    if me == 0:
        try:
            nn.SyncBatchNorm(2, process_group=group)(torch.randn(1, 2))
        except ValueError as error:
            assert "more than 1 value" in str(error)
    print(me)
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_statistics_are_those_of_the_joined_batch(ranks, tmp_path):
    assert mpi.run_in_shared(NORMS, ranks, tmp_path) == [str(rank) for rank in range(ranks)]
