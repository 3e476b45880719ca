"""Plain deep nets of 3x3 convolutions.

References
----------
K. Simonyan, A. Zisserman, "Very deep convolutional networks for large-scale image recognition",
ICLR 2015, table 1.
"""

from __future__ import annotations

from typing import Any

from convcore import nn
from convcore._tensor import Tensor
from convcore.models.blocks import NormalizedSequential, check_weights, init_weights

__all__ = [
    "VGG",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
]

_PLANES = (64, 128, 256, 512, 512)  # of the five stages, each with a pool at its end

# Convolutions of each stage.
_DEPTHS = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}


class VGG(nn.Module):
    """Convolutions and pools, then three linear layers: (N, 3, H, W) to (N, num_classes).

    Parameters
    ----------
    features : Module
        What maps pictures to (N, 512, H/32, W/32).
    num_classes : int
    init_weights : bool
        Whether layers get first values for training, or keep those that they were made with.
    dropout : float
        Share that is dropped between the linear layers in training.

    Examples
    --------
    >>> import convcore
    >>> len(vgg11().features)
    21
    """

    def __init__(
        self,
        features: nn.Module,
        num_classes: int = 1000,
        init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            _init_weights(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, num_classes) scores of (N, 3, H, W) pictures."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _init_weights(net: VGG) -> None:
    init_weights(net, linear_std=0.01)


def _features(depth: int, batch_norm: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    c_in = 3
    for planes, convolutions in zip(_PLANES, _DEPTHS[depth], strict=True):
        for _ in range(convolutions):
            layers.append(nn.Conv2d(c_in, planes, kernel_size=3, padding=1))
            if batch_norm:
                layers.append(nn.BatchNorm2d(planes))
            layers.append(nn.ReLU(inplace=True))
            c_in = planes
        layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    return NormalizedSequential(*layers) if batch_norm else nn.Sequential(*layers)


def _vgg(depth: int, batch_norm: bool, weights: None, options: dict[str, Any]) -> VGG:
    check_weights(weights)
    return VGG(_features(depth, batch_norm), **options)


def vgg11(*, weights: None = None, **options: Any) -> VGG:
    """Make a VGG of 11 layers: 132,863,336 parameters.

    The options are those of `VGG` but ``features``.
    """
    return _vgg(11, False, weights, options)


def vgg11_bn(*, weights: None = None, **options: Any) -> VGG:
    """Make a VGG of 11 layers with batch normalisation: 132,868,840 parameters.

    The options are those of `VGG` but ``features``.
    """
    return _vgg(11, True, weights, options)


def vgg13(*, weights: None = None, **options: Any) -> VGG:
    """Make a VGG of 13 layers: 133,047,848 parameters.

    The options are those of `VGG` but ``features``.
    """
    return _vgg(13, False, weights, options)


def vgg13_bn(*, weights: None = None, **options: Any) -> VGG:
    """Make a VGG of 13 layers with batch normalisation: 133,053,736 parameters.

    The options are those of `VGG` but ``features``.
    """
    return _vgg(13, True, weights, options)


def vgg16(*, weights: None = None, **options: Any) -> VGG:
    """Make a VGG of 16 layers: 138,357,544 parameters.

    The options are those of `VGG` but ``features``.
    """
    return _vgg(16, False, weights, options)


def vgg16_bn(*, weights: None = None, **options: Any) -> VGG:
    """Make a VGG of 16 layers with batch normalisation: 138,365,992 parameters.

    The options are those of `VGG` but ``features``.
    """
    return _vgg(16, True, weights, options)


def vgg19(*, weights: None = None, **options: Any) -> VGG:
    """Make a VGG of 19 layers: 143,667,240 parameters.

    The options are those of `VGG` but ``features``.
    """
    return _vgg(19, False, weights, options)


def vgg19_bn(*, weights: None = None, **options: Any) -> VGG:
    """Make a VGG of 19 layers with batch normalisation: 143,678,248 parameters.

    The options are those of `VGG` but ``features``.
    """
    return _vgg(19, True, weights, options)
