"""Interpolation (resizing) of images, and its gradient.

Each output is a weighted sum of inputs, one axis at a time: see separable.py.  Coordinates and
weights are computed as in PyTorch, in the result's precision, so both pick the same inputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore.engine.layers.interpolation.separable import AxisWeights, Map, SeparableMap
from convcore.engine.layers.pooling.pooling import FLOATS, as_batch, wide_enough
from convcore.engine.runtime.checks import Array
from convcore.engine.runtime.tables import kept_tables

MODES = ("nearest", "nearest-exact", "linear", "cubic", "lanczos")

Scales = tuple[float | None, ...]


def interpolate(
    input: Array,
    output_size: Sequence[int],
    mode: str = "nearest",
    align_corners: bool = False,
    scales: Scales | None = None,
    antialias: bool = False,
) -> Array:
    """Resize an array to other spatial sizes.

    output[n, c, j] = sum over i of input[n, c, i] * weight[j, i], a product over the axes.

    Parameters
    ----------
    input : (N, C, *sizes); float16, float32 or float64
        One to three spatial axes; any strides.
    output_size : one int per spatial axis, at least 1
    mode : 'nearest', 'nearest-exact', 'linear', 'cubic' or 'lanczos'
        'lanczos' requires two spatial axes and antialias.
    align_corners : bool
        Whether corner pixels' centres (True) or outer edges (False) are aligned with the corners.
    scales : one float or None per spatial axis
        Scale factor of the output, if it is not the ratio of the sizes.
    antialias : bool
        Whether filters widen where an axis shrinks.  Only for 'linear', 'cubic' and 'lanczos'.

    Returns
    -------
    (N, C, *output_size), of the input's dtype
        channels_last if the input is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        input is not such an array; not one size per axis, or a size below 1; an unknown mode.

    Notes
    -----
    Each axis is mapped separately: one line of scratch per thread, and about as many multiply-adds
    per output as the sum of the axes' taps.

    References
    ----------
    R. Keys, Cubic convolution interpolation for digital image processing (1981), for 'cubic', with
    a = -0.75, and -0.5 with antialias; K. Turkowski, Filters for common resampling tasks (1990).

    Examples
    --------
    >>> import numpy as np
    >>> interpolate(np.array([[[0.0, 4.0]]]), [4], "linear").tolist()
    [[[0.0, 1.0, 3.0, 4.0]]]
    """
    how = (mode, align_corners, scales, antialias)
    batch, _, outs = as_batch("input", input, "output_size", tuple(output_size), FLOATS)
    return _mapped(batch.shape[2:], outs, batch.dtype, False, *how)(input)


def interpolate_grad(
    grad_output: Array,
    input_size: Sequence[int],
    mode: str = "nearest",
    align_corners: bool = False,
    scales: Scales | None = None,
    antialias: bool = False,
) -> Array:
    """Compute the gradient of `interpolate` (its adjoint).

    Parameters
    ----------
    grad_output : (N, C, *output_size); float16, float32 or float64
    input_size : one int per spatial axis
    mode, align_corners, scales, antialias : as for `interpolate`

    Returns
    -------
    (N, C, *input_size), of grad_output's dtype
        channels_last if grad_output is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `interpolate`.

    Examples
    --------
    >>> import numpy as np
    >>> interpolate_grad(np.ones((1, 1, 4)), [2]).tolist()
    [[[2.0, 2.0]]]
    """
    how = (mode, align_corners, scales, antialias)
    batch, _, sizes = as_batch("grad_output", grad_output, "output_size", tuple(input_size), FLOATS)
    return _mapped(sizes, batch.shape[2:], batch.dtype, True, *how)(grad_output)


def interpolate_maps(input: Array, output_size: Sequence[int], *how: Any) -> tuple[Map, Map]:
    """Return (`interpolate`, `interpolate_grad`) for arrays of this shape and dtype.

    how : all other arguments of `interpolate`
    """
    batch, _, outs = as_batch("input", input, "output_size", tuple(output_size), FLOATS)
    made = [_mapped(batch.shape[2:], outs, batch.dtype, back, *how) for back in (False, True)]
    return made[0], made[1]


def _mapped(
    sizes: tuple[int, ...],
    outs: tuple[int, ...],
    dtype: np.dtype[Any],
    back: bool,
    mode: str,
    align_corners: bool,
    scales: Scales | None,
    antialias: bool,
) -> Map:
    """Return the map from images of some sizes to others, or its adjoint."""
    if mode not in MODES:
        raise ValueError(f"mode must be one of {list(MODES)}, got {mode!r}")
    if antialias and mode not in FILTERS:
        raise ValueError(f"antialias needs a mode of {list(FILTERS)}, got {mode!r}")
    if min(*sizes, *outs) < 1:
        here, others = (outs, sizes) if back else (sizes, outs)
        raise ValueError(
            "Input and output sizes should be greater than 0, "
            f"but got input {list(here)} and output {list(others)}"
        )
    scales = scales or (None,) * len(sizes)
    how = (mode, bool(align_corners), scales, bool(antialias))
    return _map(sizes, outs, *how, dtype, back)


@kept_tables
def _map(
    sizes: tuple[int, ...],
    outs: tuple[int, ...],
    mode: str,
    align_corners: bool,
    scales: Scales,
    antialias: bool,
    dtype: np.dtype[Any],
    back: bool,
) -> SeparableMap:
    real = wide_enough(dtype).type
    axes = []
    for size, out, scale in zip(sizes, outs, scales, strict=True):
        step = _step(size, out, scale, align_corners and not mode.startswith("nearest"), real)
        if mode == "nearest" and len(sizes) == 2 and out in (size, 2 * size):
            # PyTorch copies and doubles images whatever the scale, but not lines or volumes.
            step = real(size / out)
        if antialias or mode == "lanczos":
            weights = _filtered(size, out, step, mode, align_corners, real)
        else:
            source, weight = WEIGHTS[mode](size, out, step, align_corners, real)
            begin = np.arange(out + 1) * (source.size // out)
            weights = AxisWeights(size, out, begin, source.ravel(), weight.ravel())
        axes.append(weights.adjoint() if back else weights)
    return SeparableMap(axes, dtype)


def _step(size: int, out: int, scale: float | None, align_corners: bool, real: Any) -> Any:
    """Return the step: the distance between outputs, in inputs."""
    if align_corners:
        return real(size - 1) / real(out - 1) if out > 1 else real(0)
    return real(1 / scale) if scale is not None and scale > 0 else real(size) / real(out)


def _places(out: int, step: Any, align_corners: bool, real: Any) -> Array:
    """Return the input coordinate of each output."""
    j = np.arange(out, dtype=real)
    return j * step if align_corners else step * (j + real(0.5)) - real(0.5)


def _nearest(
    size: int, out: int, step: Any, align: bool, real: Any, at: float = 0.0
) -> tuple[Array, Array]:
    j = np.arange(out, dtype=real) + real(at)
    source = np.minimum(np.floor(j * step).astype(np.intp), size - 1)
    return source, np.ones(out)


def _linear(size: int, out: int, step: Any, align: bool, real: Any) -> tuple[Array, Array]:
    if size == out:
        return np.arange(out), np.ones(out)
    at = np.maximum(_places(out, step, align, real), real(0))
    first = np.minimum(at.astype(np.intp), size - 1)
    rest = np.clip(at - first.astype(real), real(0), real(1))
    source = np.stack([first, np.minimum(first + 1, size - 1)], axis=1)
    return source, np.stack([real(1) - rest, rest], axis=1)


def _cubic(size: int, out: int, step: Any, align: bool, real: Any) -> tuple[Array, Array]:
    if size == out and step == 1:  # with an explicit scale, PyTorch also interpolates equal sizes
        return np.arange(out), np.ones(out)
    at = _places(out, step, align, real)
    first = np.floor(at)
    rest = (at - first)[:, np.newaxis]
    source = first.astype(np.intp)[:, np.newaxis] + np.arange(-1, 3)
    weight = _keys(np.abs(rest - np.arange(-1, 3, dtype=real)), real(-0.75))
    return np.clip(source, 0, size - 1), weight


WEIGHTS: dict[str, Callable[..., tuple[Array, Array]]] = {
    "nearest": _nearest,
    "nearest-exact": functools.partial(_nearest, at=0.5),
    "linear": _linear,
    "cubic": _cubic,
}


def _keys(x: Array, a: Any) -> Array:
    """Return the cubic convolution kernel at distances x >= 0."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _triangle(x: Array) -> Array:
    return np.maximum(1 - x, 0)


