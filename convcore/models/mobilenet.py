"""MobileNetV2: inverted residual blocks of depthwise convolutions.

References
----------
M. Sandler, A. Howard, M. Zhu, A. Zhmoginov, L.-C. Chen, "MobileNetV2: inverted residuals and linear
bottlenecks", CVPR 2018, tables 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import convcore
from convcore._tensor import Tensor
from convcore.models.blocks import (
    Module,
    Sequential,
    built_with,
    check_weights,
    divisible,
    init_weights,
    normalized,
)

__all__ = ["MobileNetV2", "mobilenet_v2"]

# Expansion, channels, blocks, stride of each stage.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class Conv2dNormActivation(Sequential):
    """A convolution that keeps the size at stride 1, batch normalisation and ReLU6."""

    def __init__(
        self, c_in: int, c_out: int, kernel_size: int = 3, stride: int = 1, groups: int = 1
    ) -> None:
        nn = self.library.nn
        nn.Sequential.__init__(
            self,
            nn.Conv2d(
                *(c_in, c_out, kernel_size, stride, (kernel_size - 1) // 2),
                groups=groups,
                bias=False,
            ),
            nn.BatchNorm2d(c_out),
            nn.ReLU6(inplace=True),
        )
        self.out_channels = c_out

    def forward(self, input: Tensor) -> Tensor:
        """Return the three layers' output."""
        convolution, norm, activation = self
        return normalized(norm, activation, convolution(input))


class InvertedResidual(Module):
    """Widen with 1x1, filter each channel with 3x3, narrow with 1x1; with a shortcut if it fits.

    Parameters
    ----------
    inp, oup : int
        Channels in and out.
    stride : 1 or 2
    expand_ratio : int
        Channels of the wide part over ``inp``.

    Raises
    ------
    ValueError
        ``stride`` is neither 1 nor 2.
    """

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int) -> None:
        nn = self.library.nn
        nn.Module.__init__(self)
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        self.stride = stride
        self.use_res_connect = stride == 1 and inp == oup
        wide = round(inp * expand_ratio)
        conv_norm_relu = built_with(Conv2dNormActivation, self.library)
        layers = []
        if expand_ratio != 1:
            layers.append(conv_norm_relu(inp, wide, kernel_size=1))
        layers += [
            conv_norm_relu(wide, wide, stride=stride, groups=wide),
            nn.Conv2d(wide, oup, 1, 1, 0, bias=False),
            nn.BatchNorm2d(oup),
        ]
        self.conv = nn.Sequential(*layers)
        self.out_channels = oup

    def forward(self, x: Tensor) -> Tensor:
        """Return the layers' output, plus x where sizes allow."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(Module):
    """Inverted residual blocks: (N, 3, H, W) to (N, num_classes).

    Parameters
    ----------
    num_classes : int
    width_mult : float
        Factor of the channels of every layer.
    inverted_residual_setting : sequence of four ints each, optional
        Expansion, channels, blocks and stride of each stage; the paper's by default.
    round_nearest : int
        Channels are multiples of this.
    dropout : float
        Share that is dropped before the linear layer in training.

    Examples
    --------
    >>> import convcore
    >>> mobilenet_v2(num_classes=4).eval()(convcore.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 4])
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: Sequence[Sequence[int]] | None = None,
        round_nearest: int = 8,
        dropout: float = 0.2,
    ) -> None:
        nn = self.library.nn
        nn.Module.__init__(self)
        channels = divisible(32 * width_mult, round_nearest)
        self.last_channel = divisible(1280 * max(1.0, width_mult), round_nearest)
        conv_norm_relu = built_with(Conv2dNormActivation, self.library)
        inverted_residual = built_with(InvertedResidual, self.library)
        features = [conv_norm_relu(3, channels, stride=2)]
        for expansion, planes, blocks, stride in inverted_residual_setting or _STAGES:
            c_out = divisible(planes * width_mult, round_nearest)
            for block in range(blocks):
                step = stride if block == 0 else 1
                features.append(inverted_residual(channels, c_out, step, expansion))
                channels = c_out
        features.append(conv_norm_relu(channels, self.last_channel, kernel_size=1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes)
        )
        init_weights(self, linear_std=0.01)

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, num_classes) scores of (N, 3, H, W) pictures."""
        x = self.library.nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(x.flatten(1))


def mobilenet_v2(weights: None = None, *, library: Any = convcore, **options: Any) -> MobileNetV2:
    """Make a MobileNetV2: 3,504,872 parameters; see `MobileNetV2` for the options."""
    check_weights(weights, options)
    return built_with(MobileNetV2, library)(**options)
