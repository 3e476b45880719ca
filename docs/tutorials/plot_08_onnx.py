"""
A net that somebody sent, as an ONNX file
=========================================

Nets travel between libraries as ONNX files. Here one arrives that tells patches of two photographs
apart. We run it on a whole photograph, look at what its layers see, train its last layer for
another task, and send it on. (So that this page needs no network, we first play the sender.)
"""

import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import convcore
from convcore import inspection, nn
from convcore.nn import functional as F

convcore.manual_seed(0)
temple, flower = (
    convcore.tensor(np.asarray(load_sample_image(name), "float32").transpose(2, 0, 1) / 255)
    for name in ("china.jpg", "flower.jpg")
)


def patches(photograph, count, rows=None, size=32):
    """Return (count, 3, size, size) patches at random places, between two rows if given."""
    top, bottom = rows or (0, photograph.shape[1])
    y = convcore.randint(top, bottom - size + 1, (count,)).tolist()
    x = convcore.randint(0, photograph.shape[2] - size + 1, (count,)).tolist()
    return convcore.stack(
        [photograph[:, a : a + size, b : b + size] for a, b in zip(y, x, strict=True)]
    )


def fit(net, parameters, draw, steps):
    """Train on fresh patches of two classes in each step; return the accuracy on others."""
    optimizer = convcore.optim.Adam(parameters, lr=1e-2)
    labels = convcore.arange(2).repeat_interleave(32)
    for _ in range(steps):
        scores = net(convcore.cat(draw(32)))
        optimizer.zero_grad()
        F.cross_entropy(scores, labels).backward()
        optimizer.step()
    scores = net(convcore.cat(draw(32)))
    return (scores.argmax(1) == labels).float().mean().item()


class MeanOfPixels(nn.Module):
    """The mean of each channel: (N, C, H, W) to (N, C)."""

    def forward(self, maps):
        """Return the means."""
        return maps.mean((2, 3))


sent = nn.Sequential(
    nn.Conv2d(3, 12, 5, stride=2), nn.BatchNorm2d(12), nn.ReLU(),
    nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
    nn.Conv2d(24, 2, 1), MeanOfPixels(),
)  # fmt: skip
fit(sent, sent.parameters(), lambda n: (patches(temple, n), patches(flower, n)), steps=80)

folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "photographs.onnx"
free = {"patches": {0: "batch", 2: "height", 3: "width"}}
convcore.onnx.export(sent, patches(temple, 1), file, input_names=["patches"], dynamic_axes=free)

# %%
# Load it
# -------
#
# The net is one like any other: each node of the graph is a submodule, each array of weights a
# parameter. Nodes keep the names that they have in the file.

net = convcore.onnx.load(file)
print(net)

held_out = convcore.cat([patches(temple, 200), patches(flower, 200)])
with convcore.no_grad():
    right = (net(held_out).argmax(1) == convcore.arange(2).repeat_interleave(200)).float().mean()
print(f"patches that it assigns to the right photograph: {right.item():.1%}")

# %%
# What its layers see
# -------------------
#
# Height and width are free in the file, so the whole photograph goes in. Its last convolution
# gives two scores for each place, before they are averaged: `inspection.capture` keeps them, and
# the maps of the layers before, by the nodes' names.

with convcore.no_grad(), inspection.capture(net, ["*Conv", "*Relu"]) as seen:
    net(temple.unsqueeze(0))
for name, value in seen.output.items():
    print(f"{name:12} {list(value.shape)}")

# %%
# White is a strong response. Maps of the first layer are of the sky, of light surfaces, of all that
# is bright. The last picture tells what speaks for the temple's photograph, in red: most of it, the
# sky above all, but not some roofs (blue), which have colors of the other photograph's flower.

first, scores = list(seen.output)[1], list(seen.output.values())[-1]
shown: list[tuple] = [("the photograph", temple.permute(1, 2, 0), None)]
shown += [(f"{first}, map {k}", seen[first][0, k], "gray") for k in range(4)]
shown += [("score of temple less flower", scores[0, 0] - scores[0, 1], "coolwarm")]


def draw(pictures):
    """Show pictures side by side, three in a row."""
    _, axes = plt.subplots(
        -(-len(pictures) // 3), 3, figsize=(7.5, 1.9 * -(-len(pictures) // 3)),
        layout="constrained", squeeze=False,
    )  # fmt: skip
    for ax in axes.flat:
        ax.axis("off")
    for ax, (title, picture, colors) in zip(axes.flat, pictures, strict=False):
        most = float(picture.abs().max())
        least = -most if colors == "coolwarm" else 0  # 0 is white there
        ax.imshow(picture.numpy(), cmap=colors, vmin=least, vmax=most)
        ax.set_title(title, fontsize=9)
    plt.show()


draw(shown)

# %%
# Train its last layer for another task
# -------------------------------------
#
# Sky or not? The upper 100 rows of this photograph are sky, the lower 150 are not. `train_only`
# freezes everything but the last convolution; gradients reach that one's weights as in a net of our
# own. The batch norm stays in evaluation mode, so that it keeps the statistics that it came with.

last = [name for name, node in net.nodes.items() if isinstance(node, nn.Conv2d)][-1]
print("trained:", convcore.onnx.train_only(net, last))
top, bottom = (0, 100), (temple.shape[1] - 150, temple.shape[1])
accuracy = fit(
    net, net.parameters(), lambda n: (patches(temple, n, top), patches(temple, n, bottom)), 60
)
print(f"sky or not, on fresh patches: {accuracy:.1%}")

with convcore.no_grad(), inspection.capture(net, nn.Conv2d) as seen:
    net(temple.unsqueeze(0))
scores = list(seen.output.values())[-1]
draw(
    [
        ("the photograph", temple.permute(1, 2, 0), None),
        ("score of sky less ground", scores[0, 0] - scores[0, 1], "coolwarm"),
        ("taken for sky", (scores[0, 0] > scores[0, 1]).float(), "gray"),
    ]
)

# %%
# Send it on, and run it fast
# ---------------------------
#
# `save` writes the model that came, with the new weights; loaded again, it gives the same bits.
# `optimize_for_inference` folds the batch norm, fuses the ReLUs and makes a plan of the rest, as
# for every other net.

convcore.onnx.save(net, file)
again = convcore.onnx.load(file)
with convcore.no_grad():
    print("the same bits:", convcore.equal(again(held_out), net(held_out)))

fast = convcore.optimize_for_inference(net, held_out)


def milliseconds(call):
    """Return the least time of 20 calls."""
    times = []
    for _ in range(20):
        start = perf_counter()
        call(held_out)
        times.append(perf_counter() - start)
    return 1e3 * min(times)


with convcore.no_grad():
    print(f"400 patches: {milliseconds(net):.1f} ms, optimized {milliseconds(fast):.1f} ms")
folder.cleanup()
