"""A script for PyTorch's DistributedDataParallel, as it is, under ``mpiexec convcore run``."""

import os
import subprocess
import sys
import textwrap

import mpi
import pytest

pytestmark = pytest.mark.subprocess

# With a sampler, a group, a checkpoint that one writes and all read, as PyTorch's tutorial has it.
SCRIPT = """
    import os
    import sys

    import torch
    import torch.distributed as dist
    import torch.nn as nn
    import torch.optim as optim
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler


    class ToyModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 6, 3)
            self.norm = nn.BatchNorm2d(6)
            self.relu = nn.ReLU()
            self.linear = nn.Linear(6, 5)

        def forward(self, x):
            return self.linear(self.relu(self.norm(self.conv(x))).mean((2, 3)))


    def main(backend, folder):
        assert dist.is_available() and not dist.is_initialized()
        assert dist.is_gloo_available() and not dist.is_nccl_available()
        dist.init_process_group(backend, rank=-1, world_size=-1)
        rank, world_size = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(rank)  # the first rank's weights are everybody's
        ddp_model = DDP(ToyModel())
        torch.manual_seed(5)
        data = TensorDataset(torch.randn(21, 2, 7, 7), torch.randn(21, 5))
        sampler = DistributedSampler(data, shuffle=True, seed=3)
        loader = DataLoader(data, batch_size=4, sampler=sampler)
        loss_fn = nn.MSELoss()
        optimizer = optim.SGD(ddp_model.parameters(), lr=0.05, momentum=0.9)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            for x, y in loader:
                optimizer.zero_grad()
                loss_fn(ddp_model(x), y).backward()
                optimizer.step()
        path = os.path.join(folder, "model.checkpoint")
        if rank == 0:
            torch.save(ddp_model.state_dict(), path)
        dist.barrier()
        ddp_model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        everybody = dist.new_group(list(range(world_size)), backend=backend)
        total = torch.tensor([float(rank + 1)])
        dist.all_reduce(total, op=dist.ReduceOp.SUM, group=everybody)
        grads = [p.grad.flatten() for p in ddp_model.parameters()]
        weights = [value.double().flatten() for value in ddp_model.state_dict().values()]
        line = [total.item(), *torch.cat(grads).tolist(), *torch.cat(weights).tolist()]
        print(repr(line) + chr(10), end="", flush=True)
        dist.destroy_process_group()


    if __name__ == "__main__":
        main(sys.argv[1], sys.argv[2])
"""
RUN = """
    import runpy, sys
    sys.argv[:1] = ["convcore", "run"]
    runpy.run_module("convcore", run_name="__main__")
"""


def by_pytorch(path, folder):
    """Return the line of each of two ranks of PyTorch's own, joined by gloo."""
    settings = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(path), "gloo", str(folder)],
            env=os.environ | mpi.SETTINGS | settings | {"RANK": str(rank)},
            stdout=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    return [eval(process.communicate(timeout=120)[0]) for process in processes]


def free_port():
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    return path


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_backends_of_cpus_are_mpi(backend, script, tmp_path):
    """Both ranks end with the same bits, whichever name is asked for."""
    first, second = map(eval, mpi.run(RUN, 2, tmp_path, str(script), backend, str(tmp_path)))
    assert first == second and first[0] == 3.0 and len(first) > 300


def test_a_script_computes_what_it_does_in_pytorch(script, tmp_path, torch):
    """Gradients and weights after six steps are those of PyTorch's own ranks."""
    ours = eval(mpi.run(RUN, 2, tmp_path, str(script), "gloo", str(tmp_path))[0])
    theirs, again = by_pytorch(script, tmp_path)
    assert theirs == again
    assert ours == pytest.approx(theirs, rel=1e-4, abs=2e-6)


def test_one_process_needs_neither_mpi_nor_a_launcher(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "convcore", "run", str(script), "gloo", str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert eval(done.stdout)[0] == 1.0


def test_backends_of_gpus_are_refused(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "convcore", "run", str(script), "nccl", str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "backend must be 'mpi' or None, but got 'nccl'" in done.stderr
