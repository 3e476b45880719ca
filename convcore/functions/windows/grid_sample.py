"""Sampling of images at any places (grid_sample), and grids of affine maps (affine_grid).

Along each axis a place has taps: pixels, and their weights.  All taps of all places are one sparse
matrix, by which the image is multiplied, and by whose transpose the gradient is.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from typing import Any, NamedTuple

import numpy as np

from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.creation import linspace
from convcore.autograd.grad_mode import mode as grad_mode
from convcore.autograd.node import record, record_without_derivative
from convcore.functions._support.arguments import check_arguments, check_kind
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.products.matmul import matmul
from convcore.functions.shapes.shape import reshape, transpose

__all__ = ["affine_grid", "grid_sample"]

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_DEFAULT = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
    "Please specify align_corners=True if the old behavior is desired. See the documentation of "
    "grid_sample for details."
)


@in_float32
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return the values of images at the places of a grid, by interpolation.

    Parameters
    ----------
    input : (N, C, H, W) or (N, C, D, H, W), floating
    grid : (N, OH, OW, 2), of (x, y), or (N, OD, OH, OW, 3), of (x, y, z); of input's dtype
        From -1, left and top, to 1.
    mode : 'bilinear' (trilinear of volumes), 'nearest', or 'bicubic' of images
    padding_mode : 'zeros', 'border' or 'reflection'
        What lies outside.
    align_corners : bool
        Whether -1 and 1 are the centres of the corner pixels, or the image's outer edges.

    Returns
    -------
    (N, C, OH, OW) or (N, C, OD, OH, OW)

    Raises
    ------
    ValueError, RuntimeError
        A mode that there is not, or shapes and dtypes that do not belong together.

    Notes
    -----
    The gradient, for images and grid, has no further one, as in PyTorch.

    References
    ----------
    M. Jaderberg, K. Simonyan, A. Zisserman, K. Kavukcuoglu, "Spatial transformer networks",
    NeurIPS 2015.
    """
    check_arguments("grid_sampler", input=input, grid=grid)
    if mode not in _MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(_DEFAULT, stacklevel=3)
    _check(input._array, grid._array, mode)
    check_kind("grid_sampler", input, "f")
    how = _How(mode, padding_mode, bool(align_corners))
    sampler = ignore_errstate(_Sampler, input._array.shape, grid._array, how)
    out = wrap(sampler.forward(input._array))
    if grad_mode.enabled:
        rank = input._array.ndim - 2

        def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, grid: Tensor) -> tuple:
            taps = ignore_errstate(_Sampler, x._array.shape, grid._array, how)
            grads = (
                wrap(taps.adjoint(grad._array)) if needs[0] else None,
                wrap(ignore_errstate(taps.slopes, grad._array, x._array)) if needs[1] else None,
            )
            for found in grads:
                if found is not None:
                    record_without_derivative("grid_sampler_backward", (grad, x, grid), found)
            return grads

        record(f"GridSampler{rank}DBackward0", (input, grid), out, backward, (input, grid))
    return out


def _check(x: np.ndarray, grid: np.ndarray, mode: str) -> None:
    sizes = f"input with sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
    if x.ndim not in (4, 5) or x.ndim != grid.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {'5D' if x.ndim == 5 else '4D'} input and grid with same "
            f"number of dimensions, but got {sizes}"
        )
    if x.shape[0] != grid.shape[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got {sizes}"
        )
    if grid.shape[-1] != x.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got "
            f"grid with sizes {list(grid.shape)}"
        )
    for axis in range(2, x.ndim):
        if not x.shape[axis]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {list(x.shape)} with dimension {axis} being empty"
            )
    if mode == "bicubic" and x.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x.dtype != grid.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(grid.dtype)}"
        )


class _How(NamedTuple):
    mode: str
    padding: str
    align: bool


class _Taps(NamedTuple):
    """Taps of places along one axis, (places, K): pixels, whether inside, weights and slopes."""

    pixel: np.ndarray
    inside: np.ndarray
    weight: np.ndarray
    slope: np.ndarray


