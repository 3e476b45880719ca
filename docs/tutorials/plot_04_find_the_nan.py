"""
Find the NaN
============

The loss is ``nan``. Somewhere a number was divided by zero, and everything that it touched since is
not a number either. This tutorial hunts one down that is hard to see: the loss is finite, and only
a gradient is not. The tools are hooks, which tell *where* it appears, and anomaly detection, which
tells *which line* made it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import convcore as torch
from convcore import engine, nn
from convcore.demo.training import load_photographs

# %%
# The patient
# -----------
#
# A net that learns to measure how strong the edges of a photograph are. Its layer ``Edges``
# convolves with two filters, along x and along y, and takes the length of the two answers, as
# Sobel's operator does. Part of the photograph is painted over in one colour.

pixels = load_photographs()["china"][::4, ::4].transpose(2, 0, 1)
photograph = torch.from_numpy(np.ascontiguousarray(pixels[None]))
photograph[:, :, 60:90, 20:80] = 0.5


class Edges(nn.Module):
    """The length of two filters' answers at each pixel."""

    def __init__(self):
        super().__init__()
        self.along_x = nn.Conv2d(3, 1, kernel_size=3, bias=False)
        self.along_y = nn.Conv2d(3, 1, kernel_size=3, bias=False)
        step = torch.tensor([1.0, 0.0, -1.0]) / 8
        with torch.no_grad():
            self.along_x.weight.copy_(step.view(1, 1, 1, 3).expand(1, 3, 3, 3))
            self.along_y.weight.copy_(step.view(1, 1, 3, 1).expand(1, 3, 3, 3))

    def forward(self, x):
        """Return the edges of (N, 3, H, W): (N, 1, H-2, W-2)."""
        return torch.sqrt(self.along_x(x) ** 2 + self.along_y(x) ** 2)


def make_net():
    """Return the net: edges, a convolution, and their mean."""
    torch.manual_seed(0)
    return nn.Sequential(Edges(), nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


net = make_net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    loss = net(photograph).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item()}")

# %%
# The first loss is fine, the second is not: so the first *step* has spoilt the weights.
#
# First question: which weights, and which gradients?
# ---------------------------------------------------

for name, parameter in net.named_parameters():
    spoilt = parameter.grad.isnan().any().item()
    print(f"{name:18} gradient {'nan' if spoilt else 'finite'}")

# %%
# After two steps everything is spoilt, which says little. Look at the *first* backward pass of a
# new net instead, and register a hook on every module: forward hooks look at the outputs, full
# backward hooks at the gradients that come in and go out. The first module that receives finite
# gradients and hands on others is the culprit.


def watch(net):
    """Print, for each module, whether what passes is finite; return the hooks' handles."""

    def finite(tensors):
        return all(t is None or bool(t.isfinite().all()) for t in tensors)

    def forward(name):
        def hook(module, inputs, output):
            print(f"forward   {name:9} output finite: {finite([output])}")

        return hook

    def backward(name):
        def hook(module, grad_input, grad_output):
            given, made = finite(grad_output), finite(grad_input)
            print(f"backward  {name:9} given finite: {given!s:6} handed on finite: {made}")

        return hook

    handles = []
    for name, module in net.named_modules():
        if name:
            handles.append(module.register_forward_hook(forward(name)))
            handles.append(module.register_full_backward_hook(backward(name)))
    return handles


net = make_net()
handles = watch(net)
picture = photograph.clone().requires_grad_()
net(picture).square().mean().backward()
for handle in handles:
    handle.remove()

# %%
# All outputs are finite. Backwards, the layers 3, 2 and 1 hand on finite gradients. Layer 0 is
# given finite ones and hands on others (the last line), and the two convolutions inside it are
# already *given* what is not finite: it is made between the end of layer 0 and its convolutions, by
# the arithmetic of ``Edges.forward`` itself.
#
# Second question: which line?
# ----------------------------
#
# ``detect_anomaly`` stores, for every operation, the line that called it, and stops at the first
# one whose gradient is NaN. It costs time, so use it to search and not to train.

net = make_net()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        with torch.autograd.detect_anomaly():
            net(photograph).square().mean().backward()
    except RuntimeError as error:
        print("RuntimeError:", error)
print("the line:", str(caught[-1].message).splitlines()[-1].strip())

# %%
# The line is found, and the operation: the gradient of a square. What is wrong with it? The
# derivative of :math:`\sqrt{u}` is :math:`1 / (2\sqrt{u})`, which is infinite at 0, and that of
# :math:`v^2` is :math:`2v`, which is 0 there: infinity times zero is NaN. In a photograph the
# neighbours of a pixel are hardly ever all equal, until somebody paints a part of it in one colour.
# The photograph's gradient shows the place:

net = make_net()
picture = photograph.clone().requires_grad_()
net(picture).square().mean().backward()

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.imshow(photograph[0].permute(1, 2, 0))
left.set_title("the photograph")
right.imshow(picture.grad[0].isnan().any(dim=0), cmap="gray_r")
right.set_title("where its gradient is NaN (black)")
for ax in (left, right):
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# The mend is a number under the root that is small beside any real edge:


def safe(self, x):
    """Return the edges of (N, 3, H, W), with a slope that is finite everywhere."""
    return torch.sqrt(self.along_x(x) ** 2 + self.along_y(x) ** 2 + 1e-8)


Edges.forward = safe
net = make_net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = net(photograph).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.3e}")

# %%
# A NaN that spreads further than it should
# -----------------------------------------
#
# When the NaN is in the *data*, for instance a dead pixel, its neighbours tell where it came from:
# a 3x3 convolution spoils 3x3 outputs. In float32, many convolutions are computed by Winograd's
# method, which makes tiles of outputs out of sums and differences of a tile of inputs; there a NaN
# may spoil its whole tile. Strict mode keeps to direct sums while you search.

image = np.random.default_rng(0).standard_normal((1, 64, 24, 24)).astype(np.float32)
weight = np.random.default_rng(1).standard_normal((64, 64, 3, 3)).astype(np.float32)
image[0, 0, 9, 9] = np.nan
spoilt = {}
for strict in (False, True):
    with torch.backends.conv.flags(strict=strict):
        output = engine.conv2d(image, weight, padding=1)
    spoilt[strict] = np.isnan(output[0, 0])
    print(f"strict={strict}: {spoilt[strict].sum()} outputs of each map are NaN")

figure, axes = plt.subplots(1, 2, figsize=(6.5, 3.4), layout="constrained")
for ax, (strict, outputs) in zip(axes, spoilt.items(), strict=True):
    ax.imshow(outputs, cmap="gray_r")
    ax.plot(9, 9, "x", color="tab:orange")
    ax.set(title=f"strict={strict}", xticks=[], yticks=[])
figure.suptitle("NaN outputs of one map (black); the cross is the NaN input")
plt.show()

# %%
# In short:
#
# 1. Is the loss finite, and the weights after one step? Then look at gradients.
# 2. Hooks on all modules: which is the first that hands on what it was not given?
# 3. ``detect_anomaly``: which line of it?
# 4. ``convcore.backends.conv.strict = True`` while you search for a NaN in the data.
