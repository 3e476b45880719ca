"""
Make it fast for inference
==========================

A net that only answers can be several times as fast as one that still learns. This tutorial takes a
MobileNetV2 from the state in which training leaves it to the fastest that convcore has, a step at a
time, and measures each step on the machine that builds this page. The times are of that machine,
which may be busy; run the script on yours.
"""

import time

import matplotlib.pyplot as plt

import convcore as torch
from convcore.models import mobilenet_v2

torch.manual_seed(0)
net = mobilenet_v2()
image = torch.rand(1, 3, 224, 224)
times = {}


def measure(name, call):
    """Print and keep the shortest of nine calls in milliseconds: others can only delay one."""
    samples = []
    for _ in range(9):
        start = time.perf_counter()
        call()
        samples.append(1e3 * (time.perf_counter() - start))
    times[name] = min(samples)
    print(f"{name:36} {times[name]:6.1f} ms")


# %%
# The weights are random here, as nobody trained this net: an answer takes as long with them as with
# others.
#
# 1. Say that it shall not learn
# ------------------------------
#
# ``eval()`` is no matter of speed but of right answers: dropout stops, and batch norm uses the
# statistics that it has collected, so that an answer does not depend on what else is in the batch.
# Then ``no_grad()`` (or ``inference_mode()``): without it every operation is recorded for a
# backward pass that never comes, and all its inputs are kept in memory.

torch.set_num_threads(1)
net.eval()
measure("eval()", lambda: net(image))
with torch.no_grad():
    measure("... and no_grad()", lambda: net(image))

# %%
# 2. Choose the memory format
# ---------------------------
#
# In ``channels_last`` the channels of a pixel lie side by side in memory. Most convolutions like
# that, above all the depthwise ones of a MobileNet. Convert the net once and each input once; what
# lies between follows by itself.

net = net.to(memory_format=torch.channels_last)
image = image.to(memory_format=torch.channels_last)
with torch.no_grad():
    measure("... and channels_last", lambda: net(image))

# %%
# 3. Optimize
# -----------
#
# ``optimize_for_inference`` makes a copy that can do nothing but answer, in evaluation mode. Batch
# norms are folded into the convolutions before them, activations are applied while a block of the
# result is still in the cache, weights are packed as the kernels read them, and memory is laid out
# beforehand. At the first call with a new shape it plans; that call takes longer.

fast = torch.optimize_for_inference(net, image)
start = time.perf_counter()
fast(image)
print(f"first call, with its plan: {1e3 * (time.perf_counter() - start):.0f} ms")
measure("optimize_for_inference", lambda: fast(image))

# %%
# The answers are the same up to rounding:

with torch.no_grad():
    exact = net(image)
difference = (fast(image) - exact).abs().max() / exact.abs().max()
print(f"largest difference, relative to the largest score: {difference.item():.1e}")

# %%
# 4. Threads
# ----------
#
# All of this ran on one thread. ``set_num_threads`` says how many a call may use; the default is
# what the process is allowed, by its CPU affinity and a container's quota. More threads make *one*
# answer come sooner. A server with many requests at once gets more answers a second from one
# process a core, with one thread each. The answers are the same bits either way.

on_one = fast(image)
for threads in (1, 2):
    torch.set_num_threads(threads)
    measure(f"optimized, threads: {threads}", lambda: fast(image))
print("the same bits:", torch.equal(on_one, fast(image)))

# %%
# 5. Batches
# ----------
#
# Does it pay to collect images, and to give them together? Compare the milliseconds *an image*:

torch.set_num_threads(1)
batch = torch.rand(4, 3, 224, 224).to(memory_format=torch.channels_last)
measure("optimized, a batch of 4", lambda: fast(batch))
one, four = times["optimized, threads: 1"], times["optimized, a batch of 4"]
print(f"an image alone {one:.1f} ms, one of four {four / 4:.1f} ms")

# %%
# A MobileNet gains little, if anything: one image keeps the processor as busy as four. Nets with
# large weights, such as VGG-16, gain more, since the weights are then read from memory once for
# all.

# %%
# What it comes to
# ----------------

steps = {name: times[name] for name in list(times)[:4]}
figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
bars = ax.barh(list(steps), list(steps.values()), color="tab:blue")
ax.bar_label(bars, fmt="%.1f ms", padding=3)
ax.invert_yaxis()
ax.margins(x=0.15)
ax.set(xlabel="ms an image, one thread", title="MobileNetV2, one image of 224 x 224")
plt.show()

# %%
# If it is slower than you expect, ask ``convcore info``: it names what holds a machine back, such
# as an environment variable that keeps BLAS to an old processor's kernels. ``convcore bench --nets
# mobilenet_v2`` measures the same net beside PyTorch, ONNX Runtime and OpenVINO where they are
# installed, fairly: in turns, in processes of their own.
