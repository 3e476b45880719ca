"""Interpolation, padding, and pixels moved from and to channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore import arange, float32, int64
from convcore.nn.functional import interpolate
from convcore.onnx.errors import OnnxError
from convcore.onnx.sizes import has_sizes
from convcore.onnx.translation import (
    ints,
    like,
    translates,
)

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


@translates("interpolate", "upsample")
def _interpolate(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: Any,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> list[str]:
    modes = {"bicubic": "cubic", **dict.fromkeys(("linear", "bilinear", "trilinear"), "linear")}
    sizes, outs = input.shape[2:], y.shape[2:]
    if antialias or mode not in (*modes, "nearest"):
        raise OnnxError(f"mode={mode!r}, antialias={antialias}")
    if mode == "nearest":
        return _nearest(r, input, sizes, outs)
    if scale_factor is not None and not recompute_scale_factor:
        factors = [1.0, 1.0, *(_numbers(scale_factor, len(sizes)))]
        wanted = ["", r.constant(np.asarray(factors, np.float32))]
    else:
        (shape,) = r.node("Shape", [r.name(input)])
        batch = r.node("Slice", [shape, ints(r, [0]), ints(r, [2])])
        given = size if has_sizes(size) and isinstance(size, tuple | list) else outs
        wanted = ["", "", *r.node("Concat", [*batch, ints(r, given)], axis=0)]
    return r.node(
        "Resize",
        [r.name(input), *wanted],
        mode=modes[mode],
        coordinate_transformation_mode="align_corners" if align_corners else "pytorch_half_pixel",
        cubic_coeff_a=-0.75,
    )


def _numbers(value: Any, rank: int) -> list[float]:
    return [float(v) for v in value] if isinstance(value, tuple | list) else [float(value)] * rank


def _nearest(r: Recorder, input: Any, sizes: Sequence[int], outs: Sequence[int]) -> list[str]:
    """Repeat pixels; by a factor that is no whole number, by their indices, which are exact."""
    if all(o % n == 0 for n, o in zip(sizes, outs, strict=True)):
        factors = [1, 1, *(o // n for n, o in zip(sizes, outs, strict=True))]
        return r.node(
            "Resize",
            [r.name(input), "", r.constant(np.asarray(factors, np.float32))],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
    if r.sizes_are_free:
        raise OnnxError(f"nearest from {tuple(sizes)} to {tuple(outs)} where sizes are free")
    names = [r.name(input)]
    for axis, (n, o) in enumerate(zip(sizes, outs, strict=True), 2):
        line = arange(n, dtype=float32).reshape(1, 1, n)
        index = interpolate(line, size=o).reshape(-1).to(int64)
        names = r.node("Gather", [*names, r.constant(index.numpy())], axis=axis)
    return names


@translates("pad")
def _pad(r: Recorder, y: Any, *, input: Any, pad: Any, mode: str, value: Any) -> list[str]:
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2)
    pairs += [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    if mode == "circular":
        return _wrapped(r, input, pairs)
    if mode not in names:
        raise OnnxError(f"padding with mode {mode!r}")
    amounts = ints(r, [a for a, _ in pairs] + [b for _, b in pairs])
    fill = r.constant(like(input, value or 0))
    return r.node("Pad", [r.name(input), amounts, fill], mode=names[mode])


def _wrapped(r: Recorder, input: Any, pairs: Sequence[tuple[int, int]]) -> list[str]:
    """Put the values of the other end before and after each axis: Pad does so from opset 19 on."""
    names = [r.name(input)]
    for axis, (before, after) in enumerate(pairs):
        if before < 0 or after < 0:
            raise OnnxError("circular padding by negative amounts")
        parts = list(names)
        if before:
            parts = [*_cut(r, names, axis, -before, np.iinfo(np.int64).max), *parts]
        if after:
            parts = [*parts, *_cut(r, names, axis, 0, after)]
        if len(parts) > 1:
            names = r.node("Concat", parts, axis=axis)
    return names


def _cut(r: Recorder, names: Sequence[str], axis: int, start: int, stop: int) -> list[str]:
    return r.node("Slice", [*names, *(ints(r, [each]) for each in (start, stop, axis))])


@translates("pixel_shuffle")
def _pixel_shuffle(r: Recorder, y: Any, *, input: Any, upscale_factor: int) -> list[str]:
    return r.node("DepthToSpace", [r.name(input)], blocksize=upscale_factor, mode="CRD")


def _rearranged(
    r: Recorder, y: Any, input: Any, parts: list[int], order: tuple[int, ...], sizes: list[int]
) -> list[str]:
    """Split the axes after the batch into parts, transpose those, and join them to other sizes."""
    split = r.node("Reshape", [r.name(input), ints(r, [0, *parts])])
    turned = r.node("Transpose", split, perm=order)
    return r.node("Reshape", [*turned, ints(r, [0, *sizes])])


@translates("channel_shuffle")
def _channel_shuffle(r: Recorder, y: Any, *, input: Any, groups: int) -> list[str]:
    channels, *sizes = r.sizes(input)[1:]
    rest = range(3, 3 + len(sizes))
    return _rearranged(
        r, y, input, [groups, channels // groups, *sizes], (0, 2, 1, *rest), [channels, *sizes]
    )


@translates("pixel_unshuffle")
def _pixel_unshuffle(r: Recorder, y: Any, *, input: Any, downscale_factor: int) -> list[str]:
    # SpaceToDepth has the new channels in another order: pixels first.
    if input.ndim != 4:
        raise OnnxError("without a batch")
    factor, (_, channels, *both) = downscale_factor, r.sizes(input)
    height, width = (size // factor for size in both)
    parts = [channels, height, factor, width, factor]
    sizes = [y.shape[1], height, width]
    return _rearranged(r, y, input, parts, (0, 1, 3, 5, 2, 4), sizes)
