"""ResNet: residual nets for 224x224 images, and a small one for 8x8 to 32x32.

References
----------
K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016, table 1;
for 8x8 to 32x32 pictures, section 4.2. Strides are in the 3x3 convolutions, as in torchvision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import convcore
from convcore._tensor import Tensor
from convcore.models.blocks import Module, built_with, check_weights, init_weights, normalized

__all__ = ["ResNet", "SmallResNet", "resnet8", "resnet18", "resnet34", "resnet50", "resnet101"]


def conv3x3(
    nn: Any, c_in: int, c_out: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> Any:
    """Make a 3x3 convolution that keeps the size at stride 1."""
    return nn.Conv2d(
        *(c_in, c_out),
        kernel_size=3,
        stride=stride,
        padding=dilation,
        groups=groups,
        bias=False,
        dilation=dilation,
    )


def conv1x1(nn: Any, c_in: int, c_out: int, stride: int = 1) -> Any:
    """Make a 1x1 convolution."""
    return nn.Conv2d(c_in, c_out, kernel_size=1, stride=stride, bias=False)


class BasicBlock(Module):
    """Two 3x3 convolutions beside a shortcut."""

    expansion = 1  # output channels over ``planes``

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Any = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[[int], Any] | None = None,
    ) -> None:
        nn = self.library.nn
        nn.Module.__init__(self)
        norm_layer = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(nn, inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(nn, planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(convolutions(x) + shortcut(x))."""
        out = normalized(self.bn1, self.relu, self.conv1(x))
        out = self.conv2(out)
        shortcut = x if self.downsample is None else self.downsample(x)
        return normalized(self.bn2, self.relu, out, shortcut)


class Bottleneck(Module):
    """A 3x3 convolution between two of 1x1, beside a shortcut."""

    expansion = 4  # output channels over ``planes``

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Any = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[[int], Any] | None = None,
    ) -> None:
        nn = self.library.nn
        nn.Module.__init__(self)
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64)) * groups
        self.conv1 = conv1x1(nn, inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(nn, width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(nn, width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(convolutions(x) + shortcut(x))."""
        out = normalized(self.bn1, self.relu, self.conv1(x))
        out = normalized(self.bn2, self.relu, self.conv2(out))
        out = self.conv3(out)
        shortcut = x if self.downsample is None else self.downsample(x)
        return normalized(self.bn3, self.relu, out, shortcut)


class ResNet(Module):
    """A residual net: (N, 3, H, W) to (N, num_classes).

    Parameters
    ----------
    block : BasicBlock or Bottleneck
    layers : four ints
        Blocks of each stage; stages have 64, 128, 256 and 512 planes.
    num_classes : int
    zero_init_residual : bool
        Whether each block begins as its shortcut: the last normalisation's weight is 0.
    groups, width_per_group : int
        Of the 3x3 convolutions in a `Bottleneck`.
    replace_stride_with_dilation : three bools, optional
        Which of the later stages dilate in place of halving the map.
    norm_layer : callable, optional
        Makes a normalisation of so many channels; `BatchNorm2d` by default.

    Raises
    ------
    ValueError
        ``replace_stride_with_dilation`` has not three elements, or a `BasicBlock` is asked for
        groups.

    Examples
    --------
    >>> import convcore
    >>> net = resnet18(num_classes=5).eval()
    >>> net(convcore.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 5])
    """

    def __init__(
        self,
        block: Any,
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: Callable[[int], Any] | None = None,
    ) -> None:
        nn, block = self.library.nn, built_with(block, self.library)
        nn.Module.__init__(self)
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        dilate = replace_stride_with_dilation or (False, False, False)
        if len(dilate) != 3:
            raise ValueError(
                "replace_stride_with_dilation should be None or a 3-element tuple, got "
                f"{replace_stride_with_dilation}"
            )
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        init_weights(self)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, built_with(BasicBlock, self.library)):
                    nn.init.zeros_(module.bn2.weight)
                elif isinstance(module, built_with(Bottleneck, self.library)):
                    nn.init.zeros_(module.bn3.weight)

    def _make_layer(
        self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> Any:
        """Make one stage; its first block changes the size and the number of channels."""
        nn, first_dilation = self.library.nn, self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        c_out = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != c_out:
            downsample = nn.Sequential(
                conv1x1(nn, self.inplanes, c_out, stride), self._norm_layer(c_out)
            )
        widths = (self.groups, self.base_width)
        made = [
            block(
                *(self.inplanes, planes, stride, downsample, *widths, first_dilation),
                self._norm_layer,
            )
        ]
        self.inplanes = c_out
        for _ in range(1, blocks):
            made.append(block(c_out, planes, 1, None, *widths, self.dilation, self._norm_layer))
        return nn.Sequential(*made)

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, num_classes) scores of (N, 3, H, W) pictures."""
        x = self.maxpool(normalized(self.bn1, self.relu, self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


class SmallResNet(Module):
    """A residual net for small pictures: three stages of one block, of 16, 32 and 64 planes.

    Parameters
    ----------
    num_classes : int
    in_channels : int
    """

    def __init__(self, num_classes: int = 10, in_channels: int = 3) -> None:
        nn, block = self.library.nn, built_with(BasicBlock, self.library)
        nn.Module.__init__(self)
        self.conv1 = conv3x3(nn, in_channels, 16)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = nn.Sequential(block(16, 16))
        self.layer2 = nn.Sequential(self._half(16, 32))
        self.layer3 = nn.Sequential(self._half(32, 64))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(64, num_classes)
        init_weights(self)

    def _half(self, c_in: int, c_out: int) -> Any:
        nn, block = self.library.nn, built_with(BasicBlock, self.library)
        shortcut = nn.Sequential(conv1x1(nn, c_in, c_out, 2), nn.BatchNorm2d(c_out))
        return block(c_in, c_out, 2, shortcut)

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, num_classes) scores of (N, in_channels, H, W) pictures."""
        x = normalized(self.bn1, self.relu, self.conv1(x))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(self.avgpool(x).flatten(1))


def resnet8(*, library: Any = convcore, **options: Any) -> SmallResNet:
    """Make a residual net of 8 layers for small pictures; see `SmallResNet` for the options."""
    return built_with(SmallResNet, library)(**options)


def resnet18(weights: None = None, *, library: Any = convcore, **options: Any) -> ResNet:
    """Make a residual net of 18 layers: 11,689,512 parameters; see `ResNet` for the options."""
    check_weights(weights, options)
    return built_with(ResNet, library)(BasicBlock, (2, 2, 2, 2), **options)


def resnet34(weights: None = None, *, library: Any = convcore, **options: Any) -> ResNet:
    """Make a residual net of 34 layers: 21,797,672 parameters; see `ResNet` for the options."""
    check_weights(weights, options)
    return built_with(ResNet, library)(BasicBlock, (3, 4, 6, 3), **options)


def resnet50(weights: None = None, *, library: Any = convcore, **options: Any) -> ResNet:
    """Make a residual net of 50 layers: 25,557,032 parameters; see `ResNet` for the options."""
    check_weights(weights, options)
    return built_with(ResNet, library)(Bottleneck, (3, 4, 6, 3), **options)


def resnet101(weights: None = None, *, library: Any = convcore, **options: Any) -> ResNet:
    """Make a residual net of 101 layers: 44,549,160 parameters; see `ResNet` for the options."""
    check_weights(weights, options)
    return built_with(ResNet, library)(Bottleneck, (3, 4, 23, 3), **options)