class _Sampler:
    """The sparse matrix of a grid's taps: (N * places) rows, (N * pixels) columns."""

    def __init__(self, shape: tuple[int, ...], grid: np.ndarray, how: _How) -> None:
        self.shape, self.grid_shape, self.mode = shape, grid.shape, how.mode
        self.batch, self.pixels = shape[0], int(np.prod(shape[2:]))
        kind = np.float32 if grid.dtype == np.float16 else grid.dtype
        places = grid.reshape(-1, grid.shape[-1]).astype(kind, copy=False)
        # The grid's last axis begins with x, the shape ends with it.
        sizes = shape[2:]
        self.axes = [
            _axis_taps(places[:, len(sizes) - 1 - axis], size, how)
            for axis, size in enumerate(sizes)
        ]

    def _combined(self) -> tuple[np.ndarray, np.ndarray, list[tuple[int, ...]]]:
        """Return pixels of the batch, and whether inside, (places, taps), and the taps' axes."""
        count = len(self.axes[0].pixel)
        start = np.repeat(np.arange(self.batch), count // max(self.batch, 1)) * self.pixels
        taps = list(itertools.product(*[range(axis.pixel.shape[1]) for axis in self.axes]))
        pixel = np.empty((count, len(taps)), np.int64)
        inside = np.empty((count, len(taps)), bool)
        for column, chosen in enumerate(taps):
            flat, valid = np.zeros(count, np.int64), np.ones(count, bool)
            for axis, size, k in zip(self.axes, self.shape[2:], chosen, strict=True):
                flat = flat * size + axis.pixel[:, k]
                valid &= axis.inside[:, k]
            pixel[:, column], inside[:, column] = flat + start, valid
        return pixel, inside, taps

    def _matrix(self) -> Any:
        from scipy import sparse  # slow to import

        pixel, inside, taps = self._combined()
        weight = np.ones(pixel.shape, self.axes[0].weight.dtype)
        for column, chosen in enumerate(taps):
            for axis, k in zip(self.axes, chosen, strict=True):
                weight[:, column] *= axis.weight[:, k]
        ends = np.concatenate(([0], np.cumsum(inside.sum(1))))
        shape = (len(pixel), self.batch * self.pixels)
        return sparse.csr_array((weight[inside], pixel[inside], ends), shape=shape)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Return the images' values at the places."""
        # SciPy multiplies sparse matrices itself: without BLAS, on one thread, in one order.
        values = operator.matmul(self._matrix(), self._rows(x))
        return self._images(values, (*self.grid_shape[:-1],), x.dtype)

    def adjoint(self, grad: np.ndarray) -> np.ndarray:
        """Return the gradient for the images."""
        found = operator.matmul(self._matrix().T, self._rows(grad))
        return self._images(found, (self.batch, *self.shape[2:]), grad.dtype)

    def slopes(self, grad: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradient for the grid."""
        if self.mode == "nearest":  # zero, beside infinite pixels too
            return np.zeros(self.grid_shape, grad.dtype)
        rows, grads = self._rows(x), self._rows(grad)
        pixel, inside, taps = self._combined()
        found = np.zeros((len(pixel), len(self.axes)), rows.dtype)
        for column, chosen in enumerate(taps):
            values = rows[np.where(inside[:, column], pixel[:, column], 0)]
            share = (values * grads).sum(1)
            share[~inside[:, column]] = 0
            for axis in range(len(self.axes)):
                by = share
                for other, k in enumerate(chosen):
                    taps_of = self.axes[other]
                    by = by * (taps_of.slope if other == axis else taps_of.weight)[:, k]
                found[:, len(self.axes) - 1 - axis] += by
        return found.reshape(self.grid_shape).astype(grad.dtype)

    def _rows(self, images: np.ndarray) -> np.ndarray:
        """Return images with a pixel a row, its channels side by side."""
        kind = self.axes[0].weight.dtype
        moved = np.moveaxis(images, 1, -1)
        moved = moved.reshape(int(np.prod(moved.shape[:-1])), images.shape[1])
        return np.ascontiguousarray(moved, kind)

    def _images(self, rows: np.ndarray, sizes: tuple, dtype: np.dtype) -> np.ndarray:
        moved = np.moveaxis(rows.reshape(*sizes, self.shape[1]), -1, 1)
        # By way of one axis: a single channel would keep its stride, and pass for channels_last.
        return np.ascontiguousarray(moved, dtype).reshape(-1).reshape(moved.shape)


def _axis_taps(place: np.ndarray, size: int, how: _How) -> _Taps:
    """Return the taps along an axis of places from -1 to 1."""
    if how.align:
        at, by = (place + 1) / 2 * (size - 1), (size - 1) / 2
    else:
        at, by = ((place + 1) * size - 1) / 2, size / 2
    at, scale = np.asarray(at, place.dtype), np.full(len(place), by, place.dtype)
    if how.mode != "bicubic":
        at, turn = _padded(at, size, how)
        scale *= turn
    else:
        at = _near(at, size, how)
    at = np.where(np.isfinite(at) & (np.abs(at) < 2**40), at, -100)  # outside, for any size
    if how.mode == "nearest":
        pixel = np.rint(at)[:, np.newaxis]
        weight, slope = np.ones(pixel.shape, place.dtype), np.zeros(pixel.shape, place.dtype)
    else:
        first = np.floor(at)
        rest = (at - first)[:, np.newaxis]
        if how.mode == "bilinear":
            pixel = first[:, np.newaxis] + np.arange(2)
            weight = np.concatenate([1 - rest, rest], 1)
            slope = np.concatenate([-np.ones_like(rest), np.ones_like(rest)], 1)
        else:
            pixel = first[:, np.newaxis] + np.arange(-1, 3)
            weight, slope = _cubic(rest)
            pixel = _padded(pixel.astype(place.dtype), size, how)[0]
    slope = slope * scale[:, np.newaxis]
    pixel = pixel.astype(np.int64)
    inside = (pixel >= 0) & (pixel < size)
    return _Taps(np.clip(pixel, 0, size - 1), inside, weight.astype(place.dtype), slope)


def _near(at: np.ndarray, size: int, how: _How) -> np.ndarray:
    """Return coordinates with the far ones moved to where they see the same padding."""
    far = np.abs(at) > max(2.0**20, 4 * size)
    if how.padding != "reflection":
        return np.where(far, np.clip(at, -size - 4, 2 * size + 4), at)
    low, span = (0.0, size - 1.0) if how.align else (-0.5, float(size))
    moved = np.where(far, np.fmod(at - low, 2 * span or 1) + low, at)
    return np.where(np.isnan(moved), 0, moved).astype(at.dtype)  # the first pixel, as elsewhere


def _padded(at: np.ndarray, size: int, how: _How) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates moved into the image as the padding says, and the slope of that."""
    turn = np.ones(at.shape, at.dtype)
    if how.padding == "zeros":
        return at, turn
    if how.padding == "reflection":
        low, span = (0.0, size - 1.0) if how.align else (-0.5, float(size))
        if span == 0:
            return np.zeros_like(at), np.zeros_like(at)
        away = at - at.dtype.type(low)
        turn[away < 0] = -1
        away = np.abs(away)
        extra = np.fmod(away, 2 * span)  # exact, however far away
        odd = extra > span
        at = np.where(odd, 2 * span - extra, extra) + at.dtype.type(low)
        turn[odd] *= -1
    # Of NaN becomes the first pixel, as in PyTorch.
    turn[~((at > 0) & (at < size - 1))] = 0
    return np.where(at > 0, np.minimum(at, size - 1), 0), turn


def _cubic(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of four pixels, and their slopes: Keys' convolution, a = -0.75."""
    a = -0.75
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1  # noqa: E731
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a  # noqa: E731
    near_slope = lambda d: (3 * (a + 2) * d - 2 * (a + 3)) * d  # noqa: E731
    far_slope = lambda d: (3 * a * d - 10 * a) * d + 8 * a  # noqa: E731
    weight = [far(t + 1), near(t), near(1 - t), far(2 - t)]
    slope = [far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)]
    return np.concatenate(weight, 1), np.concatenate(slope, 1)


@in_float32
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return the grid of affine maps, for `grid_sample`.

    Parameters
    ----------
    theta : (N, 2, 3), or (N, 3, 4) for volumes, floating
        The maps from output places to input places, from -1 to 1.
    size : (N, C, OH, OW), or (N, C, OD, OH, OW)
        Of what is to be sampled.
    align_corners : bool
        As for `grid_sample`.

    Returns
    -------
    (N, OH, OW, 2) or (N, OD, OH, OW, 3)

    Examples
    --------
    >>> import convcore
    >>> theta = convcore.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> affine_grid(theta, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    check_arguments("affine_grid", theta=theta)
    if align_corners is None:
        warnings.warn(_DEFAULT, stacklevel=3)
    sizes, shape = [int(n) for n in size], theta._array.shape
    if theta._array.dtype.kind != "f":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(sizes) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    rank = len(sizes) - 2
    if len(shape) != 3 or shape[1:] != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and 1 in sizes[2:]:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.",
            stacklevel=3,
        )
    if shape[0] != sizes[0]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{sizes[0]}, {rank + 1}] but got: [{shape[0]}, {rank + 1}]."
        )
    dtype = theta._array.dtype
    lines = [_line(n, bool(align_corners), dtype) for n in sizes[2:]]
    places = np.meshgrid(*lines, indexing="ij")[::-1]
    base = wrap(np.stack([*places, np.ones(sizes[2:], dtype)], -1).reshape(-1, rank + 1))
    moved = matmul(base, transpose(theta.detach(), 1, 2))
    out = wrap(moved._array.reshape(shape[0], *sizes[2:], rank))

    def backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
        rows = reshape(grad, shape[0], len(base._array), rank)
        return matmul(transpose(rows, 1, 2), base)

    # Like PyTorch's node, it saves nothing and can run again.
    record("AffineGridGeneratorBackward0", (theta,), out, backward)
    return out


def _line(size: int, align: bool, dtype: np.dtype) -> np.ndarray:
    """Return the places of the outputs along an axis, from -1 to 1."""
    if size == 1:
        return np.zeros(1, dtype)
    line = linspace(-1, 1, size, dtype=dtype.type)._array
    # Rounded as in PyTorch: where a map moves nothing, all places are on the edge between pixels,
    # and the slope is that of the side to which they are rounded.
    return line if align else line * dtype.type(size - 1) / dtype.type(size)


FUNCTIONS_ONLY = __all__
