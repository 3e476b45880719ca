"""Interpolation of images to other sizes: nearest, linear, bicubic, area; and upsample."""

from __future__ import annotations

import math
import numbers
import operator
import warnings
from typing import Any

import numpy as np

from convcore import engine
from convcore._tensor import Tensor, wrap
from convcore.engine.geometry import is_sequence
from convcore.engine.layers.interpolation.byte_interpolation import interpolate_bytes
from convcore.engine.layers.interpolation.interpolation import interpolate_maps
from convcore.engine.runtime import layout
from convcore.functions._support.arguments import check_kind, check_tensor, computed
from convcore.functions._support.kept import kept
from convcore.functions._support.linear_map import Linear, linear_map
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.windows.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

# What each mode is called along an axis, how PyTorch's nodes call it, and for how many axes.
LINES = {
    "nearest": ("nearest", "Nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", "NearestExact", (1, 2, 3)),
    "linear": ("linear", "Linear", (1,)),
    "bilinear": ("linear", "Bilinear", (2,)),
    "trilinear": ("linear", "Trilinear", (3,)),
    "bicubic": ("cubic", "Bicubic", (2,)),
    "lanczos": ("lanczos", "Lanczos", (2,)),
}
_NEAREST = ("nearest", "nearest-exact")
SHOWN = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


@in_float32
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize images by interpolation.

    Parameters
    ----------
    input : (N, C, W), (N, C, H, W) or (N, C, D, H, W), floating
        Also of uint8, for the nearest modes and for those of images.
    size : int, or one int a spatial axis
        Of the result.
    scale_factor : number, or one a spatial axis
        Instead of size: how many times as large, rounded down.
    mode : str
        'nearest', 'nearest-exact' or 'area' (means, as `adaptive_avg_pool2d`); 'linear' of three
        axes, 'bilinear', 'bicubic' or 'lanczos' of four, 'trilinear' of five.
    align_corners : bool, optional
        For linear and cubic modes: whether first and last pixels lie on each other, or the images'
        outer edges.
    recompute_scale_factor : bool, optional
        Whether places are told from the sizes, and not from a scale_factor that was rounded.
    antialias : bool
        For 'bilinear', 'bicubic' and 'lanczos': whether to weigh all pixels that an output covers.

    Returns
    -------
    Tensor
        channels_last if the input is.

    Raises
    ------
    ValueError, TypeError
        Neither size nor scale_factor or both; not one an axis; an option that a mode has not.
    NotImplementedError
        A mode that does not go with the number of axes, or with the dtype.
    RuntimeError
        A size below 1.

    Examples
    --------
    >>> import convcore
    >>> interpolate(convcore.tensor([[[0.0, 4.0]]]), scale_factor=2, mode="linear")
    tensor([[[0., 1., 3., 4.]]])
    """
    check_tensor("interpolate", input)
    array = input._array
    options = (size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    if mode == "area" or array.dtype.kind != "f":
        sizes, how = _checked(array.shape, *options)
        rank = len(sizes)
        if mode == "area":
            pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1]
            return pool(input, sizes)
        if array.dtype == np.uint8 and (rank == 2 or mode in _NEAREST):
            return wrap(_bytes_resized(array, sizes, how))
        check_kind(_kernel(mode, rank), input, "f")
    return linear_map(input, *_resizing(array, *options), described=True)


@kept
def _resizing(array: np.ndarray, *options: Any) -> Linear:
    """Return the map of images of the array's shape and dtype."""
    sizes, how = _checked(array.shape, *options)
    mode, antialias = options[2], options[-1]
    name = f"Upsample{LINES[mode][1]}{len(sizes)}D" + ("Aa" if antialias else "")
    forward, adjoint = computed(interpolate_maps, array, sizes, *how)
    return Linear(forward, adjoint, (name, f"{name}Backward"))


def _checked(
    shape: tuple[int, ...],
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
    recompute: bool | None,
    antialias: bool,
) -> tuple[tuple[int, ...], tuple]:
    """Return the sizes of the result, and how the engine gets there."""
    _check_corners(mode, align_corners)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and len(shape) == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    sizes, factors = _sizes(shape, size, scale_factor, recompute)
    if mode == "area" and 3 <= len(shape) <= 5:
        return sizes, ()
    _check_mode(mode, len(shape))
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    _check_sizes(shape, sizes)
    scales = None if factors is None or recompute else factors
    return sizes, (LINES[mode][0], bool(align_corners), scales, bool(antialias))


