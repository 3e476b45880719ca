"""Channels as pixels, and pixels as channels, as modules."""

from __future__ import annotations

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Make of r*r channels one that is r times as high and wide.

    From (N, C*r*r, H, W) to (N, C, H*r, W*r), with any axes in the place of N.

    Parameters
    ----------
    upscale_factor : int
        r.

    References
    ----------
    W. Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel
    convolutional neural network", CVPR 2016, section 3.2.

    Examples
    --------
    >>> import convcore
    >>> PixelShuffle(2)(convcore.arange(4.0).view(1, 4, 1, 1))
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with fewer channels and more pixels."""
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:  # noqa: D102
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Undo `PixelShuffle`: (N, C, H*r, W*r) to (N, C*r*r, H, W).

    Parameters
    ----------
    downscale_factor : int
        r.
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with more channels and fewer pixels."""
        return functional.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:  # noqa: D102
        return f"downscale_factor={self.downscale_factor}"
