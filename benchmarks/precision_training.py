"""Accuracy of a ResNet-8 on images, trained in float32 and under autocast in bfloat16.

    python benchmarks/precision_training.py --seeds 5 --epochs 8
    python benchmarks/precision_training.py --data patches
    python benchmarks/precision_training.py --inference

The images are scikit-learn's digits, or patches of its two photographs, of which the net says whose
they are.  Each seed draws the split (three quarters for training), the first weights and the order
of the batches; both precisions get the same.  With --inference the net is trained in float32 alone,
and the second figure is that of `optimize_for_inference` with precision='bf16'.  Needs scikit-learn
and the extra [bfloat16].
"""

from __future__ import annotations

import argparse
from statistics import mean

import numpy as np
from sklearn.datasets import load_digits, load_sample_images
from sklearn.model_selection import train_test_split

import convcore
from convcore import Tensor, nn
from convcore.nn import functional as F


class Block(nn.Module):
    """Two convolutions and a shortcut, as He et al. 2016."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            conv = nn.Conv2d(before, after, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        out = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(out + self.shortcut(x))


def resnet8(channels: int, classes: int) -> nn.Sequential:
    """Return a net of three blocks."""
    first = nn.Conv2d(channels, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
    blocks = Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)
    last = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)
    return nn.Sequential(*first, *blocks, *last)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return 1,797 images of 8x8 pixels, and which digit each is."""
    images, labels = load_digits(return_X_y=True)
    return images.reshape(-1, 1, 8, 8) / 16, labels


def patches() -> tuple[np.ndarray, np.ndarray]:
    """Return 2,080 patches of 16x16 pixels in colour, and which of two photographs each is of."""
    cut = []
    for photo in load_sample_images().images:
        rows, columns = (size // _PATCH for size in photo.shape[:2])
        inside = photo[: rows * _PATCH, : columns * _PATCH] / 255
        tiles = inside.reshape(rows, _PATCH, columns, _PATCH, -1).transpose(0, 2, 4, 1, 3)
        cut.append(tiles.reshape(rows * columns, -1, _PATCH, _PATCH))
    return np.concatenate(cut), np.repeat(np.arange(len(cut)), [len(one) for one in cut])


_PATCH = 16
DATA = {"digits": digits, "patches": patches}


def trained(x: Tensor, y: Tensor, seed: int, epochs: int, lower: bool) -> nn.Module:
    """Return a net that was trained, under autocast if `lower`, in evaluation mode."""
    convcore.manual_seed(seed)
    net = resnet8(x.shape[1], int(y.max()) + 1)
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    schedule = convcore.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for batch in convcore.randperm(len(x)).split(64):
            optimizer.zero_grad()
            with autocast(lower):
                loss = F.cross_entropy(net(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
        schedule.step()
    return net.eval()


def autocast(lower: bool) -> convcore.autocast:
    """Return the context of a precision."""
    return convcore.autocast("cpu", dtype=convcore.bfloat16, enabled=lower)


def accuracies(
    images: np.ndarray, labels: np.ndarray, seed: int, epochs: int, inference: bool
) -> tuple[float, float]:
    """Return the percentages of test images that are recognised in float32 and in bfloat16."""
    parts = train_test_split(images, labels, random_state=seed, stratify=labels)
    x, x_test = (convcore.tensor(part).float() for part in parts[:2])
    y, y_test = (convcore.tensor(part) for part in parts[2:])

    def accuracy(net: nn.Module, lower: bool = False) -> float:
        with convcore.no_grad(), autocast(lower):
            return 100 * (net(x_test).argmax(1) == y_test).float().mean().item()

    net = trained(x, y, seed, epochs, lower=False)
    if inference:
        return accuracy(net), accuracy(convcore.optimize_for_inference(net, precision="bf16"))
    return accuracy(net), accuracy(trained(x, y, seed, epochs, lower=True), lower=True)


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument(
        "--inference", action="store_true", help="train in float32, run in bfloat16"
    )
    options = parser.parse_args()
    data = DATA[options.data]()
    way = "bfloat16 inference" if options.inference else "autocast"
    found = []
    for seed in range(options.seeds):
        found.append(accuracies(*data, seed, options.epochs, options.inference))
        print(f"seed {seed}: float32 {found[-1][0]:.2f} %, {way} {found[-1][1]:.2f} %")
    exact, lower = map(mean, zip(*found, strict=True))
    print(f"mean: float32 {exact:.2f} %, {way} {lower:.2f} %, difference {lower - exact:+.2f}")


if __name__ == "__main__":
    main()
