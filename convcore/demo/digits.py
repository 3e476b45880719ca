"""The digits demo: a small net for handwritten digits, and a look inside it with hooks.

The 1,797 handwritten digits are the test set of E. Alpaydin and C. Kaynak, Optical Recognition of
Handwritten Digits, UCI Machine Learning Repository (1998), as distributed with scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import convcore
from convcore import nn
from convcore.nn import functional as F
from convcore.utils.data import TensorDataset

_HELD_OUT = 5  # one digit in five is held out for testing


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


def load_digits(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Return scikit-learn's digits, shuffled, and the fifth of them that is held out.

    Images (N, 1, 8, 8), float32 from 0 to 1, and labels (N,).
    """
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(seed).permutation(len(data.target))
    pixels = (data.images[order, np.newaxis] / 16).astype(np.float32)
    images, labels = convcore.from_numpy(pixels), convcore.from_numpy(data.target[order])
    n_test = len(order) // _HELD_OUT
    held_out = TensorDataset(images[:n_test], labels[:n_test])
    return TensorDataset(images[n_test:], labels[n_test:]), held_out


def shifted(images: convcore.Tensor) -> convcore.Tensor:
    """Return (N, C, H, W) images shifted at random by up to a pixel (data augmentation)."""
    down, right = convcore.randint(0, 3, (2,)).tolist()
    height, width = images.shape[2:]
    return F.pad(images, (1, 1, 1, 1))[:, :, down : down + height, right : right + width]


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