def _bytes_resized(array: np.ndarray, sizes: tuple[int, ...], how: tuple) -> np.ndarray:
    if how[0] in _NEAREST:  # bytes are exact in float32
        pixels = engine.interpolate(array.astype(np.float32, order="K"), sizes, *how)
        return pixels.astype(np.uint8, order="K")
    resized = layout.empty(
        (*array.shape[:2], *sizes), array.dtype, layout.is_channels_last(array.shape, array.strides)
    )
    resized[...] = interpolate_bytes(array, sizes, *how)
    return resized


def _check_corners(mode: str, align_corners: bool | None) -> None:
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")


def _sizes(
    shape: tuple[int, ...], size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """Return (the result's sizes, the factors that were given, if any)."""
    rank = len(shape) - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = _one_an_axis(shape, size, "output size of", "output size", "(o1, o2, ...,oK)")
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple(_int(s, sizes) for s in sizes), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    given = _one_an_axis(
        shape, scale_factor, "scale_factor of shape", "scale_factor", "(s1, s2, ...,sK)"
    )
    for factor in given:
        if not isinstance(factor, numbers.Real):
            raise TypeError(
                "interpolate(): argument 'scale_factor' (position 3) must be float or tuple of "
                f"floats, not {type(factor).__name__}"
            )
    factors = tuple(map(float, given))
    if not all(map(math.isfinite, factors)):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return tuple(int(shape[2 + i] * factors[i]) for i in range(rank)), factors


def _one_an_axis(
    shape: tuple[int, ...], value: Any, of: str, name: str, format: str
) -> tuple[Any, ...]:
    """Return a value's items, one a spatial axis."""
    if not is_sequence(value):
        return (value,) * (len(shape) - 2)
    values = tuple(value)
    if len(values) != len(shape) - 2:
        raise ValueError(
            f"Input and {name.removesuffix(' size')} must have the same number of spatial "
            "dimensions, but got input with spatial "
            f"dimensions of {list(shape[2:])} and {of} {value}. Please provide input "
            f"tensor in (N, C, d1, d2, ...,dK) format and {name} in {format} format."
        )
    return values


def _int(value: Any, sizes: tuple[Any, ...]) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
            f"Tuple[int, int, int], but got size with types {[type(s) for s in sizes]}"
        ) from None


def _check_mode(mode: str, ndim: int) -> None:
    if mode in ("linear", "bilinear", "trilinear") and 3 <= ndim <= 5:
        needed = LINES[mode][2][0] + 2
        if ndim != needed:
            raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {needed}D input")
    elif mode not in LINES or ndim - 2 not in LINES[mode][2]:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
            f"{SHOWN} (got {mode})"
        )


def _check_sizes(shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    names = ("D", "H", "W")[-len(sizes) :]
    if min(*shape[2:], *sizes) < 1:
        ours, theirs = (
            ", ".join(f"{name}: {n}" for name, n in zip(names, each, strict=True))
            for each in (shape[2:], sizes)
        )
        joint = "and output" if len(sizes) == 1 else "output"
        raise RuntimeError(
            "Input and output sizes should be greater than 0, "
            f"but got input ({ours}) {joint} ({theirs})"
        )
    if not shape[1]:
        raise RuntimeError(
            f"Non-empty {len(shape)}D data tensor expected but got a tensor with sizes "
            f"{list(shape)}"
        )


def _kernel(mode: str, rank: int) -> str:
    """Return the kernel that PyTorch names in its error for a dtype."""
    if rank == 2 and mode in ("nearest", "nearest-exact", "bilinear"):
        return f"upsample_{'bilinear' if mode == 'bilinear' else 'nearest'}2d_channels_last"
    return f"compute_indices_weights_{LINES[mode][0].removesuffix('-exact')}"


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Call `interpolate`, whose older name this is, with a warning."""
    _warn_of("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Call `interpolate` in mode 'nearest', with a warning."""
    _warn_of("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Call `interpolate` in mode 'bilinear' with align_corners, with a warning."""
    _warn_of("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn_of(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )
