"""Small nets with what breaks attribution by modules: reused, in-place and functional ReLUs."""

import convcore
from convcore import nn
from convcore.nn import functional as F


class Dense(nn.Module):
    """As DenseNet: batch norm before the convolution, and concatenation; one ReLU for all."""

    def __init__(self, bias=True):
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (3, 7, 11))
        self.convs = nn.ModuleList(nn.Conv2d(n, 4, 3, padding=1, bias=bias) for n in (3, 7, 11))
        self.relu = nn.ReLU(inplace=True)
        self.fc = nn.Linear(15, 4, bias=bias)

    def forward(self, x):
        for norm, conv in zip(self.norms, self.convs, strict=True):
            x = convcore.cat([x, conv(self.relu(norm(x)))], 1)
        return self.fc(F.adaptive_avg_pool2d(F.max_pool2d(F.relu_(x * 1.0), 2), 1).flatten(1))


class Shuffle(nn.Module):
    """As ShuffleNet: halves of the channels, depthwise convolutions, a channel shuffle."""

    def __init__(self, bias=True):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=bias)
        self.relu = nn.ReLU(inplace=True)
        self.point = nn.Conv2d(4, 4, 1, bias=bias)
        self.depth = nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=bias)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(8, 4, bias=bias)

    def forward(self, x):
        x = self.relu(self.stem(x))
        for _ in range(2):  # the same modules again
            left, right = x.chunk(2, 1)
            right = self.norm(self.depth(self.relu(self.point(right))))
            x = convcore.cat([left, right.relu_()], 1)
            n, c, h, w = x.shape
            x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.fc(x.mean((2, 3)))


def settled(net, centred=False):
    """Give batch norms statistics of their own; ``centred``: means and shifts of 0."""
    net = net.double().eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 2)
            module.running_mean.zero_()
            module.bias.data.zero_()
            if not centred:
                module.running_mean.normal_()
                module.bias.data.normal_()
    return net


def nets(centred=False):
    """Return a ResNet, and nets like DenseNet and ShuffleNet; ``centred``: nothing adds a bias."""
    convcore.manual_seed(0)
    found = [convcore.models.resnet8(num_classes=4), Dense(not centred), Shuffle(not centred)]
    if centred:
        found[0].fc.bias.data.zero_()
    return [settled(net, centred) for net in found]
