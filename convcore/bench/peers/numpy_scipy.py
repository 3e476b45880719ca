"""Convolution as a NumPy notebook writes it, and with scipy.signal.

NumPy's is a strided im2col view and tensordot.  The view has shape (N, C_in, OH, OW, KH, KW) and
copies nothing; tensordot then copies all of it into the column matrix and multiplies once.  The
gradients follow from the forward line

    OH = (H + pads - (DH*(KH-1) + 1)) / SH + 1,    the same for W:

solved for H it says that the input gradient is a stride-1 convolution of grad_output, dilated by
the stride and padded by DH*(KH-1), with the kernel rotated by 180 degrees; the weight gradient is
the product of grad_output with the view.

SciPy's is a loop over output channels of overlap-add FFTs: `oaconvolve` over the last two axes
suits images much larger than their kernel, and knows a batch only by broadcasting.  It knows
neither strides, nor dilation, nor groups, nor gradients: layers with those are left out.

References
----------
Chellapilla, Puri & Simard 2006, "High performance convolutional neural networks for document
processing": the column matrix.  Dumoulin & Visin 2016, arXiv 1603.07285, chapter 4: the arithmetic
of the gradient.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import threadpoolctl

from convcore.bench.layers import Layer, pass_calls
from convcore.bench.peers import Peer, loaded_blas

Array = np.ndarray
Pair = tuple[int, int]
# More multiply-adds take SciPy seconds to minutes a call.
_MOST_MULTIPLY_ADDS = 2**28


def conv_forward(
    x: Array, w: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """Return (N, C_out, OH, OW), a view of the product's (N, OH, OW, C_out)."""
    view = _patches(_pad(x, padding), w.shape[2:], stride, dilation)
    return _product(view, w, 1, groups)


def conv_input_grad(
    gy: Array, w: Array, size: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """Return (N, C_in, H, W), a view of the product's (N, H, W, C_in)."""
    kernel = w.shape[2:]
    full = _dilated(gy, size, kernel, stride, padding, dilation)
    view = _patches(full, kernel, (1, 1), dilation)
    return _product(view, w[:, :, ::-1, ::-1], 0, groups)


def conv_weight_grad(
    x: Array, gy: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """Return (C_out, C_in/G, KH, KW)."""
    view = _patches(_pad(x, padding), kernel, stride, dilation)
    parts = [
        # (N, O, OH, OW) . (N, C, OH, OW, KH, KW) -> (O, C, KH, KW)
        np.tensordot(g, v, axes=([0, 2, 3], [0, 2, 3]))
        for v, g in zip(np.split(view, groups, 1), np.split(gy, groups, 1), strict=True)
    ]
    return _joined(parts, 0)


def _product(view: Array, w: Array, summed: int, groups: int) -> Array:
    """Return the view times the weight, summed over its taps and its axis 1 (C) or 0 (O)."""
    parts = [
        # (N, C, OH, OW, KH, KW) . (O, C, KH, KW) -> (N, OH, OW, O)
        np.tensordot(v, k, axes=([1, 4, 5], [summed, 2, 3]))
        for v, k in zip(np.split(view, groups, 1), np.split(w, groups), strict=True)
    ]
    return _joined(parts, 3).transpose(0, 3, 1, 2)


def _joined(parts: list[Array], axis: int) -> Array:
    """Return the groups' results side by side; a single one as it is, without a copy."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis)


def _pad(x: Array, padding: Pair) -> Array:
    if padding == (0, 0):
        return x
    return np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))


def _patches(x: Array, kernel: tuple[int, ...], stride: Pair, dilation: Pair) -> Array:
    """Return the zero-copy im2col view (N, C, OH, OW, KH, KW) of a padded input."""
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    (down, right), (tap_down, tap_right) = stride, dilation
    return windows[:, :, ::down, ::right, ::tap_down, ::tap_right]


def _dilated(
    gy: Array, size: Pair, kernel: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair
) -> Array:
    """Return grad_output with zeros between and around, so that all of the input is its output.

    Each axis is size + d*(k-1) long.  Element o of grad_output lands at o*s + d*(k-1) - p; where
    that is outside, no input element met this output and it is left out.
    """
    extra = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    full = np.zeros(gy.shape[:2] + tuple(n + e for n, e in zip(size, extra, strict=True)), gy.dtype)
    source, target = [], []
    for out, s, p, e, length in zip(
        gy.shape[2:], stride, padding, extra, full.shape[2:], strict=True
    ):
        first = max(0, -((e - p) // s))
        last = min(out - 1, (length - 1 - e + p) // s)
        source.append(slice(first, last + 1))
        target.append(slice(first * s + e - p, last * s + e - p + 1, s))
    full[:, :, *target] = gy[:, :, *source]
    return full


class _NumPy(Peer):
    # A notebook knows one format; in the other the view's copies only get slower.
    formats = ("contiguous",)
    most_rounds = 2

    def can(self, layer: Layer) -> bool:
        return layer.rank == 2 and not layer.transposed

    def set_threads(self, threads: int) -> None:
        # Kept: the limit lasts as long as the object does.
        self._limit = threadpoolctl.threadpool_limits(threads, user_api="blas")

    def describe(self) -> dict[str, str]:
        return {"NumPy": np.__version__, **loaded_blas("numpy")}

    def call(self, layer: Layer, pass_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        return pass_calls(sys.modules[__name__], layer, operands)[pass_name]


class _SciPy(Peer):
    formats = ("contiguous",)
    passes = ("forward",)
    most_rounds = 2

    def __init__(self) -> None:
        import scipy
        from scipy import fft, signal

        self._scipy, self._fft, self._convolve = scipy, fft, signal.oaconvolve

    def set_threads(self, threads: int) -> None:
        # Kept: the number holds as long as the context is entered.
        self._workers = self._fft.set_workers(threads)
        self._workers.__enter__()

    def describe(self) -> dict[str, str]:
        return {"SciPy": self._scipy.__version__, "kernel": "pocketfft"}

    def can(self, layer: Layer) -> bool:
        steps = (layer.stride, layer.dilation, layer.groups)
        small = layer.geometry.multiply_adds <= _MOST_MULTIPLY_ADDS
        return steps == ((1, 1), (1, 1), 1) and small and not layer.transposed

    def call(self, layer: Layer, pass_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        x, w = operands["input"], operands["weight"]
        padding, oaconvolve = layer.padding, self._convolve

        def call() -> Array:
            padded = _pad(x, padding)
            # A convolution in SciPy's sense rotates the kernel, a layer does not.
            rotated = w[:, :, ::-1, ::-1]
            channels = [
                # (N, C, OH, OW) summed over C
                oaconvolve(padded, kernel[None], mode="valid", axes=(2, 3)).sum(axis=1)
                for kernel in rotated
            ]
            return np.stack(channels, axis=1)

        return call


MAKERS = {"numpy": _NumPy, "scipy": _SciPy}
