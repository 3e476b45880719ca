"""Interpolation, padding, and pixels moved from and to channels.

Resize counts in float32 from the scales that it is given or computes; interpolate, as PyTorch, from
their reciprocals.  So nearest pixels are written as indices (Gather) unless whole pixels are
repeated, and what Resize weighs otherwise, or not in the opset that is written, as matrices
(MatMul).  Both are taken from `interpolate` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from convcore import Tensor, arange, eye, float32, float64, int64
from convcore.nn.functional import interpolate
from convcore.onnx.errors import OnnxError
from convcore.onnx.sizes import has_sizes
from convcore.onnx.translation import TRANSLATIONS, ints, like, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

_WEIGHED = {"bicubic": "cubic", **dict.fromkeys(("linear", "bilinear", "trilinear"), "linear")}


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
    sizes, outs = input.shape[2:], y.shape[2:]
    if mode == "area":
        pool = TRANSLATIONS[f"adaptive_avg_pool{len(sizes)}d"]
        return pool(r, y, input=input, output_size=outs)
    factors = None
    if scale_factor is not None and not recompute_scale_factor:
        factors = _numbers(scale_factor, len(sizes))
    options = {"mode": mode, "align_corners": align_corners, "antialias": antialias}

    def along(axis: int, line: Tensor) -> Tensor:
        """Return an image of one line along an axis, resized along it as the input is."""
        if factors is not None:
            scales = [1.0] * len(sizes)
            scales[axis] = factors[axis]
            return interpolate(line, scale_factor=scales, **options)
        wanted = [1] * len(sizes)
        wanted[axis] = outs[axis]
        return interpolate(line, wanted, **options)

    if mode.startswith("nearest"):
        return _nearest(r, input, outs, along, size)
    if antialias or mode not in _WEIGHED or input.dtype is not float32:
        return by_matrices(r, input, along)
    if factors is None or align_corners:  # where the scale does not matter
        return _to_sizes(r, input, size, outs, _WEIGHED[mode], align_corners)
    scales: Sequence[Any] = factors
    if not r.sizes_are_free:
        stays = [n == o and f != 1 for n, o, f in zip(sizes, outs, factors, strict=True)]
        if mode == "bicubic" and any(stays):  # which Resize copies, or not
            return by_matrices(r, input, along)
        scales = [_scale(*each) for each in zip(sizes, outs, factors, strict=True)]
    return r.node(
        "Resize",
        [r.name(input), "", r.constant(np.asarray([1.0, 1.0, *scales], np.float32))],
        **_options(_WEIGHED[mode], False),
    )


def _options(mode: str, align_corners: Any) -> dict[str, Any]:
    transformation = "align_corners" if align_corners else "half_pixel"
    return {"mode": mode, "coordinate_transformation_mode": transformation, "cubic_coeff_a": -0.75}


def _to_sizes(
    r: Recorder, input: Any, size: Any, outs: Sequence[int], mode: str, align_corners: Any
) -> list[str]:
    (shape,) = r.node("Shape", [r.name(input)])
    batch = r.node("Slice", [shape, ints(r, [0]), ints(r, [2])])
    given = size if has_sizes(size) and isinstance(size, tuple | list) else outs
    wanted = r.node("Concat", [*batch, ints(r, given)], axis=0)
    return r.node("Resize", [r.name(input), "", "", *wanted], **_options(mode, align_corners))


def _scale(size: int, out: int, factor: float) -> np.float32:
    """Return a factor in float32, by which a size becomes another one.

    It does in float32, as in ONNX Runtime, and in exact arithmetic, as in the standard's shapes.
    """
    if size == out:
        return np.float32(1)
    scale = np.float32(factor)
    while size * float(scale) < out:
        scale = np.nextafter(scale, np.float32(np.inf))
    while np.float32(size) * scale >= np.float32(out + 1):
        scale = np.nextafter(scale, np.float32(0))
    return scale


def _numbers(value: Any, rank: int) -> list[float]:
    return [float(v) for v in value] if isinstance(value, tuple | list) else [float(value)] * rank


def _nearest(
    r: Recorder, input: Any, outs: Sequence[int], along: Callable[..., Tensor], size: Any
) -> list[str]:
    """Repeat pixels; by a factor that is no whole number, by their indices, which are exact."""
    sizes, rank = input.shape[2:], len(outs)
    indices = []
    for axis, n in enumerate(sizes):
        # The dtype that places are computed in; of halves, indices are exact in float32 alone.
        line = arange(n, dtype=float64 if input.dtype is float64 else float32)
        shape = [1, 1, *(n if a == axis else 1 for a in range(rank))]
        indices.append(along(axis, line.reshape(shape)).reshape(-1).to(int64).numpy())
    factors = [len(index) // n for index, n in zip(indices, sizes, strict=True)]
    repeats = [np.arange(n).repeat(f) for n, f in zip(sizes, factors, strict=True)]
    if all(map(np.array_equal, indices, repeats)) and input.dtype is not float64:
        return r.node(
            "Resize",
            [r.name(input), "", r.constant(np.asarray([1, 1, *factors], np.float32))],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
    if r.sizes_are_free:
        raise OnnxError(f"nearest from {tuple(sizes)} to {tuple(outs)} where sizes are free")
    names = [r.name(input)]
    for axis, (index, n) in enumerate(zip(indices, sizes, strict=True), 2):
        if not np.array_equal(index, np.arange(n)):
            names = r.node("Gather", [*names, r.constant(index)], axis=axis)
    return names


def by_matrices(r: Recorder, input: Any, along: Callable[..., Tensor]) -> list[str]:
    """Multiply each spatial axis of an image by a matrix: what ``along`` makes of an identity.

    Of bytes each product is rounded and clipped, as `interpolate` does.
    """
    if r.sizes_are_free:
        raise OnnxError(f"weights of {tuple(input.shape[2:])} pixels where sizes are free")
    sizes, rank, is_bytes = list(input.shape[2:]), input.ndim - 2, not input.is_floating_point()
    dtype = input.dtype if input.is_floating_point() else float32
    names = [r.name(input)]
    if is_bytes:
        names = r.node("Cast", names, to=TensorProto.FLOAT)
    for axis in reversed(range(rank)):
        n = sizes[axis]
        basis = eye(n, dtype=dtype).reshape(1, n, *(n if a == axis else 1 for a in range(rank)))
        matrix = along(axis, basis).reshape(n, -1).numpy()  # (input, output)
        if np.array_equal(matrix, np.eye(n)):
            continue
        sizes[axis] = matrix.shape[1]
        if axis == rank - 1:
            names = r.node("MatMul", [*names, r.constant(matrix)])
        else:
            flat = axis < rank - 2
            if flat:
                names = r.node("Reshape", [*names, ints(r, [0, 0, n, -1])])
            names = r.node("MatMul", [r.constant(np.ascontiguousarray(matrix.T)), *names])
            if flat:
                names = r.node("Reshape", [*names, ints(r, [0, 0, *sizes])])
        if is_bytes:
            limits = [r.constant(np.float32(limit)) for limit in (0, 255)]
            names = r.node("Clip", [*r.node("Round", names), *limits])
    return r.node("Cast", names, to=TensorProto.UINT8) if is_bytes else names


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
