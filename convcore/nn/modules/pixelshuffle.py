"""PixelShuffle and PixelUnshuffle, channels to pixels and back; ChannelShuffle."""

from __future__ import annotations

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]


class ChannelShuffle(Module):
    """Shuffle channels of (N, C, *sizes): take them in turn from each group of neighbours.

    Parameters
    ----------
    groups : int
        It divides C.
    """

    _printed_attributes = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with its channels in another order."""
        return functional.channel_shuffle(input, self.groups)


class PixelShuffle(Module):
    """Rearrange channels into pixels: (..., C*r*r, H, W) to (..., C, H*r, W*r).

    Parameters
    ----------
    upscale_factor : int
        The factor r.

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

    _printed_attributes = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with fewer channels and more pixels."""
        return functional.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """Rearrange pixels into channels, the inverse of `PixelShuffle`.

    From (..., C, H*r, W*r) to (..., C*r*r, H, W).

    Parameters
    ----------
    downscale_factor : int
        The factor r.
    """

    _printed_attributes = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with more channels and fewer pixels."""
        return functional.pixel_unshuffle(input, self.downscale_factor)
