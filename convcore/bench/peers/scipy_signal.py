"""Convolution with scipy.signal: overlap-add FFTs, a channel of the output at a time.

Of what SciPy has, `oaconvolve` over the last two axes suits maps much larger than their kernel.
It knows a batch only by broadcasting, so a loop over output channels keeps memory in bounds, and it
knows neither strides, nor dilation, nor groups, nor gradients: layers with those are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy
from scipy import fft, signal

from convcore.bench.layer import Layer
from convcore.bench.peers import Peer

# More of them take it seconds to minutes a call.
_MOST_MULTIPLY_ADDS = 2**28


def forward(x: np.ndarray, w: np.ndarray, padding: tuple[int, int]) -> np.ndarray:
    """Return (N, C_out, OH, OW) of stride 1, without dilation or groups."""
    x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    # A convolution in SciPy's sense rotates the kernel, a layer does not.
    rotated = w[:, :, ::-1, ::-1]
    channels = [
        # (N, C, OH, OW) summed over C
        signal.oaconvolve(x, kernel[None], mode="valid", axes=(2, 3)).sum(axis=1)
        for kernel in rotated
    ]
    return np.stack(channels, axis=1)


class _SciPy(Peer):
    formats = ("contiguous",)
    maps = ("forward",)
    most_rounds = 2

    def set_threads(self, threads: int) -> None:
        # Kept: the number holds as long as the context is entered.
        self._workers = fft.set_workers(threads)
        self._workers.__enter__()

    def describe(self) -> dict[str, str]:
        return {"SciPy": scipy.__version__, "kernel": "pocketfft"}

    def can(self, layer: Layer) -> bool:
        steps = (layer.stride, layer.dilation, layer.groups)
        small = layer.geometry.multiply_adds <= _MOST_MULTIPLY_ADDS
        return steps == ((1, 1), (1, 1), 1) and small

    def call(self, layer: Layer, map_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        x, w = operands["input"], operands["weight"]
        return lambda: forward(x, w, layer.padding)


def make_peer() -> Peer:
    """Return the peer."""
    return _SciPy()
