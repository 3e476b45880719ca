"""torchinfo's summaries: a convolutional net, a recurrent one and a transformer's layer."""

import torch
from torch import nn
from torchinfo import summary


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


COLUMNS = ("input_size", "output_size", "num_params", "params_percent", "kernel_size", "mult_adds")
print(summary(build(), (1, 3, 16, 16), verbose=0, depth=3, col_names=(*COLUMNS, "trainable")))
rows = ("var_names", "ascii_only", "depth")
print(summary(build(), input_data=torch.rand(2, 3, 16, 16), verbose=0, row_settings=rows))
print(summary(nn.LSTM(4, 6, 2, batch_first=True), (2, 3, 4), verbose=0))
print(summary(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8), verbose=0))
