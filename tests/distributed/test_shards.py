"""Training in shards: the same bits for any number of ranks and threads, and the right ones."""

import itertools
import sys

import mpi
import numpy as np
import pytest

import convcore
from convcore import distributed as dist
from convcore import nn
from convcore.distributed.group import ProcessGroup
from convcore.distributed.shard_tree import ShardTree, middle, siblings

# 100 steps of a net with normalization and dropout, from a loader with workers.
TRAINING = """
    import hashlib, sys, convcore as torch, convcore.distributed as dist
    from convcore import nn
    from convcore.nn.parallel import DistributedDataParallel

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 150  # the last of ten batches is smaller
        def __getitem__(self, i):
            generator = torch.Generator().manual_seed(i)
            return torch.rand(1, 8, 8, generator=generator), i % 3

    if __name__ == "__main__":
        dist.init_process_group(None if sys.argv[1:] == ["alone"] else "mpi", timeout=60)
        torch.manual_seed(3)
        net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                            nn.Dropout(0.3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 3))
        ddp = DistributedDataParallel(net, shards=8)
        optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
        loader = torch.utils.data.DataLoader(Data(), 16, shuffle=True, num_workers=1)
        steps, losses = 0, []
        while steps < 100:
            for x, y in loader:
                optimizer.zero_grad()
                loss = ddp.backward(lambda x, y: nn.functional.cross_entropy(ddp(x), y), x, y)
                optimizer.step()
                losses.append(loss.item())
                steps += 1
        digest = hashlib.sha256()
        for tensor in net.state_dict().values():
            digest.update(tensor.numpy().tobytes())
        digest.update(torch.get_rng_state().numpy().tobytes())
        assert sum(losses[-10:]) < sum(losses[:10]), losses
        print(digest.hexdigest(), steps, losses[-1])
"""


@pytest.mark.subprocess
def test_weights_have_the_same_bits_for_any_number_of_ranks(tmp_path):
    lines = mpi.run(TRAINING, 1, tmp_path, "alone", OMP_NUM_THREADS="2")
    for ranks in (2, 4):  # three are in test_faults.py
        lines += mpi.run_in_shared(TRAINING, ranks, tmp_path)
    assert len(lines) == 7
    assert len(set(lines)) == 1, lines


# A running mean of one number, parameters of one and of no numbers, and one that is not used.
SMALL = """
    import convcore as torch, convcore.distributed as dist
    from convcore import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.unused = nn.Linear(3, 2), nn.Linear(2, 2)
            self.factor = nn.Parameter(torch.tensor(2.0))
            self.none = nn.Parameter(torch.zeros(0, 3))
            self.register_buffer("mean", torch.tensor(0.0))
        def forward(self, x):
            self.mean.lerp_(x.detach().mean(), 0.1)
            return self.layer(x - self.mean) * self.factor + self.none.sum()

    dist.init_process_group("mpi", timeout=60)
    torch.manual_seed(3)
    ddp = nn.parallel.DistributedDataParallel(Net(), shards=5)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.05)
    for step in range(3):
        x = torch.randn(13, 3)
        before = ddp.module.mean.item()
        ddp.backward(lambda x: ddp(x).square().mean(), x)
        assert abs(ddp.module.mean - before - 0.1 * (x.mean() - before)) < 1e-6
        optimizer.step()
    print([p.tolist() for p in ddp.state_dict().values()])
"""


@pytest.mark.subprocess
def test_numbers_and_empty_parameters_are_summed_too(tmp_path):
    lines = [line for ranks in (1, 2, 3) for line in mpi.run_in_shared(SMALL, ranks, tmp_path)]
    assert len(lines) == 6 and len(set(lines)) == 1, lines


# Autocast, a checkpoint that draws its dropout again, and a frozen layer.
MIXED = """
    import hashlib, importlib.util, convcore as torch, convcore.distributed as dist
    from convcore import nn
    from convcore.utils.checkpoint import checkpoint

    dist.init_process_group("mpi", timeout=60)
    torch.manual_seed(3)
    dtype = torch.bfloat16 if importlib.util.find_spec("ml_dtypes") else torch.float16
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                        nn.Dropout(0.3), nn.Flatten(), nn.Linear(1024, 3))
    net[0].weight.requires_grad_(False)
    ddp = nn.parallel.DistributedDataParallel(net, shards=4)
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.05)

    def loss_of(x, y):
        with torch.autocast("cpu", dtype=dtype):
            scores = net[4:](checkpoint(net[:4], x, use_reentrant=False))
            return nn.functional.cross_entropy(scores.float(), y)

    for step in range(5):
        optimizer.zero_grad()
        loss = ddp.backward(loss_of, torch.rand(16, 3, 8, 8), torch.arange(16) % 3)
        optimizer.step()
    weights = b"".join(t.numpy().tobytes() for t in net.state_dict().values())
    print(hashlib.sha256(weights).hexdigest(), loss.item())
"""


@pytest.mark.subprocess
def test_weights_under_autocast_have_the_same_bits(tmp_path):
    lines = [line for ranks in (1, 3) for line in mpi.run_in_shared(MIXED, ranks, tmp_path)]
    assert len(lines) == 4 and len(set(lines)) == 1, lines


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    dist.init_process_group()
    yield
    dist.destroy_process_group()


def of_size(rank, size):
    """A group that only counts."""
    group = ProcessGroup.__new__(ProcessGroup)
    group.rank, group.size = lambda: rank, lambda: size
    return group


