"""Pad: constant, reflected, of the edge, wrapped round; negative pads cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import convcore
from convcore import Tensor
from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, array_of, axis_of, by_numpy, integers, is_differentiable


def padded(x: Value, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Value:
    """Return a tensor with its last axes padded by a value, or cut where a pad is negative."""
    pairs = [pad for pair in zip(before, after, strict=True) for pad in reversed(pair)]
    return F.pad(x, pairs[::-1], value=value)


@operator("Pad")
def pad(
    x: Value,
    amounts: Value = None,
    constant: Value = None,
    which: Value = None,
    *,
    mode: str = "constant",
    pads: list[int] | None = None,
    paddings: list[int] | None = None,
    value: float = 0.0,
) -> Value:
    """Return a tensor padded along axes, by a constant or by what it has."""
    given = integers(amounts) if amounts is not None else list(pads or paddings or [])
    axes = [axis_of(a, x.ndim) for a in integers(which)] if which is not None else range(x.ndim)
    if len(given) != 2 * len(axes):
        raise OnnxError(f"Pad: {len(given)} pads for {len(axes)} axes")
    before, after = [0] * x.ndim, [0] * x.ndim
    for number, axis in enumerate(axes):
        before[axis], after[axis] = given[number], given[len(axes) + number]
    fill = value if constant is None else constant
    if mode == "constant":
        if is_differentiable(x):
            return padded(x, before, after, array_of(fill).item())
        return by_numpy(_constant)(
            x, fill if isinstance(fill, Tensor) else None, pads=(before, after)
        )
    if min(before + after) < 0:
        x = padded(x, [min(b, 0) for b in before], [min(a, 0) for a in after])
        before, after = [max(b, 0) for b in before], [max(a, 0) for a in after]
    for axis, (left, right) in enumerate(zip(before, after, strict=True)):
        if left or right:
            index = _MODES[mode](np.arange(x.shape[axis]), (left, right))
            x = x.index_select(axis, convcore.from_numpy(index))
    return x


@operator("CenterCropPad")
def center_crop_pad(x: Value, sizes: Value, *, axes: list[int] | None = None) -> Value:
    """Return a tensor cut or padded with 0 around its middle to given sizes."""
    before, after = [0] * x.ndim, [0] * x.ndim
    for axis, wanted in zip(range(x.ndim) if axes is None else axes, integers(sizes), strict=True):
        total = wanted - x.shape[axis]
        before[axis] = total // 2 if total > 0 else -(-total // 2)
        after[axis] = total - before[axis]
    return padded(x, before, after)


# Which pixel is repeated where, by the numbers of an axis's pixels.
_MODES: dict[str, Callable[..., np.ndarray]] = {
    "edge": partial(np.pad, mode="edge"),
    "reflect": partial(np.pad, mode="reflect"),
    "wrap": partial(np.pad, mode="wrap"),
}


def _constant(
    x: np.ndarray, fill: np.ndarray | None, *, pads: tuple[list[int], list[int]]
) -> np.ndarray:
    number = x.dtype.type(0) if fill is None else fill.reshape(())[()]
    widths = [(max(b, 0), max(a, 0)) for b, a in zip(*pads, strict=True)]
    y = np.pad(x, widths, constant_values=number)
    cut = tuple(slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(*pads, y.shape, strict=True))
    return y[cut]
