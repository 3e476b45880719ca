"""thop's count of multiply-adds and parameters."""

import torch
from small_net import build
from thop import clever_format, profile

found = profile(build(), inputs=(torch.rand(1, 3, 16, 16),), verbose=False)
print(found, clever_format(found, "%.3f"))
