"""
Run a PyTorch script as it is
=============================

Somebody wrote a program for PyTorch, and you want to run it where PyTorch is too large to install.
If the program stays inside what convcore has, nothing in it needs to change: convcore takes
PyTorch's place when the program says ``import torch``.
"""

import contextlib
import io
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import convcore
from convcore import compat

# %%
# The program
# -----------
#
# A plain PyTorch program, as it could lie on anybody's disk: it learns which of two moons a point
# lies on, and prints a loss now and then. It imports ``torch``, and has never heard of convcore.

program = """\
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
angles = math.pi * torch.rand(400)
moon = torch.arange(400) % 2
points = torch.stack([angles.cos() + moon, (angles.sin() - 0.25) * (1 - 2 * moon)], dim=1)
points += 0.1 * torch.randn(400, 2)
loader = DataLoader(TensorDataset(points, moon), batch_size=40, shuffle=True)

model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
device = "cuda" if torch.cuda.is_available() else "cpu"
model.to(device)
losses = []
for epoch in range(10):
    for x, y in loader:
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}")
with torch.no_grad():
    right = (model(points).argmax(1) == moon).float().mean()
print(f"accuracy {right:.3f}, on {device}")
"""

folder = tempfile.TemporaryDirectory()
script = Path(folder.name) / "moons.py"
script.write_text(program)

# %%
# From the command line
# ---------------------
#
# ``convcore run script.py`` runs it like ``python script.py``, with the same arguments and the same
# ``__main__``. Packages that it imports, and that import torch themselves, get convcore too.

command = [sys.executable, "-m", "convcore", "run", str(script)]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

# %%
# Random numbers are PyTorch's for the same seed, so that the losses can be compared, digit by
# digit, with those of a machine that has PyTorch.
#
# From Python
# -----------
#
# ``compat.as_torch()`` does the same inside a process: from then on ``import torch`` gives
# convcore. As a context manager it does so until the end of the block. What was made within it
# works on afterwards: here the script's net draws what it has learnt.

with compat.as_torch(), contextlib.redirect_stdout(io.StringIO()):
    found = runpy.run_path(str(script))
folder.cleanup()

net, points, moon = found["model"], found["points"], found["moon"].numpy()
ticks = np.meshgrid(np.linspace(-1.5, 2.5, 160), np.linspace(-1.2, 1.2, 100))
grid = convcore.from_numpy(np.stack(ticks, axis=-1).astype(np.float32)).flatten(0, 1)
with convcore.no_grad():
    chance = net(grid).softmax(1)[:, 1].view(100, 160)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.plot(found["losses"], lw=0.8)
left.set(title="the script's losses", xlabel="step", ylabel="loss")
shades = right.contourf(*ticks, chance, levels=10, cmap="RdBu_r", alpha=0.7)
right.scatter(*points.T, s=5, c=np.where(moon, "darkred", "navy"))
right.set(title="what its net has learnt", xticks=[], yticks=[])
figure.colorbar(shades, ax=right, label="probability of the red moon")
plt.show()

# %%
# What is missing says so
# -----------------------
#
# convcore has no GPU and no compiler, and not every function of PyTorch. A name that it has not is
# an error that says what to use instead; :doc:`/pytorch_names` lists them all.

with compat.as_torch() as torch:
    for name in ("sparse_coo_tensor", "no_such_name"):
        try:
            getattr(torch, name)
        except AttributeError as error:
            print(error)

# %%
# ``torch.cuda.is_available()`` is False, as on any machine without a GPU, and so programs choose
# the CPU by themselves. ``torch.compile(net)`` returns the net as it is.
#
# Where you own the program, change its import instead: ``import convcore as torch`` is the whole
# port.
