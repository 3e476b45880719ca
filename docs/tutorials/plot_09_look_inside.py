"""
Look inside a net, from its first layer to its answer
=====================================================

What does each layer make of a photograph? Which pixels decide? Do gradients reach the first layer?
And where does the time go? `inspection <convcore.inspection>` answers each in a few lines. This
tutorial trains a small net in a few seconds and takes it apart.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import convcore as torch
from convcore import inspection, nn
from convcore.demo.training import load_photographs, patches_task
from convcore.inspection import attribution, pictures
from convcore.nn import functional as F

# %%
# The net
# -------
#
# Three photographs are cut into patches of 32x32 pixels; the net tells from which one a patch is.
# It has a shortcut, as residual nets have: the second convolution's result is added to its input.


class Net(nn.Module):
    """Three convolutions, a shortcut around the second, a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 5, padding=2)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.conv3 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        """Return (N, 3) scores of (N, 3, H, W) images."""
        x = self.pool(F.relu(self.conv1(x)))
        x = x + F.relu(self.conv2(x))
        x = F.relu(self.conv3(self.pool(x)))
        return self.head(x.mean(dim=(2, 3)))


torch.manual_seed(0)
task = patches_task()
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
images, labels = task.train.tensors

# %%
# Watch it learn
# --------------
#
# `capture <convcore.inspection.capture>` keeps what layers make, by name. Here it keeps a histogram
# in place of the tensor, of what the shortcut's sum, ``add``, makes; that of every fourth step is
# drawn.

seen, steps = [], range(0, 80, 4)
for step in range(80):
    chosen = torch.randint(0, len(labels), (32,))
    with inspection.capture(net, "add", of="output", stats="histogram") as found:
        loss = F.cross_entropy(net(images[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in steps:
        seen.append(found["add"])
with torch.no_grad():
    images_held_out, labels_held_out = task.test.tensors
    right = net(images_held_out).argmax(1) == labels_held_out
print(f"of the patches held out, {right.float().mean().item():.0%} are right")

figure = plt.figure(figsize=(7, 3.6), layout="constrained")
pictures.histograms(seen, numbers=steps, title="The shortcut's sum", figure=figure)
plt.show()

# %%
# A column is a step, and darker where more elements are. Most stay near zero, as ReLUs make them;
# the others spread as the net learns.
#
# What a layer sees
# -----------------
#
# The same context manager keeps tensors, and after ``backward`` their gradients. Without a name it
# keeps all of them; functions have names too, as ``relu:2`` is the second call of ``relu``.

pixels = torch.from_numpy(load_photographs()["portrait"][:256, 128:384].copy())
portrait = F.avg_pool2d(pixels.permute(2, 0, 1)[None], 2).contiguous()
net.eval()
with inspection.capture(net) as found:
    net(portrait)[0, 2].backward()
for name in found.output:
    print(f"{name:12} {tuple(found.output[name].shape)}")

figure = plt.figure(figsize=(9, 3), layout="constrained")
pictures.feature_maps(found["relu"], title="relu", figure=figure)
plt.show()

# %%
# These are the maps of the first convolution after its ReLU, and these the kernels that make them:

figure = plt.figure(figsize=(9, 2.9), layout="constrained")
pictures.kernels(net.conv1.weight, title="conv1", figure=figure)
plt.show()

# %%
# Each kernel makes one map, under the same number. Some maps follow edges of one direction, others
# a colour. Maps that are dark all over belong to units that this photograph does not excite.
#
# How much of the photograph does an element of a layer see? The box is all that it can see; what
# counts most lies in the middle.

noise = torch.rand(8, 3, 48, 48)
figure = plt.figure(figsize=(5, 4), layout="constrained")
pictures.receptive_field(net, noise, "conv3", figure=figure)
plt.show()

# %%
# Do gradients reach the first layer?
# -----------------------------------
#
# ``found.grad`` has the gradient of the score by each of those results. The mean over 32x32 pixels
# divides it by their number; from there to the first layer it neither vanishes nor explodes. Where
# a result goes into max pooling, as those of ``relu`` and ``add``, three elements of four get none.

figure = plt.figure(figsize=(8, 5), layout="constrained")
pictures.gradient_flow(found, figure=figure)
plt.show()

# %%
# Which pixels decide?
# --------------------
#
# `attribution <convcore.inspection.attribution>` has the methods. Integrated gradients share out
# the score among the pixels, and can tell what their shares miss: the convergence delta, which
# should be small beside the score.

shares, missing = attribution.integrated_gradients(net, portrait, 2, return_convergence_delta=True)
print(f"score {net(portrait)[0, 2].item():.2f}, missing {missing.abs().item():.4f}")
figure = plt.figure(figsize=(9, 3), layout="constrained")
pictures.saliency_overlay(portrait, shares, opacity=1.0, figure=figure)
plt.show()

# %%
# Red pixels speak for the portrait, blue ones against it.
#
# Where does the time go?
# -----------------------
#
# `profile <convcore.inspection.profile>` measures each module and operation, forward and backward,
# and names the algorithm of each convolution. Times are those of the machine that built this page.

with inspection.profile(net) as measured:
    net(images[:64]).sum().backward()
print(measured)

# %%
# All of it on one page
# ---------------------
#
# `report <convcore.inspection.report>` writes what stands above, and more, as one HTML file without
# scripts, to look at or to mail: the net as a graph, each layer with its costs, algorithms,
# statistics and maps, and whether anything was NaN. ``convcore inspect`` does it for nets and files
# from the command line.

with TemporaryDirectory() as folder:
    file = Path(folder) / "net.html"
    page = inspection.report(net, portrait, file, title="Which photograph?")
    print(f"{page.stat().st_size / 1e3:.0f} kB")
