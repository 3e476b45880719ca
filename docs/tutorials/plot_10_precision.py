"""
Fewer bits: bfloat16 and autocast
=================================

A float32 number has 24 bits of precision, a bfloat16 number 8, in half the memory; its range is
the same. A net rarely needs all 24, but there are places that do. This tutorial shows what is lost,
trains a net both ways, and lets a trained one multiply in bfloat16.
"""

import time

import matplotlib.pyplot as plt

import convcore as torch
from convcore.demo.digits import Reader, load_digits
from convcore.nn import functional as F
from convcore.utils.data import DataLoader

# %%
# What 8 bits hold
# ----------------
#
# Between 1 and 2 a bfloat16 is a multiple of 1/128; above 256 even some whole numbers are missing.
# The largest number is that of float32, so nothing overflows that did not before.

for value in (1 / 3, 3.14159, 257.0, 1e38):
    print(f"{value:<10.6g} becomes {torch.tensor(value).to(torch.bfloat16).item():.6g}")

# %%
# One rounding hardly matters to a net: a factor that is 0.4 % off is noise beside a batch's own.
# Many roundings in a row do matter. Add 0.001 a thousand times, rounding each sum:

sums = {}
for dtype in (torch.float32, torch.bfloat16):
    total, step = torch.tensor(0.0, dtype=dtype), torch.tensor(0.001, dtype=dtype)
    sums[dtype] = []
    for _ in range(1000):
        total = total + step
        sums[dtype].append(total.item())

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
for dtype, course in sums.items():
    ax.plot(course, label=f"{dtype}, ends at {course[-1]:.4g}")
ax.set(xlabel="additions of 0.001", ylabel="sum")
ax.legend()
plt.show()

# %%
# The bfloat16 sum stops where 0.001 is less than half the distance to the next number. A weight to
# which an optimizer adds small steps would stop just so. Two rules follow, and both ways below keep
# them: *weights stay float32*, and *long sums are made in float32*.
#
# Train under autocast
# --------------------
#
# Inside ``autocast`` convolutions and linear layers take bfloat16 and give bfloat16; losses are
# float32. The weights, their gradients and the optimizer know nothing of it.

train, held_out = load_digits(seed=0)
test_images, test_labels = held_out.tensors


def fit(enabled):
    """Train the net of ``convcore demo digits``; return it, its losses and seconds."""
    torch.manual_seed(0)
    net = Reader()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    batches = DataLoader(train, batch_size=64, shuffle=True)
    losses = []
    start = time.perf_counter()
    for _ in range(8):
        for images, labels in batches:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                loss = F.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return net.eval(), losses, time.perf_counter() - start


def accuracy(scores):
    """Return the share of held-out digits that are read right."""
    return (scores.argmax(1) == test_labels).float().mean().item()


runs = {"float32": fit(enabled=False), "autocast, bfloat16": fit(enabled=True)}

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
for name, (net, losses, seconds) in runs.items():
    ax.semilogy(losses, lw=0.9, label=name)
    with torch.no_grad():
        print(f"{name:20} {accuracy(net(test_images)):.1%} of held-out digits, {seconds:.1f} s")
ax.set(xlabel="step", ylabel="loss")
ax.legend()
plt.show()

# %%
# The curves lie on one another. Whether autocast saves time depends on the processor and on the
# layers: the seconds are those of the machine that built this page, which may be busy, and these
# layers are small. What it always saves is memory for activations.
#
# What is stored tells which rule is at work where:

net, *_ = runs["autocast, bfloat16"]
with torch.autocast("cpu", dtype=torch.bfloat16):
    scores = net(test_images)
    print("weight", net.conv1.weight.dtype, "| scores", scores.dtype, end=" | ")
    print("loss", F.cross_entropy(scores, test_labels).dtype)

# %%
# Multiply in bfloat16, and keep float32
# --------------------------------------
#
# The other way changes no tensor: each factor is rounded to bfloat16 as it is read, and products
# are added in float32. A processor that multiplies such pairs in one instruction gains from it, in
# layers where ``convcore plan LAYER --precision bf16`` says so; others go on in float32.

net, *_ = runs["float32"]
with torch.no_grad():
    exact = net(test_images)
    with torch.backends.conv.flags(algorithm="bfloat16"):  # wherever it is possible
        rounded = net(test_images)

errors = ((rounded - exact).abs().amax(1) / exact.abs().amax(1)).numpy()
top = exact.topk(2, 1).values
margins = ((top[:, 0] - top[:, 1]) / exact.abs().amax(1)).numpy()

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.scatter(margins, errors, s=6)
ax.plot([0, 1], [0, 0.5], color="gray", lw=0.8, label="above it, an answer could change")
ax.set(
    ylim=(0, 3 * errors.max()),
    xlabel="lead of the best score, relative to it",
    ylabel="error, relative",
)
ax.legend()
plt.show()
print(f"accuracy {accuracy(exact):.1%}, with products in bfloat16 {accuracy(rounded):.1%}")

# %%
# Each point is a digit: how far its scores move, and how far ahead the answer is. Those in doubt in
# float32, at the left, are the only ones that another precision could answer otherwise.
#
# A net that only answers takes the switch when it is optimized. What lies between its layers is
# bfloat16 then, too, in half the memory; it reports what that did to the first inputs, at most and
# on average:

fast = torch.optimize_for_inference(net, test_images[:64], precision="bf16")
print(f"difference: {fast.difference:.1e}, mean {fast.mean_difference:.1e}")

# %%
# :doc:`/lower_precision` has each precision's bounds and costs, and the commands that measure them.
