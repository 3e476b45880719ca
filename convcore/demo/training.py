"""Training in demos: of the digits' nets, and of a ResNet-8 on patches of photographs.

The digits are scikit-learn's (`convcore.demo.digits`). The second task is to tell which photograph
a patch of 32x32 pixels is from: scikit-learn's china.jpg and flower.jpg, or matplotlib's
grace_hopper.jpg. The right quarter of each photograph is held out for testing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import convcore
from convcore.demo.digits import load_digits, shifted
from convcore.nn import functional as F
from convcore.nn.parallel import DistributedDataParallel
from convcore.optim.lr_scheduler import OneCycleLR
from convcore.utils.data import DataLoader, TensorDataset

PATCH = 32  # side of a patch in pixels
STEP = 16  # pixels from one patch to the next
BATCH = 32
_HELD_OUT = 0.25  # of each photograph's width


@dataclass(frozen=True)
class Task:
    """A classification task: images (N, C, H, W) from 0 to 1 and their classes (N,).

    ``change`` is the data augmentation of the training images.
    """

    name: str
    classes: tuple[str, ...]
    train: TensorDataset
    test: TensorDataset
    change: Callable[[convcore.Tensor], convcore.Tensor]
    epochs: int


@dataclass(frozen=True)
class Step:
    """The result of a batch: its number and epoch, counted from 1, loss and learning rate.

    ``accuracy`` and ``test_loss`` on the test set, after an epoch's last batch; ``seconds`` since
    the start.
    """

    number: int
    epoch: int
    loss: float
    lr: float
    accuracy: float | None
    test_loss: float | None
    seconds: float


def digits_task(seed: int) -> Task:
    """Return the digits, augmented by shifts of up to a pixel."""
    return Task("digits", tuple("0123456789"), *load_digits(seed), shifted, epochs=15)


def patches_task() -> Task:
    """Return the photographs' patches, augmented by horizontal flips."""
    photographs = load_photographs()
    parts: dict[str, list[np.ndarray]] = {"train": [], "test": []}
    for pixels in photographs.values():
        border = round(pixels.shape[1] * (1 - _HELD_OUT))
        parts["train"].append(cut(pixels[:, :border]))
        parts["test"].append(cut(pixels[:, border:]))
    sets = {name: _labelled(patches) for name, patches in parts.items()}
    classes = tuple(photographs)
    return Task("patches", classes, sets["train"], sets["test"], mirrored, epochs=8)


def load_photographs() -> dict[str, np.ndarray]:
    """Return name -> (H, W, 3) pixels from 0 to 1, float32."""
    from matplotlib import cbook, image
    from sklearn.datasets import load_sample_image

    with cbook.get_sample_data("grace_hopper.jpg") as file:
        portrait = image.imread(file, format="jpg")
    found = {name: load_sample_image(f"{name}.jpg") for name in ("china", "flower")}
    found["portrait"] = portrait
    return {name: pixels.astype(np.float32) / np.float32(255) for name, pixels in found.items()}


def cut(pixels: np.ndarray) -> np.ndarray:
    """Return the (N, 3, 32, 32) patches of (H, W, 3) pixels, every 16 pixels along both axes."""
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (PATCH, PATCH), axis=(0, 1))
    return np.ascontiguousarray(windows[::STEP, ::STEP].reshape(-1, 3, PATCH, PATCH))


def _labelled(patches: list[np.ndarray]) -> TensorDataset:
    """Return patches with the index of their photograph as label."""
    labels = np.repeat(np.arange(len(patches)), [len(some) for some in patches])
    images = convcore.from_numpy(np.concatenate(patches))
    return TensorDataset(images, convcore.from_numpy(labels))


def mirrored(images: convcore.Tensor) -> convcore.Tensor:
    """Return images unchanged or flipped horizontally, with equal probability."""
    return images.flip(3) if convcore.rand(()).item() < 0.5 else images


def make_net(task: Task) -> convcore.nn.Module:
    """Return a ResNet-8 for a task."""
    channels = task.train.tensors[0].shape[1]
    return convcore.models.resnet8(num_classes=len(task.classes), in_channels=channels)


def train(
    net: convcore.nn.Module, task: Task, epochs: int | None = None, shards: int | None = None
) -> Iterator[Step]:
    """Train by SGD with momentum and a one-cycle learning rate; yield each batch's result.

    With ``shards`` the processes of the default group divide each batch among them.
    """
    epochs = epochs or task.epochs
    loader = DataLoader(task.train, BATCH, shuffle=True, drop_last=True, num_workers=1)
    optimizer = convcore.optim.SGD(
        net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    schedule = OneCycleLR(optimizer, max_lr=0.1, epochs=epochs, steps_per_epoch=len(loader))
    backward = _backward_of(net, shards)
    start = time.perf_counter()
    number = 0
    for epoch in range(1, epochs + 1):
        for left, (images, labels) in zip(reversed(range(len(loader))), loader, strict=True):
            number += 1
            lr = optimizer.param_groups[0]["lr"]
            optimizer.zero_grad()
            loss = backward(task.change(images), labels)
            optimizer.step()
            if left or epoch < epochs:
                schedule.step()
            tested = (None, None) if left else tested_on(net, *task.test.tensors)
            yield Step(number, epoch, loss.item(), lr, *tested, time.perf_counter() - start)


def _backward_of(net: convcore.nn.Module, shards: int | None) -> Callable[..., convcore.Tensor]:
    """Return what computes the loss of a batch and its gradients."""

    def loss_of(images: convcore.Tensor, labels: convcore.Tensor) -> convcore.Tensor:
        return F.cross_entropy(net(images), labels)

    def backward(images: convcore.Tensor, labels: convcore.Tensor) -> convcore.Tensor:
        loss = loss_of(images, labels)
        loss.backward()
        return loss

    if shards is None:
        return backward
    return partial(DistributedDataParallel(net, shards=shards).backward, loss_of)


def tested_on(
    net: convcore.nn.Module, images: convcore.Tensor, labels: convcore.Tensor
) -> tuple[float, float]:
    """Return the share of images that the net classifies correctly, and the mean cross-entropy."""
    scores = _scores(net, images)
    net.train()
    right = np.equal(scores.argmax(1).numpy(), labels.numpy()).mean()
    return float(right), F.cross_entropy(scores, labels).item()


def answers(net: convcore.nn.Module, images: convcore.Tensor) -> list[int]:
    """Return the class that the net predicts for each image."""
    return _scores(net, images).argmax(1).tolist()


def _scores(net: convcore.nn.Module, images: convcore.Tensor) -> convcore.Tensor:
    net.eval()
    with convcore.no_grad():
        return net(images)