@pytest.mark.parametrize("shards", [1, 2, 3, 5, 8, 13])
def test_every_shard_has_one_rank_and_ranks_have_runs(shards):
    for size in (1, 2, 3, 4, 8, 20):
        owned = [ShardTree(shards, of_size(rank, size), []).own for rank in range(size)]
        assert list(itertools.chain(*owned)) == [*range(shards)]
        lengths = [len(own) for own in owned]
        assert max(lengths) - min(lengths) <= 1


def test_the_tree_pairs_what_its_root_says(alone):
    """The bits of the sum are those of the nested sums of the tree, written out."""
    x = np.random.default_rng(1).standard_normal((5, 100)).astype(np.float32)
    tree = ShardTree(5, ProcessGroup(dist.group._State.group.comm, [0], 1), [x[0], x[0]])
    for shard in (0, 1, 2, 3, 4):
        tree.add(shard, [x[shard].copy(), None if shard == 2 else x[shard].copy()])
    total, without = tree.total()
    np.testing.assert_array_equal(total, ((x[0] + x[1]) + (x[2] + x[3])) + x[4])
    np.testing.assert_array_equal(without, ((x[0] + x[1]) + x[3]) + x[4])
    assert middle((0, 5)) == 4 and siblings((0, 5))[(0, 4)] == (4, 5)


def step(shards, net, x, y, **options):
    ddp = nn.parallel.DistributedDataParallel(net, shards=shards, **options)
    return ddp.backward(lambda x, y: nn.functional.mse_loss(ddp(x), y), x, y)


@pytest.mark.parametrize("count", [7, 8, 3])
def test_gradients_are_those_of_the_whole_batch(alone, count):
    """Also where shards differ in size, and where some are empty."""
    convcore.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    x, y = convcore.rand(2, count, 3).double(), convcore.rand(2, count, 2).double()
    expected = nn.functional.mse_loss(net(x), y)
    gradients = convcore.autograd.grad(expected, list(net.parameters()))
    net[0].weight.grad = convcore.ones(4, 3).double()
    loss = step(5, net, x, y, dim=1)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    np.testing.assert_allclose(net[0].weight.grad, gradients[0] + 1, rtol=1e-12)
    for parameter, gradient in list(zip(net.parameters(), gradients, strict=True))[1:]:
        np.testing.assert_allclose(parameter.grad, gradient, rtol=1e-12)


def test_normalization_is_by_shard_and_its_statistics_are_averaged(alone):
    net = nn.BatchNorm1d(2, affine=True)
    net.register_buffer("table", convcore.rand(3))
    table = net.table.clone()
    x = convcore.rand(8, 2)
    step(4, net, x, x)
    means = x.reshape(4, 2, 2).mean(1)
    np.testing.assert_allclose(net.running_mean, 0.1 * means.mean(0), rtol=1e-6)
    assert net.num_batches_tracked == 1 and convcore.equal(net.table, table)


def test_shards_draw_different_numbers_and_the_state_moves_on(alone):
    seen = []

    class Noise(nn.Linear):
        def forward(self, x):
            seen.append(convcore.rand(1).item())
            return super().forward(x)

    convcore.manual_seed(1)
    x = convcore.rand(4, 2)
    for _ in range(2):
        step(4, Noise(2, 2), x, x)
    assert len(set(seen)) == 8


def test_unused_parameters_have_no_gradient(alone):
    net = nn.ModuleDict({"used": nn.Linear(2, 2), "not": nn.Linear(2, 2)})
    ddp = nn.parallel.DistributedDataParallel(net, shards=2)
    ddp.backward(lambda x: net["used"](x).sum(), convcore.rand(2, 2))
    assert net["not"].weight.grad is None and net["used"].weight.grad is not None


def test_a_step_that_fails_changes_nothing(alone):
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    net[1].weight.grad = convcore.ones(2, 2)
    calls = []

    def loss_of(x):
        calls.append(1)
        return net(x).sum() if len(calls) < 3 else 1 / 0

    ddp = nn.parallel.DistributedDataParallel(net, shards=4)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(ZeroDivisionError):
        ddp.backward(loss_of, convcore.rand(8, 2))
    assert all(convcore.equal(value, before[name]) for name, value in net.state_dict().items())
    assert net[1].weight.grad.tolist() == [[1, 1], [1, 1]] and net[1].bias.grad is None
    with pytest.raises(RuntimeError, match=r"not by backward\(\) of a loss"):
        ddp(convcore.rand(8, 2)).sum().backward()


def test_wrong_arguments_are_named(alone):
    net, x = nn.Linear(2, 2), convcore.rand(4, 2)
    wrapped = nn.parallel.DistributedDataParallel
    for options, says in (
        ({"shards": 0}, "shards must be a whole number above 0"),
        ({"shards": 2, "dim": None}, "dim must be one"),
        ({"bucket_cap_mb": 0}, "bucket_cap_mb must be above 0"),
    ):
        with pytest.raises(ValueError, match=says):
            wrapped(net, **options)
    with pytest.raises(RuntimeError, match="any parameters that require a gradient"):
        wrapped(nn.ReLU())
    with pytest.raises(RuntimeError, match=r"needs DistributedDataParallel\(module, shards="):
        wrapped(net).backward(lambda x: net(x).sum(), x)
    ddp = wrapped(net, shards=2)
    with pytest.raises(ValueError, match=r"one size, above 0, in axis 0, but got sizes \[2, 4\]"):
        ddp.backward(lambda x, y: net(x).sum(), x, x[:2])
    with pytest.raises(ValueError, match=r"in axis 0, but got sizes \[0, 4\]"):
        ddp.backward(lambda x, y: net(x).sum(), x, convcore.tensor(1.0))
    with pytest.raises(TypeError, match="loss_of must return a Tensor of one element"):
        ddp.backward(net, x)
