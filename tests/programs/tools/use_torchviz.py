"""torchviz's drawing of the graph that backward goes through."""

import re

import torch
from torch import nn
from torchviz import make_dot


def build():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1, stride=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(256, 5),
    ).eval()


model = build()
x = torch.rand(1, 3, 16, 16, requires_grad=True)
dot = make_dot(model(x).mean(), params={**dict(model.named_parameters()), "x": x})
names: dict[str, str] = {}  # the nodes are named by addresses
print(re.sub(r"\d{6,}", lambda found: names.setdefault(found[0], f"n{len(names)}"), dot.source))
