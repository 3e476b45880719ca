"""The maps demo: the inputs of a net's convolutions for a photograph, captured by hooks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import convcore
from convcore import nn

SHOWN = 4  # maps of each convolution, the first ones

# Mean and standard deviation of ImageNet's colours (red, green, blue), for which ResNet-18's
# checkpoints are trained.
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


@dataclass(frozen=True)
class Input:
    """A convolution's name, its input's shape (C, H, W), and the first channels of that input."""

    name: str
    shape: tuple[int, int, int]
    maps: np.ndarray


@dataclass(frozen=True)
class Sight:
    """A photograph (3, H, W) from 0 to 1, the captured inputs, and the forward pass's seconds."""

    photograph: np.ndarray
    inputs: list[Input]
    seconds: float


def load_net(weights: Path) -> nn.Module:
    """Return a ResNet-18 with the weights of a checkpoint.

    Raises
    ------
    OSError, RuntimeError, TypeError, ValueError, pickle.UnpicklingError
        The file cannot be read, or does not hold a ResNet-18's weights.
    """
    net = convcore.models.resnet18()
    net.load_state_dict(convcore.load(weights))
    return net


def see(net: nn.Module, photograph: np.ndarray, imagenet: bool = False) -> Sight:
    """Run a net on a photograph with a forward pre-hook on every Conv2d; return the inputs.

    imagenet : whether the net takes colours in the units of ImageNet's checkpoints, not 0 to 1
    """
    seen: list[Input] = []

    def keep(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[convcore.Tensor, ...]) -> None:
            given = args[0][0]
            seen.append(Input(name, tuple(given.shape), given[:SHOWN].clone().numpy()))

        return hook

    handles = [
        module.register_forward_pre_hook(keep(name))
        for name, module in net.named_modules()
        if isinstance(module, nn.Conv2d)
    ]
    pixels = photograph
    if imagenet:
        pixels = (pixels - MEAN[:, np.newaxis, np.newaxis]) / STD[:, np.newaxis, np.newaxis]
    net.eval()
    start = time.perf_counter()
    with convcore.no_grad():
        net(convcore.from_numpy(pixels[np.newaxis]))
    seconds = time.perf_counter() - start
    for handle in handles:
        handle.remove()
    return Sight(photograph, seen, seconds)
