"""
Transfer learning from a checkpoint
===================================

You have a net that was trained on much data, and a new task with little. Its first layers have
learnt what strokes and corners look like, and that helps with the new task too: keep them, put a
new last layer on top, and train that. Here a net learns to read digits from 1,438 images; a second
one takes over what it knows, to read digits *in a mirror*, from two examples of each.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import convcore as torch
from convcore import nn
from convcore.demo.digits import load_digits
from convcore.nn import functional as F

# %%
# Two tasks
# ---------

old_task, held_out = (dataset.tensors for dataset in load_digits(seed=0))
images, labels = old_task
rows = torch.cat([(labels == digit).nonzero().flatten()[:2] for digit in range(10)])
new_task = images[rows].flip(3), labels[rows]
new_test = held_out[0].flip(3), held_out[1]
print("old task:", len(old_task[0]), "images; new task:", len(new_task[0]), "mirrored images")

figure, axes = plt.subplots(2, 10, figsize=(7.5, 1.9), layout="constrained")
for ax, image in zip(axes.T.flat, new_task[0], strict=True):
    ax.imshow(image[0], cmap="gray_r")
    ax.set(xticks=[], yticks=[])
figure.suptitle("All that the new task has to learn from")
plt.show()

# %%
# The net is in two parts: ``features``, convolutions that turn an image into 128 numbers, and
# ``head``, a linear layer that turns those into scores.


class Net(nn.Module):
    """Two convolutions with max pooling, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.head = nn.Linear(128, 10)

    def forward(self, images):
        """Return (N, 10) scores of (N, 1, 8, 8) images."""
        return self.head(self.features(images).flatten(1))


def shifted(images):
    """Return images, each shifted at random by up to a pixel (data augmentation)."""
    padded, (height, width) = F.pad(images, (1, 1, 1, 1)), images.shape[2:]
    moves = torch.randint(0, 3, (len(images), 2)).tolist()
    parts = [
        padded[index, :, down : down + height, right : right + width]
        for index, (down, right) in enumerate(moves)
    ]
    return torch.stack(parts)


def accuracy(net, images, labels):
    """Return the share of images that a net classifies correctly."""
    with torch.no_grad():
        return (net(images).argmax(1) == labels).float().mean().item()


def fit(net, task, optimizer, steps, test=None):
    """Train on random batches; return the test accuracy after every fifth step."""
    images, labels = task
    curve = []
    for step in range(1, steps + 1):
        rows = torch.randint(0, len(labels), (min(50, len(labels)),))
        loss = F.cross_entropy(net(shifted(images[rows])), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if test and step % 5 == 0:
            curve.append(accuracy(net, *test))
    return curve


# %%
# Train on the old task, and save
# -------------------------------
#
# A checkpoint is the net's ``state_dict``: names and tensors, no code. ``save`` and ``load`` read
# and write PyTorch's files; ``load`` runs nothing that a file might contain.

torch.manual_seed(0)
teacher = Net()
fit(teacher, old_task, torch.optim.Adam(teacher.parameters(), lr=3e-3), steps=200)
print(f"accuracy on held-out digits: {accuracy(teacher, *held_out):.1%}")
print(f"the same net on mirrored digits: {accuracy(teacher, *new_test):.1%}")

folder = tempfile.TemporaryDirectory()
checkpoint = Path(folder.name) / "digits.pt"
torch.save(teacher.state_dict(), checkpoint)
print(f"{checkpoint.name}: {checkpoint.stat().st_size / 1024:.0f} KiB")

# %%
# Load it into another net
# ------------------------
#
# The new net is made as ever, with random weights. The checkpoint's ``features`` fit; its ``head``
# reads digits the right way round, and is left out. ``strict=False`` says that missing names are
# meant, and the answer tells which they are.

state = torch.load(checkpoint)
state = {name: tensor for name, tensor in state.items() if not name.startswith("head.")}
student = Net()
print(student.load_state_dict(state, strict=False))

# %%
# Freeze, and train the head
# --------------------------
#
# ``requires_grad_(False)`` freezes parameters: no gradient is computed for them, which also saves
# time, and the optimizer is given the others only.

student.features.requires_grad_(False)
trained = [parameter for parameter in student.parameters() if parameter.requires_grad]
everything = sum(parameter.numel() for parameter in student.parameters())
print("trained parameters:", sum(p.numel() for p in trained), "of", everything)

before = student.features[0].weight.clone()
fit(student, new_task, torch.optim.Adam(trained, lr=1e-2), steps=60)
print("the frozen weights are unchanged:", torch.equal(before, student.features[0].weight))
print(f"accuracy with a new head: {accuracy(student, *new_test):.1%}")

# %%
# Fine-tune
# ---------
#
# Then everything may move, with small steps, so that what was learnt is not lost. Parameter groups
# give the features a smaller learning rate than the head.

student.features.requires_grad_(True)
groups = [
    {"params": student.features.parameters(), "lr": 3e-4},
    {"params": student.head.parameters(), "lr": 1e-3},
]
fit(student, new_task, torch.optim.Adam(groups), steps=60)
print(f"accuracy after fine-tuning: {accuracy(student, *new_test):.1%}")

# %%
# Was it worth it?
# ----------------
#
# The comparison that counts: the same net, the same 20 images, as many steps, from random weights.
# One run of so small a task says little, so each way is run three times, from other random numbers.


def transferred():
    """Train a new head on the checkpoint's features, then fine-tune; return the test curve."""
    net = Net()
    net.load_state_dict(state, strict=False)
    net.features.requires_grad_(False)
    head = fit(net, new_task, torch.optim.Adam(net.head.parameters(), lr=1e-2), 60, new_test)
    net.features.requires_grad_(True)
    groups = [
        {"params": net.features.parameters(), "lr": 3e-4},
        {"params": net.head.parameters(), "lr": 1e-3},
    ]
    return head + fit(net, new_task, torch.optim.Adam(groups), 60, new_test)


def from_scratch():
    """Train a net of random weights; return the test curve."""
    net = Net()
    return fit(net, new_task, torch.optim.Adam(net.parameters(), lr=3e-3), 120, new_test)


figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for way, color, label in (
    (transferred, "tab:blue", "from the checkpoint"),
    (from_scratch, "tab:orange", "from random weights"),
):
    curves, steps = [], range(5, 121, 5)
    for seed in range(3):
        torch.manual_seed(seed)
        curves.append(way())
        ax.plot(steps, curves[-1], color=color, lw=0.6, alpha=0.6)
    mean = np.mean(curves, axis=0)
    ax.plot(steps, mean, color=color, lw=2, label=f"{label}: mean of three")
    print(f"{label}: {mean[3]:.0%} after 20 steps, {mean[-1]:.0%} after 120")
ax.axvline(60, ls=":", color="black", lw=0.8)
ax.text(61, 0.02, "fine-tuning begins")
ax.set(xlabel="step", ylabel="accuracy on mirrored digits", ylim=(0, 1))
ax.legend(loc="lower right", bbox_to_anchor=(1, 0.1))
plt.show()
folder.cleanup()

# %%
# The checkpoint's net is ahead from the first steps, and stays ahead. The smaller the new task, the
# larger the difference: change ``[:2]`` above into ``[:4]``, and it shrinks.
#
# For photographs the same lines work with ``convcore.models.resnet18()`` and torchvision's
# checkpoint: load it, replace ``net.fc`` by a linear layer of your classes, and freeze the rest.
