"""The nets that are measured: how each is made, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TRAIN, RUN, RUN_ONE = TASKS = ("training step", "inference", "inference of one")


@dataclass(frozen=True, slots=True)
class Net:
    """A function of convcore.models, its options, and the (C, H, W) pictures it takes.

    ``loss`` names the function of nn.functional that training makes smaller.
    """

    name: str
    function: str
    batch: int
    picture: tuple[int, int, int]
    loss: str = "cross_entropy"
    classes: int = 1000
    options: Mapping[str, Any] = field(default_factory=dict)

    def input_shape(self, task: str) -> tuple[int, ...]:
        """Return the shape of the input: (N, C, H, W)."""
        return (1 if task == RUN_ONE else self.batch, *self.picture)


NETS = (
    Net("ResNet-18", "resnet18", 8, (3, 224, 224)),
    Net("ResNet-50", "resnet50", 8, (3, 224, 224)),
    Net("MobileNetV2", "mobilenet_v2", 8, (3, 224, 224)),
    Net("VGG-16", "vgg16", 4, (3, 224, 224)),
    # The maps of 32 to 256 channels.
    Net("U-Net", "unet", 2, (3, 256, 256), "binary_cross_entropy", options={"depth": 3}),
    Net("LeNet", "lenet", 64, (1, 28, 28), "nll_loss", 10),
)


def net_named(name: str) -> Net:
    """Return the net of that name.

    Raises
    ------
    ValueError
        There is none.
    """
    for net in NETS:
        if name.lower() in (net.name.lower(), net.function):
            return net
    raise ValueError(f"{name!r} is none of the nets {', '.join(net.name for net in NETS)}")
