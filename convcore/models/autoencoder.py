"""An autoencoder for 64x64 images, of strided convolutions and pixel shuffles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import convcore
from convcore._tensor import Tensor
from convcore.models.blocks import Module, Sequential, built_with

__all__ = ["Autoencoder", "Decoder", "Encoder", "autoencoder"]

_SLOPE = 0.1
_SMALLEST = 4  # height and width before the bottleneck


class Reshape(Module):
    """Give each element of a batch another shape."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.library.nn.Module.__init__(self)
        self.shape = tuple(shape)

    def forward(self, input: Tensor) -> Tensor:
        """Return (N, ...) as (N, *shape)."""
        return input.view(input.size(0), *self.shape)

    def extra_repr(self) -> str:
        """Return the shape."""
        return f"shape={self.shape}"


class Shuffle(Module):
    """Turn four channels into one of twice the height and width.

    y[n, c, 2h + i, 2w + j] = x[n, (2i + j) * C + c, h, w]: blocks of C channels are the pixels'
    places, where `PixelShuffle` has places within each channel.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return (N, 4C, H, W) as (N, C, 2H, 2W)."""
        n, channels, height, width = input.shape
        parts = input.view(n, 2, 2, channels // 4, height, width)
        return (
            parts.permute(0, 3, 4, 1, 5, 2)
            .contiguous()
            .view(n, channels // 4, 2 * height, 2 * width)
        )


class Down(Sequential):
    """Downsampling by 2: a 5x5 convolution of stride 2 and LeakyReLU."""

    def __init__(self, c_in: int, c_out: int) -> None:
        nn = self.library.nn
        nn.Sequential.__init__(self)
        self.add_module("conv", nn.Conv2d(c_in, c_out, kernel_size=5, stride=2, padding=2))
        self.add_module("relu", nn.LeakyReLU(_SLOPE, inplace=True))


class Up(Sequential):
    """Upsampling by 2: a 3x3 convolution to four times the channels, LeakyReLU and a shuffle."""

    def __init__(self, c_in: int, c_out: int) -> None:
        nn = self.library.nn
        nn.Sequential.__init__(self)
        self.add_module("conv", nn.Conv2d(c_in, 4 * c_out, kernel_size=3, padding=1))
        self.add_module("relu", nn.LeakyReLU(_SLOPE, inplace=True))
        self.add_module("shuffle", built_with(Shuffle, self.library)())


class Encoder(Sequential):
    """Four downsamplings, a linear bottleneck, one upsampling: (N, 3, 64, 64) to (N, 4w, 8, 8).

    Parameters
    ----------
    width : int
        Channels w after the first convolution; 128 is full width, with 69,662,976 parameters.
    code : int, optional
        Size of the bottleneck; 8w by default.

    Examples
    --------
    >>> import convcore
    >>> Encoder(width=2)(convcore.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 8, 8, 8])
    """

    def __init__(self, width: int = 128, code: int | None = None) -> None:
        nn = self.library.nn
        nn.Sequential.__init__(self)
        down, up = built_with(Down, self.library), built_with(Up, self.library)
        code = 8 * width if code is None else code
        smallest = (8 * width, _SMALLEST, _SMALLEST)
        elements = smallest[0] * _SMALLEST**2
        channels = (3, width, 2 * width, 4 * width, 8 * width)
        for number in range(4):
            self.add_module(f"down{number + 1}", down(channels[number], channels[number + 1]))
        self.add_module("flatten", nn.Flatten())
        self.add_module("code", nn.Linear(elements, code))
        self.add_module("spread", nn.Linear(code, elements))
        self.add_module("reshape", built_with(Reshape, self.library)(smallest))
        self.add_module("up", up(8 * width, 4 * width))


class Decoder(Sequential):
    """Three upsamplings and a 5x5 convolution: (N, 4w, 8, 8) to (N, 3, 64, 64) in 0 to 1.

    Parameters
    ----------
    width : int
        The encoder's w.
    """

    def __init__(self, width: int = 128) -> None:
        nn = self.library.nn
        nn.Sequential.__init__(self)
        up = built_with(Up, self.library)
        channels = (4 * width, 2 * width, width, width // 2)
        for number in range(3):
            self.add_module(f"up{number + 1}", up(channels[number], channels[number + 1]))
        self.add_module("conv", nn.Conv2d(channels[-1], 3, kernel_size=5, padding=2))
        self.add_module("sigmoid", nn.Sigmoid())


class Autoencoder(Module):
    """An `Encoder` and a `Decoder`: (N, 3, 64, 64) images to images like them.

    Parameters
    ----------
    width : int
        Channels after the first convolution; even.
    code : int, optional
        Size of the bottleneck; 8 times the width by default.

    Raises
    ------
    ValueError
        ``width`` is odd or below 2.
    """

    def __init__(self, width: int = 128, code: int | None = None) -> None:
        self.library.nn.Module.__init__(self)
        if width < 2 or width % 2:
            raise ValueError(f"width must be even and at least 2, got {width}")
        self.encoder = built_with(Encoder, self.library)(width, code)
        self.decoder = built_with(Decoder, self.library)(width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the reconstruction of (N, 3, 64, 64) images."""
        return self.decoder(self.encoder(x))


def autoencoder(*, library: Any = convcore, **options: Any) -> Autoencoder:
    """Make an `Autoencoder`; see there for the options."""
    return built_with(Autoencoder, library)(**options)
