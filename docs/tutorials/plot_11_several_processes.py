"""
Train in several processes
==========================

More machines train faster only if each computes a part of every batch, and all agree on the sum of
the gradients. convcore does that over MPI, the way clusters start programs, and promises more than
usual: the trained weights have *the same bits* for any number of processes. This tutorial runs one
program in one, two and four processes, and compares.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

# %%
# The program
# -----------
#
# Three lines tell it from a program for one process: joining the others, wrapping the net with the
# number of ``shards``, and ``ddp.backward`` in place of ``loss.backward``. Every process makes the
# same net and the same batches from the same seed.

program = """\
import hashlib
import json

import convcore as torch
import convcore.distributed as dist
from convcore import nn
from convcore.demo.digits import Reader, load_digits
from convcore.nn import functional as F

dist.init_process_group(timeout=120)                                # join the others
torch.manual_seed(0)
net = Reader()
ddp = nn.parallel.DistributedDataParallel(net, shards=8)            # cut each batch into 8
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
images, labels = load_digits(seed=0)[0].tensors

losses = []
for step in range(100):
    batch = torch.randint(len(images), (64,))
    optimizer.zero_grad()
    loss = ddp.backward(lambda x, y: F.cross_entropy(ddp(x), y), images[batch], labels[batch])
    optimizer.step()
    losses.append(float(loss))

if dist.get_rank() == 0:
    weights = b"".join(p.detach().numpy().tobytes() for p in net.parameters())
    digest = hashlib.sha256(weights).hexdigest()
    print(json.dumps({"processes": dist.get_world_size(), "weights": digest, "losses": losses}))
dist.destroy_process_group()
"""

# %%
# Start it
# --------
#
# ``mpiexec -n 4 python train.py`` starts four processes. The extra ``[mpi]`` brings it; without it
# this page has to do with one process, which needs no MPI, and says so.

folder = tempfile.TemporaryDirectory()
script = Path(folder.name) / "train.py"
script.write_text(program)

mpiexec = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
if mpiexec and importlib.util.find_spec("mpi4py"):
    launchers = [[mpiexec, "-n", str(count)] for count in (1, 2, 4)]
else:
    print("mpiexec or mpi4py is not installed: what follows is of one process")
    launchers = [[]]

runs = []
for launcher in launchers:
    command = [*launcher, sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    runs.append(json.loads(done.stdout))
for run in runs:
    print(
        f"{run['processes']} processes: loss {run['losses'][-1]!r}, weights {run['weights'][:16]}"
    )
folder.cleanup()

# %%
# The losses agree in every digit, and so does the SHA-256 of all weights:

print("the same bits:", len({run["weights"] for run in runs}) == 1)

# %%
# Why the bits agree
# ------------------
#
# Floating-point sums depend on their order, so that usually another number of processes ends in
# other weights. Here the *shards* fix the order. Each batch is cut into 8, however many processes
# there are; a shard is computed as if it were alone, and its gradients are added in one fixed tree.
# The processes only divide the work: colours are processes.

figure, axes = plt.subplots(1, 3, figsize=(8, 2.6), layout="constrained")
for ax, processes in zip(axes, (1, 2, 4), strict=True):
    level, owners = 0, [shard * processes // 8 for shard in range(8)]
    places = [float(shard) for shard in range(8)]
    while True:
        ax.scatter(places, [level] * len(places), c=[f"C{owner}" for owner in owners], zorder=2)
        if len(places) == 1:
            break
        middles = [(one + two) / 2 for one, two in zip(places[::2], places[1::2], strict=True)]
        for place, middle in zip(places, [m for m in middles for _ in range(2)], strict=True):
            ax.plot([place, middle], [level, level + 1], color="gray", lw=0.8, zorder=1)
        places, owners, level = middles, owners[::2], level + 1
    ax.set(title=f"{processes} process{'es' * (processes > 1)}", xlabel="shard of the batch")
    ax.set(xticks=range(8), yticks=[0, 3], yticklabels=["gradients", "sum"])
    ax.spines[:].set_visible(False)
plt.show()

# %%
# The tree is the same in all three. So are dropout's random numbers, which a shard draws from a
# seed of the step and its own number.
#
# The loss, of which there is one curve to draw:

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for run, style in zip(runs, ("-", "--", ":"), strict=False):
    ax.plot(run["losses"], style, lw=1 + run["processes"] / 2, label=f"{run['processes']}")
ax.set(xlabel="step", ylabel="loss", ylim=0)
ax.legend(title="processes")
plt.show()

# %%
# What it costs
# -------------
#
# A shard is a small batch, which takes longer an image; gradients are copied and sent. It pays for
# batches and images larger than these digits: :doc:`/howto/distributed` has the figures, a script
# for Slurm, and what happens when a process fails. PyTorch's ``DistributedDataParallel`` without
# shards is there too, for scripts that have it; its bits depend on the number of processes.
#
# ``mpiexec -n 4 convcore demo training --distributed`` does the same with a ResNet-8.
