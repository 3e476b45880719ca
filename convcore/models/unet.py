"""U-Net: an encoder and a decoder for segmentation, with a skip connection at each size.

References
----------
O. Ronneberger, P. Fischer, T. Brox, "U-Net: convolutional networks for biomedical image
segmentation", MICCAI 2015, figure 1. With padding and batch normalisation, as in M. Buda,
A. Saha, M. A. Mazurowski, Computers in Biology and Medicine 109, 2019, whose checkpoint of the
standard size has these names.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import convcore
from convcore._tensor import Tensor
from convcore.models.blocks import Module, NormalizedSequential, built_with, check_weights

__all__ = ["UNet", "unet"]


class UNet(Module):
    """A U-Net: (N, in_channels, H, W) images to (N, out_channels, H, W) probabilities.

    Parameters
    ----------
    in_channels, out_channels : int
    init_features : int
        Channels at full size; each halving of the size doubles them.
    depth : int
        Number of halvings; H and W are multiples of 2**depth.

    Raises
    ------
    ValueError
        ``depth`` is below 1.

    Examples
    --------
    >>> import convcore
    >>> unet(init_features=4).eval()(convcore.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 1, 32, 32])
    """

    def __init__(
        self, in_channels: int = 3, out_channels: int = 1, init_features: int = 32, depth: int = 4
    ) -> None:
        nn, block = self.library.nn, built_with(_Block, self.library)
        nn.Module.__init__(self)
        if depth < 1:
            raise ValueError(f"depth must be at least 1, got {depth}")
        self.depth = depth
        c_in, features = in_channels, init_features
        for level in range(1, depth + 1):
            self.add_module(f"encoder{level}", block(c_in, features, f"enc{level}"))
            self.add_module(f"pool{level}", nn.MaxPool2d(kernel_size=2, stride=2))
            c_in, features = features, 2 * features
        self.bottleneck = block(c_in, features, "bottleneck")
        for level in range(depth, 0, -1):
            half = features // 2
            up = nn.ConvTranspose2d(features, half, kernel_size=2, stride=2)
            self.add_module(f"upconv{level}", up)
            self.add_module(f"decoder{level}", block(2 * half, half, f"dec{level}"))
            features = half
        self.conv = nn.Conv2d(features, out_channels, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return each pixel's probability of each class, of (N, in_channels, H, W) images."""
        module = self._modules
        across = []
        for level in range(1, self.depth + 1):
            across.append(module[f"encoder{level}"](x))
            x = module[f"pool{level}"](across[-1])
        x = self.bottleneck(x)
        for level in range(self.depth, 0, -1):
            x = self.library.cat((module[f"upconv{level}"](x), across.pop()), dim=1)
            x = module[f"decoder{level}"](x)
        return self.conv(x).sigmoid()


class _Block(NormalizedSequential):
    """Two 3x3 convolutions, each with batch normalisation and ReLU."""

    def __init__(self, c_in: int, c_out: int, name: str) -> None:
        nn = self.library.nn
        layers = OrderedDict()
        for number, channels in ((1, c_in), (2, c_out)):
            convolution = nn.Conv2d(channels, c_out, kernel_size=3, padding=1, bias=False)
            layers[f"{name}conv{number}"] = convolution
            layers[f"{name}norm{number}"] = nn.BatchNorm2d(num_features=c_out)
            layers[f"{name}relu{number}"] = nn.ReLU(inplace=True)
        nn.Sequential.__init__(self, layers)


def unet(weights: None = None, *, library: Any = convcore, **options: Any) -> UNet:
    """Make a `UNet`: 7,763,041 parameters by default; see there for the options."""
    check_weights(weights, options)
    return built_with(UNet, library)(**options)