def _lanczos(x: Array) -> Array:
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


# Half the width of each filter, and the filter function.
FILTERS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "linear": (1, _triangle),
    "cubic": (2, lambda x: _keys(x, x.dtype.type(-0.5))),
    "lanczos": (3, _lanczos),
}


def _filtered(size: int, out: int, step: Any, mode: str, align: bool, real: Any) -> AxisWeights:
    """Return antialiasing weights: the filter is stretched by the scale if that is above 1.

    As in PyTorch, an axis of unchanged size is copied, whatever the scale.
    """
    if size == out:
        return AxisWeights(size, out, np.arange(out + 1), np.arange(out), np.ones(out, real))
    half, weigh = FILTERS[mode]
    wide = max(step, real(1))
    support = real(half) * wide
    center = step * (np.arange(out, dtype=real) + real(0.5))
    low = np.maximum((center - support + real(0.5)).astype(np.intp), 0)
    high = np.minimum((center + support + real(0.5)).astype(np.intp), size)
    counts = high - low
    begin = np.concatenate([[0], np.cumsum(counts)])
    j = np.repeat(np.arange(out), counts)
    source = np.arange(begin[-1]) - begin[j] + low[j]
    weight = weigh(np.abs((source.astype(real) - center[j] + real(0.5)) / wide))
    total = np.bincount(j, weight, minlength=out).astype(real)
    return AxisWeights(size, out, begin, source, weight / total[j])
