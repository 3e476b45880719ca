"""ptflops' count of multiply-adds and parameters, layer by layer."""

import torch
from ptflops import get_model_complexity_info
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


print(get_model_complexity_info(build(), (3, 16, 16), as_strings=False, backend="pytorch"))
