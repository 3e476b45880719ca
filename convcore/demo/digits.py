"""The digits demo: train a small net on handwritten digits, and look inside it with hooks.

The 1,797 handwritten digits are the test set of E. Alpaydin and C. Kaynak, Optical Recognition of
Handwritten Digits, UCI Machine Learning Repository (1998), as distributed with scikit-learn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import convcore
from convcore import nn
from convcore.nn import functional as F

BATCH = 32
_HELD_OUT = 5  # one digit in five is held out for testing


@dataclass(frozen=True)
class Digits:
    """Training and test sets: images (N, 1, 8, 8), float32 from 0 to 1, and labels (N,)."""

    train_images: convcore.Tensor
    train_labels: convcore.Tensor
    test_images: convcore.Tensor
    test_labels: convcore.Tensor


@dataclass(frozen=True)
class Epoch:
    """The result of an epoch: number, mean loss, test accuracy, and seconds since the start."""

    number: int
    loss: float
    accuracy: float
    seconds: float


@dataclass(frozen=True)
class Look:
    """What hooks captured while the net classified one digit.

    ``image`` (8, 8), ``maps`` (channels, 8, 8) after the first convolution, and ``gradient``
    (8, 8), the derivative of the right class's score with respect to each pixel.
    """

    image: np.ndarray
    maps: np.ndarray
    gradient: np.ndarray
    label: int
    answer: int


class Reader(nn.Module):
    """A net of two convolutions, each with ReLU and max pooling, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.linear = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images: convcore.Tensor) -> convcore.Tensor:
        """Return (N, 10) scores of (N, 1, 8, 8) images."""
        x = self.pool(F.relu(self.conv1(images)))
        x = self.pool(F.relu(self.conv2(x)))
        return self.linear(self.dropout(x.flatten(1)))


def load_digits(seed: int) -> Digits:
    """Return scikit-learn's digits, shuffled, a fifth of them held out."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(seed).permutation(len(data.target))
    pixels = (data.images[order, np.newaxis] / 16).astype(np.float32)
    images, labels = convcore.from_numpy(pixels), convcore.from_numpy(data.target[order])
    n_test = len(order) // _HELD_OUT
    return Digits(images[n_test:], labels[n_test:], images[:n_test], labels[:n_test])


def accuracy(net: nn.Module, images: convcore.Tensor, labels: convcore.Tensor) -> float:
    """Return the share of images that the net classifies correctly."""
    net.eval()
    with convcore.no_grad():
        right = (net(images).argmax(1) == labels).sum().item()
    net.train()
    return right / len(labels)


def shifted(images: convcore.Tensor) -> convcore.Tensor:
    """Return (N, C, H, W) images shifted at random by up to a pixel (data augmentation)."""
    down, right = convcore.randint(0, 3, (2,)).tolist()
    height, width = images.shape[2:]
    return F.pad(images, (1, 1, 1, 1))[:, :, down : down + height, right : right + width]


def train(net: nn.Module, digits: Digits, epochs: int) -> Iterator[Epoch]:
    """Train by SGD with momentum and a learning rate that falls to 0; yield each epoch's result."""
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    start = time.perf_counter()
    n = len(digits.train_labels)
    for number in range(1, epochs + 1):
        losses = []
        order = convcore.randperm(n)
        for first in range(0, n, BATCH):
            for group in optimizer.param_groups:
                group["lr"] = 0.1 * (1 - (number - 1 + first / n) / epochs)
            chosen = order[first : first + BATCH]
            loss = F.cross_entropy(
                net(shifted(digits.train_images[chosen])), digits.train_labels[chosen]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        tested = accuracy(net, digits.test_images, digits.test_labels)
        yield Epoch(number, float(np.mean(losses)), tested, time.perf_counter() - start)


def look(net: Reader, image: convcore.Tensor, label: int) -> Look:
    """Classify one (1, 8, 8) image with hooks registered; return what they captured."""
    seen = {}
    handles = [
        net.conv1.register_forward_hook(
            lambda module, args, output: seen.update(maps=output.detach())
        ),
        net.register_full_backward_hook(
            lambda module, grad_input, grad_output: seen.update(gradient=grad_input[0])
        ),
    ]
    net.eval()
    batch = image.unsqueeze(0).clone().requires_grad_()
    scores = net(batch)
    scores[0, label].backward()
    for handle in handles:
        handle.remove()
    return Look(
        image=image[0].numpy(),
        maps=seen["maps"][0].numpy(),
        gradient=seen["gradient"][0, 0].numpy(),
        label=label,
        answer=int(scores.argmax()),
    )
