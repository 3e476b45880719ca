"""
Feature maps and Grad-CAM of a photograph
=========================================

What has a convolutional net seen when it answers? Two ways to look: its *feature maps*, which are
what each convolution passes on, and *Grad-CAM*, a heat map of where in the picture the evidence for
one answer lies. Both need nothing but hooks. The net here is trained first, for about a second:
maps of random weights would show nothing that was learnt.
"""

import matplotlib.pyplot as plt
import numpy as np

import convcore as torch
from convcore import nn
from convcore.demo.training import load_photographs
from convcore.nn import functional as F

# %%
# A net that tells two photographs apart
# --------------------------------------
#
# The task: given a patch of 32x32 pixels, is it from the temple or from the flower? These are
# scikit-learn's two sample photographs, here at half their size. The upper half of both is held
# out: the net is trained on the lower halves alone.

pixels = np.stack([load_photographs()[name] for name in ("china", "flower")])
photographs = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()
photographs = F.avg_pool2d(photographs, 2)
names = ("temple", "flower")
border = photographs.shape[2] // 2
upper, lower = photographs[:, :, :border], photographs[:, :, border:]
print("upper halves:", tuple(upper.shape), " lower halves:", tuple(lower.shape))


def patches(pictures, count, generator):
    """Return ``count`` random patches of each of two pictures, and their labels."""
    height, width = pictures.shape[2:]
    rows = torch.randint(0, height - 32, (2 * count,), generator=generator)
    columns = torch.randint(0, width - 32, (2 * count,), generator=generator)
    labels = torch.arange(2).repeat_interleave(count)
    cut = [
        pictures[label, :, row : row + 32, column : column + 32]
        for label, row, column in zip(labels, rows, columns, strict=True)
    ]
    return torch.stack(cut), labels


torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2),
)  # fmt: skip
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
draws = torch.Generator().manual_seed(0)
for _ in range(80):
    images, labels = patches(lower, 16, draws)
    loss = F.cross_entropy(net(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

net.eval()
images, labels = patches(upper, 200, draws)
with torch.no_grad():
    answers = net(images).argmax(1)
print(f"accuracy on held-out patches: {(answers == labels).float().mean().item():.1%}")

# %%
# Feature maps
# ------------
#
# The net ends with a global average pool, so it takes pictures of any size, whole photographs too.
# For a test that it cannot have learnt by heart, the held-out halves of both are put side by side:
# temple left, flower right. A forward hook on each ReLU stores what passes through.

scene = torch.cat([upper[0], upper[1]], dim=2).unsqueeze(0)
middle = scene.shape[3] // 2

seen: list[torch.Tensor] = []
relus = [module for module in net if isinstance(module, nn.ReLU)]
handles = [
    relu.register_forward_hook(lambda module, inputs, output: seen.append(output.detach()))
    for relu in relus
]
with torch.no_grad():
    scores = net(scene)
for handle in handles:
    handle.remove()
print({name: round(score, 2) for name, score in zip(names, scores[0].tolist(), strict=True)})

figure, axes = plt.subplots(3, 4, figsize=(9, 2.4), layout="constrained")
for row, (maps, line) in enumerate(zip(seen, axes, strict=True)):
    left, right = (half[0].mean(dim=(1, 2)) for half in maps.tensor_split(2, dim=3))
    order = (right - left).argsort().tolist()
    for channel, ax in zip(order[:2] + order[-2:], line, strict=True):
        ax.imshow(maps[0, channel], cmap="magma")
        ax.set_title(f"layer {row + 1}, map {channel}", fontsize="small")
        ax.set(xticks=[], yticks=[])
figure.suptitle("Maps that answer most to the left half, and to the right (bright: large)")
plt.show()

# %%
# The first layer's maps still look like the photograph: its colours and edges. The last layer's are
# coarse, and some answer to one half of the scene alone: these carry the decision.
#
# Grad-CAM
# --------
#
# Which of the last layer's maps speak for "flower"? Those whose gradient is positive: if the map
# became brighter, the score of "flower" would rise. Grad-CAM [1]_ weighs every map by the mean of
# its gradient, adds them up, and keeps what is positive. With hooks that takes fifteen lines:


def grad_cam(net, layer, picture, label):
    """Return the evidence for a label in a (1, C, H, W) picture: (H, W), from 0 to 1."""
    seen = {}

    def keep(module, inputs, output):
        seen["maps"] = output
        output.register_hook(lambda grad: seen.update(grad=grad))

    handle = layer.register_forward_hook(keep)
    net(picture)[0, label].backward()
    handle.remove()
    net.zero_grad()
    importance = seen["grad"].mean(dim=(2, 3), keepdim=True)
    cam = F.relu((importance * seen["maps"].detach()).sum(dim=1, keepdim=True))
    cam = F.interpolate(cam, size=picture.shape[2:], mode="bilinear")
    return (cam / cam.max())[0, 0].numpy()


figure, axes = plt.subplots(3, 1, figsize=(7.5, 5.2), layout="constrained")
axes[0].imshow(scene[0].permute(1, 2, 0))
axes[0].set_title("what the net is given: the held-out halves")
for label, ax in enumerate(axes[1:]):
    cam = grad_cam(net, relus[-1], scene, label)
    own = cam[:, :middle] if label == 0 else cam[:, middle:]
    share = own.sum() / cam.sum()
    ax.imshow(scene[0].permute(1, 2, 0))
    ax.imshow(cam, cmap="inferno", alpha=0.65, vmin=0, vmax=1)
    ax.set_title(f'Grad-CAM of "{names[label]}"')
    print(f"{names[label]}: {share:.0%} of the evidence lies in its own photograph")
for ax in axes:
    ax.set(xticks=[], yticks=[])
    ax.axvline(middle - 0.5, color="white", lw=1)
figure.colorbar(axes[1].images[1], ax=axes[1:], label="evidence")
plt.show()

# %%
# Each answer's evidence lies in its own photograph. But look closely at the flower's map: the dark,
# blurred leaves speak for "flower" more than the petals do. The net is right for a reason that
# would fail for a flower in snow. Grad-CAM shows such shortcuts (a background, a watermark, a
# border); no accuracy does.
#
# With a ResNet-18 trained on ImageNet you would use the same function on its last block:
# ``grad_cam(net, net.layer4, picture, label)``; ``convcore.models.resnet18`` takes torchvision's
# checkpoints. ``convcore demo maps --weights FILE`` draws its feature maps.
#
# .. [1] R. Selvaraju and others, "Grad-CAM: visual explanations from deep networks via
#        gradient-based localization", ICCV 2017, equations 1 and 2.
