"""thop's count of multiply-adds and parameters."""

import torch
from thop import clever_format, profile
from torch import nn


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


found = profile(build(), inputs=(torch.rand(1, 3, 16, 16),), verbose=False)
print(found, clever_format(found, "%.3f"))
