"""Filters over photographs, and the gradient of the responses' energy back to the pixels."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from convcore import engine
from convcore.demo.filters import SIZE, Bank, make_bank

_PADDING = SIZE // 2


@dataclass(frozen=True)
class Photographs:
    """Names, and pixels (N, 3, H, W), float32 between 0 and 1, channels_last in memory."""

    names: tuple[str, ...]
    pixels: np.ndarray


@dataclass(frozen=True)
class Responses:
    """What the filters answered, how much energy that is, and which way each pixel would raise it.

    ``responses`` (N, n_filters, H, W); ``gradient`` (N, 3, H, W), the derivative of ``energy`` by
    the pixels; ``seconds`` of the forward pass and of the backward pass.
    """

    photographs: Photographs
    bank: Bank
    responses: np.ndarray
    energy: float
    gradient: np.ndarray
    seconds: tuple[float, float]


def load_photographs() -> Photographs:
    """Return the two photographs that scikit-learn carries, china.jpg and flower.jpg."""
    from sklearn.datasets import load_sample_images

    images = load_sample_images()
    names = tuple(name.rsplit("/", 1)[-1].removesuffix(".jpg") for name in images.filenames)
    # The files hold rows of (red, green, blue): (N, H, W, 3) in memory, and it stays that way.
    pixels = np.stack(images.images).astype(np.float32) / np.float32(255)
    return Photographs(names, pixels.transpose(0, 3, 1, 2))


def respond(photographs: Photographs) -> Responses:
    """Filter the photographs and take the energy's gradient back to the pixels.

    With r = conv_forward(x, w) and energy = sum(r^2) / 2, the derivative by r is r itself, and by x
    it is conv_input_grad(r, w).
    """
    bank, pixels = make_bank(), photographs.pixels
    start = time.perf_counter()
    responses = engine.conv_forward(pixels, bank.weight, padding=_PADDING)
    middle = time.perf_counter()
    gradient = engine.conv_input_grad(responses, bank.weight, pixels.shape[2:], padding=_PADDING)
    seconds = (middle - start, time.perf_counter() - middle)
    energy = 0.5 * float(np.square(responses, dtype=np.float64).sum())
    return Responses(photographs, bank, responses, energy, gradient, seconds)


def describe(found: Responses) -> str:
    """Return in a few lines what was computed."""
    n, channels, height, width = found.photographs.pixels.shape
    forward, backward = (1e3 * seconds for seconds in found.seconds)
    return "\n".join(
        [
            f"{n} photographs ({', '.join(found.photographs.names)}) of {width} x {height} pixels, "
            f"{len(found.bank.titles)} filters of {SIZE} x {SIZE} x {channels}",
            f"forward   conv_forward     {forward:7.1f} ms  responses {found.responses.shape}",
            f"backward  conv_input_grad  {backward:7.1f} ms  gradient  {found.gradient.shape}",
            f"energy of the responses: {found.energy:.6g}",
        ]
    )
