"""VGG: deep nets of 3x3 convolutions and max pooling.

References
----------
K. Simonyan, A. Zisserman, "Very deep convolutional networks for large-scale image recognition",
ICLR 2015, table 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import convcore
from convcore._tensor import Tensor
from convcore.models.blocks import (
    Module,
    NormalizedSequential,
    built_with,
    check_weights,
    init_weights,
)

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
_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(Module):
    """Convolutions and pools, then three linear layers: (N, 3, H, W) to (N, num_classes).

    Parameters
    ----------
    features : Module
        The convolutions: images to (N, 512, H/32, W/32).
    num_classes : int
    init_weights : bool
        Whether to draw initial values for training; if not, layers keep their own defaults.
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
        features: Any,
        num_classes: int = 1000,
        init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:
        nn = self.library.nn
        nn.Module.__init__(self)
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


def _features(library: Any, depth: int, batch_norm: bool) -> Any:
    nn, layers = library.nn, []
    c_in = 3
    for planes, convolutions in zip(_PLANES, _DEPTHS[depth], strict=True):
        for _ in range(convolutions):
            layers.append(nn.Conv2d(c_in, planes, kernel_size=3, padding=1))
            if batch_norm:
                layers.append(nn.BatchNorm2d(planes))
            layers.append(nn.ReLU(inplace=True))
            c_in = planes
        layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    return (
        built_with(NormalizedSequential, library)(*layers) if batch_norm else nn.Sequential(*layers)
    )


def _maker(depth: int, batch_norm: bool, parameters: int) -> Callable[..., VGG]:
    """Return the function that makes a VGG of so many layers."""

    def make(weights: None = None, *, library: Any = convcore, **options: Any) -> VGG:
        check_weights(weights, options)
        return built_with(VGG, library)(_features(library, depth, batch_norm), **options)

    make.__name__ = make.__qualname__ = f"vgg{depth}_bn" if batch_norm else f"vgg{depth}"
    layers = f"{depth} layers with batch normalisation" if batch_norm else f"{depth} layers"
    make.__doc__ = f"""Make a VGG of {layers}: {parameters:,} parameters.

    The options are those of `VGG` but ``features``.
    """
    return make


vgg11 = _maker(11, False, 132_863_336)
vgg11_bn = _maker(11, True, 132_868_840)
vgg13 = _maker(13, False, 133_047_848)
vgg13_bn = _maker(13, True, 133_053_736)
vgg16 = _maker(16, False, 138_357_544)
vgg16_bn = _maker(16, True, 138_365_992)
vgg19 = _maker(19, False, 143_667_240)
vgg19_bn = _maker(19, True, 143_678_248)
