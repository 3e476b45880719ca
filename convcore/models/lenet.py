"""LeNet: a small net for 28x28 images of digits."""

from __future__ import annotations

from typing import Any

import convcore
from convcore._tensor import Tensor
from convcore.models.blocks import Module, built_with

__all__ = ["LeNet", "lenet"]


class LeNet(Module):
    """Two convolutions of 5x5 with pools and two linear layers: (N, 1, 28, 28) to (N, 10).

    The net of PyTorch's first MNIST example: 21,840 parameters. It returns the logarithms of
    probabilities, for `nll_loss`.

    Parameters
    ----------
    num_classes : int

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
    recognition", Proceedings of the IEEE 86(11), 1998, section II.

    Examples
    --------
    >>> import convcore
    >>> LeNet()(convcore.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(self, num_classes: int = 10) -> None:
        nn = self.library.nn
        nn.Module.__init__(self)
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, num_classes) logarithms of probabilities of (N, 1, 28, 28) pictures."""
        F = self.library.nn.functional
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        x = self.fc2(F.dropout(x, training=self.training))
        return F.log_softmax(x, dim=1)


def lenet(*, library: Any = convcore, **options: Any) -> LeNet:
    """Make a `LeNet`; see there for the options."""
    return built_with(LeNet, library)(**options)
