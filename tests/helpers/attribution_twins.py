"""The nets of attribution_nets in PyTorch: a module for each call, and nothing in place.

That is where tools that hook modules are right.
"""

import copy

import torch
from torch_twins import copied_state


def twin(module, made):
    """Give a module of PyTorch the state of one of convcore."""
    made = made.double().eval()
    made.load_state_dict(copied_state(module, torch))
    return made


def conv(module):
    kept = ("in_channels", "out_channels", "kernel_size", "stride", "padding")
    options = {name: getattr(module, name) for name in kept}
    made = torch.nn.Conv2d(**options, groups=module.groups, bias=module.bias is not None)
    return twin(module, made)


def norm(module):
    return twin(module, torch.nn.BatchNorm2d(module.num_features))


def linear(module):
    options = {"bias": module.bias is not None}
    return twin(module, torch.nn.Linear(module.in_features, module.out_features, **options))


def relus(count):
    return torch.nn.ModuleList(torch.nn.ReLU() for _ in range(count))


class Dense(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.norms = torch.nn.ModuleList(map(norm, net.norms))
        self.convs = torch.nn.ModuleList(map(conv, net.convs))
        self.relus = relus(4)
        self.fc, self.last = linear(net.fc), torch.nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        for norm, relu, conv in zip(self.norms, self.relus, self.convs, strict=False):
            x = torch.cat([x, conv(relu(norm(x)))], 1)
        x = torch.nn.functional.max_pool2d(self.relus[3](x), 2)
        return self.fc(self.last(x).flatten(1))


class Shuffle(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.stem, self.relu, self.relus = conv(net.stem), torch.nn.ReLU(), relus(2)
        parts = (conv(net.point), torch.nn.ReLU(), conv(net.depth), norm(net.norm))
        self.rights = torch.nn.ModuleList(
            torch.nn.Sequential(*copy.deepcopy(parts)) for _ in range(2)
        )
        self.pool, self.fc = torch.nn.AdaptiveAvgPool2d(1), linear(net.fc)

    def forward(self, x):
        x = self.relu(self.stem(x))
        for part, relu in zip(self.rights, self.relus, strict=True):
            left, right = x.chunk(2, 1)
            x = torch.cat([left, relu(part(right))], 1)
            n, c, h, w = x.shape
            x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.fc(self.pool(x).flatten(1))
