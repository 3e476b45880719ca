"""torchviz's drawing of the graph that backward goes through."""

import re

import torch
from small_net import build
from torchviz import make_dot

model = build()
x = torch.rand(1, 3, 16, 16, requires_grad=True)
dot = make_dot(model(x).mean(), params={**dict(model.named_parameters()), "x": x})
names: dict[str, str] = {}  # the nodes are named by addresses
print(re.sub(r"\d{6,}", lambda found: names.setdefault(found[0], f"n{len(names)}"), dot.source))
