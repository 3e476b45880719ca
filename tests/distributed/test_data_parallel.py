"""DistributedDataParallel against one process with the whole batch, and against PyTorch's."""

import subprocess
import sys
import textwrap

import mpi
import pytest

pytestmark = pytest.mark.subprocess

# Gradients of parts of a batch by ranks, and of the whole by each rank alone.
GRADIENTS = """
    import numpy as np, copy, convcore as torch, convcore.distributed as dist
    from convcore import nn
    from convcore.nn.parallel import DistributedDataParallel as DDP

    dist.init_process_group("mpi", timeout=30)
    me, n = dist.get_rank(), dist.get_world_size()
    F = nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 6, 3)
            self.a, self.b = nn.Linear(6, 4), nn.Linear(6, 4).double()
            self.register_buffer("seen", torch.zeros(1))
        def forward(self, x, which="ab"):
            x = F.relu(self.conv(x)).mean((2, 3))
            y = self.a(x) if "a" in which else 0
            return y + (self.b(x.double()) if "b" in which else 0)

    def close(net, reference):
        for (name, p), q in zip(net.named_parameters(), reference.parameters()):
            assert (p.grad is None) == (q.grad is None), name
            if p.grad is not None:
                np.testing.assert_allclose(p.grad, q.grad, rtol=2e-4, atol=1e-6, err_msg=name)
        sums = [None] * n
        dist.all_gather_object(sums, [p.grad.numpy().tobytes() for p in net.parameters()
                                      if p.grad is not None])
        assert all(other == sums[0] for other in sums)  # bit for bit

    torch.manual_seed(me)  # the first rank's weights are everybody's
    ddp = DDP(Net(), bucket_cap_mb=1e-4)
    reference = copy.deepcopy(ddp.module)
    torch.manual_seed(5)
    x, y = torch.randn(4 * n + n // 2 * 2, 2, 6, 6), torch.randn(4 * n + n // 2 * 2, 4)
    ends = [*range(4, 4 * n, 4), len(x)]  # the last rank has more
    own = slice(ends[me] - (len(x) - 4 * n + 4 if me == n - 1 else 4), ends[me])
    for step in range(3):  # buckets are rebuilt after the first
        ddp.zero_grad()
        reference.zero_grad()
        F.mse_loss(ddp(x[own]), y[own].double()).backward()
        F.mse_loss(reference(x), y.double()).backward()
        close(ddp.module, reference)
    assert len(ddp._reducer.buckets) > 2

    ddp.zero_grad()  # accumulation: two halves, the first without communication
    with ddp.no_sync():
        F.mse_loss(ddp(x[own]), y[own].double()).backward()
        alone = ddp.module.a.weight.grad.clone()
    local = [None] * n
    dist.all_gather_object(local, alone.tolist())
    assert local[0] != local[1]
    F.mse_loss(ddp(x[own]), y[own].double()).backward()
    reference.zero_grad()
    (2 * F.mse_loss(reference(x), y.double())).backward()
    close(ddp.module, reference)

    plain = DDP(Net(), dim=None)  # as PyTorch: the mean over ranks, whatever their sizes
    F.mse_loss(plain(x[own]), y[own].double()).backward()
    grads = []
    for rank in range(n):
        part = slice(ends[rank] - (len(x) - 4 * n + 4 if rank == n - 1 else 4), ends[rank])
        other = copy.deepcopy(plain.module)
        other.zero_grad()
        F.mse_loss(other(x[part]), y[part].double()).backward()
        grads.append(other.conv.weight.grad.numpy())
    np.testing.assert_allclose(plain.module.conv.weight.grad, np.mean(grads, 0), 2e-4, 1e-6)

    ddp = DDP(Net(), find_unused_parameters=True, dim=None)
    reference = copy.deepcopy(ddp.module)
    for which in ("a", "b", "ab", "a"):
        ddp.zero_grad()
        reference.zero_grad()
        ddp(x[:4], which).sum().backward()
        reference(x[:4], which).sum().backward()
        close(ddp.module, reference)
    ddp.zero_grad()  # used by the first rank alone: everybody gets its share
    ddp(x[:4], "ab" if me == 0 else "b").sum().backward()
    assert ddp.module.a.weight.grad is not None

    ddp = DDP(Net())
    ddp(x[:4], "a").sum().backward()
    try:
        ddp(x[:4], "a")
    except RuntimeError as error:
        assert "b.weight, b.bias" in str(error), error
    else:
        raise AssertionError("unused parameters were not seen")

    ddp = DDP(Net())
    ddp.module.seen.fill_(me + 3)
    ddp(x[:4])
    assert ddp.module.seen == 3
    ddp.eval()
    ddp.module.seen.fill_(me)
    ddp(x[:4])
    assert ddp.module.seen == me
    try:
        DDP(nn.Linear(2, 2 + me))
    except RuntimeError as error:
        assert "process 1 has another model" in str(error)
    else:
        raise AssertionError("different models were not seen")
    print(f"{me} done")
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_gradients_are_those_of_one_process(ranks, tmp_path):
    assert mpi.run_in_shared(GRADIENTS, ranks, tmp_path) == [
        f"{rank} done" for rank in range(ranks)
    ]


# A script as PyTorch's documentation has them, but for the names in braces.
SCRIPT = """
    import os, sys
    import {library} as torch
    import {library}.distributed as dist
    from {library} import nn, optim
    from {library}.nn.parallel import DistributedDataParallel as DDP

    def main(folder):
        {start}
        rank = dist.get_rank()
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                              nn.Linear(64, 3))
        weights = torch.arange(243.0).sin() / 3
        at = 0
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(weights[at:at + p.numel()].reshape(p.shape))
                at += p.numel()
        ddp_model = DDP(model)
        optimizer = optim.SGD(ddp_model.parameters(), lr=0.1, momentum=0.9)
        for step in range(4):
            x = torch.arange(4 * 36.0).mul(1 + rank + step).cos().reshape(4, 1, 6, 6)
            y = torch.tensor([0, 1, 2, (rank + step) % 3])
            optimizer.zero_grad()
            nn.functional.cross_entropy(ddp_model(x), y).backward()
            optimizer.step()
            loss = ddp_model.module[4].weight.grad.abs().sum()
            dist.all_reduce(loss, op=dist.ReduceOp.SUM)
        dist.barrier()
        if rank == 0:
            grads = [p.grad.flatten() for p in model.parameters()]
            print([loss.item(), *torch.cat(grads).tolist()])
        dist.destroy_process_group()

    if __name__ == "__main__":
        {run}
"""
OURS = {"library": "convcore", "start": 'dist.init_process_group(backend="mpi")', "run": "main('')"}
PYTORCHS = {
    "library": "torch",
    "start": 'dist.init_process_group("gloo", init_method="file://" + folder + "/store", '
    "rank=int(sys.argv[1]), world_size=2)",
    "run": "main(os.getcwd())",
}


def test_a_script_for_pytorch_runs_on_changed_imports(tmp_path, torch):
    """The gradients after four steps are those of PyTorch's own DDP with gloo on two ranks."""
    ours = mpi.run_in_shared(SCRIPT.format(**OURS), 2, tmp_path)
    path = tmp_path / "pytorchs.py"
    path.write_text(textwrap.dedent(SCRIPT.format(**PYTORCHS)))
    processes = [
        subprocess.Popen(
            [sys.executable, str(path), str(rank)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    printed = [process.communicate(timeout=90)[0] for process in processes]
    assert len(ours) == 1
    assert eval(ours[0]) == pytest.approx(eval(printed[0]), rel=1e-4, abs=2e-6)
