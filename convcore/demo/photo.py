"""The photo demo: filter photographs, and backpropagate the responses' energy to the pixels."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from convcore import engine
from convcore.demo.filters import SIZE, Bank, make_bank

_PADDING = SIZE // 2


@dataclass(frozen=True)
class Photographs:
    """Names, and pixels (N, 3, H, W), float32 from 0 to 1, channels_last in memory."""

    names: tuple[str, ...]
    pixels: np.ndarray


@dataclass(frozen=True)
class Responses:
    """Filter responses, their energy, and its gradient with respect to the pixels.

    ``responses`` (N, n_filters, H, W); ``gradient`` (N, 3, H, W), the derivative of ``energy``
    with respect to the pixels; ``seconds`` of the forward pass and of the backward pass.
    """

    photographs: Photographs
    bank: Bank
    responses: np.ndarray
    energy: float
    gradient: np.ndarray
    seconds: tuple[float, float]


def load_photographs() -> Photographs:
    """Return scikit-learn's two sample photographs, china.jpg and flower.jpg."""
    from sklearn.datasets import load_sample_images

    images = load_sample_images()
    names = tuple(name.rsplit("/", 1)[-1].removesuffix(".jpg") for name in images.filenames)
    # The files are (N, H, W, 3), so the transposed array is channels_last, without a copy.
    pixels = np.stack(images.images).astype(np.float32) / np.float32(255)
    return Photographs(names, pixels.transpose(0, 3, 1, 2))


def respond(photographs: Photographs) -> Responses:
    """Filter the photographs and compute the gradient of the responses' energy.

    With r = conv_forward(x, w) and energy = sum(r^2) / 2, the derivative with respect to r is r,
    and with respect to x it is conv_input_grad(r, w).
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
    """Return a few lines about what was computed, and how long it took."""
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
