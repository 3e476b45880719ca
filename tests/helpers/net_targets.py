"""What tests run in other threads and processes: parts of nets, whose bits are compared."""

from __future__ import annotations

import numpy as np

import convcore
from convcore import nn
from convcore.nn import functional as F


def step(seed: int) -> bytes:
    """Return the bits of a small net's output and of its weight's gradient."""
    generator = convcore.Generator().manual_seed(seed)
    images = convcore.randn(2, 8, 24, 24, generator=generator)
    weight = convcore.randn(16, 8, 3, 3, generator=generator).requires_grad_()
    out = F.conv2d(images, weight, padding=1)
    (F.max_pool2d(out.relu(), 2) ** 2).mean().backward()
    return out.detach().numpy().tobytes() + weight.grad.numpy().tobytes()


def infer(net: nn.Module, images: np.ndarray) -> np.ndarray:
    with convcore.no_grad():
        return net(convcore.from_numpy(images)).numpy()


def infer_and_count(net: nn.Module, images: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the net's output, and the threads that convcore may use here."""
    return infer(net, images), convcore.get_num_threads()
