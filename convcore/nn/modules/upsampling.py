"""Upsampling layers: nearest-neighbour, linear and cubic interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._errors.calls import typename
from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resize (N, C, W), (N, C, H, W) or (N, C, D, H, W) by interpolation.

    Parameters
    ----------
    size, scale_factor, mode, align_corners, recompute_scale_factor
        As for `functional.interpolate`.

    Examples
    --------
    >>> import convcore
    >>> Upsample(scale_factor=2)(convcore.arange(2.0).view(1, 1, 2))
    tensor([[[0., 0., 1., 1.]]])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        elif scale_factor is None or isinstance(scale_factor, int | float | np.generic | Tensor):
            self.scale_factor = float(scale_factor) if scale_factor else None
        else:
            raise TypeError(
                f"{type(self).__name__}(): argument 'scale_factor' must be a number or a tuple of "
                f"numbers, not {typename(scale_factor)}"
            )
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` in the new size."""
        return functional.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """Return the settings that the printed form shows."""
        factor = self.scale_factor
        how = f"size={self.size!r}" if factor is None else f"scale_factor={factor!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Nearest-neighbour upsampling of (N, C, H, W): `Upsample` with mode='nearest'."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear upsampling of (N, C, H, W): `Upsample` with align_corners=True."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
