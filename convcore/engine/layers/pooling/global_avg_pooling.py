"""Global average pooling: the mean of each channel of an image."""

from __future__ import annotations

import math
from collections.abc import Callable

from convcore.engine.layers import images
from convcore.engine.layers.pooling.pooling import wide_enough
from convcore.engine.layers.reduce._reduce import channel_sums
from convcore.engine.runtime.checks import Array
from convcore.engine.runtime.layout import is_channels_last


def global_avg_pool(batch: Array) -> Array:
    """Compute the means of an (N, C, *sizes) array over its sizes, which become 1.

    float16, float32 or float64, not empty; the result has the array's memory format.
    """
    wide = wide_enough(batch.dtype)
    channels = batch.shape[1] if is_channels_last(batch.shape, batch.strides) else 0
    dense, means = images.empty(batch, (1,) * (batch.ndim - 2), wide, channels)
    write_global_avg_pool(batch.astype(wide, copy=False), dense)
    return means.astype(batch.dtype, copy=False)


def write_global_avg_pool(x: Array, means: Array, later: bool = False) -> Callable[[], None] | None:
    """Write the means of a float32 or float64 (N, C, *sizes) array to N * C dense elements.

    later : whether to return a callable that does the work when called, instead of doing it now
    """
    dense, _, channels = images.dense(x)
    n, c, pixels = *x.shape[:2], math.prod(x.shape[2:])
    strides = (c * pixels, 1, channels) if channels else (c * pixels, pixels, 1)
    return channel_sums(x.dtype.char, dense, means, n, 1, c, pixels, strides, pixels, later)
