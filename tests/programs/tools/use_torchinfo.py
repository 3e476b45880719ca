"""torchinfo's summaries: a convolutional net, a recurrent one and a transformer's layer."""

import torch
from small_net import build
from torch import nn
from torchinfo import summary

COLUMNS = ("input_size", "output_size", "num_params", "params_percent", "kernel_size", "mult_adds")
print(summary(build(), (1, 3, 16, 16), verbose=0, depth=3, col_names=(*COLUMNS, "trainable")))
rows = ("var_names", "ascii_only", "depth")
print(summary(build(), input_data=torch.rand(2, 3, 16, 16), verbose=0, row_settings=rows))
print(summary(nn.LSTM(4, 6, 2, batch_first=True), (2, 3, 4), verbose=0))
print(summary(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8), verbose=0))
