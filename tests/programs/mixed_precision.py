"""Autocast and a gradient scaler around the usual loop, gradients accumulated over two batches."""

import warnings

import torch
from torch import nn
from torch.amp import GradScaler, autocast

warnings.simplefilter("ignore")
torch.manual_seed(0)
use_amp = False  # so that losses can be compared digit by digit


def make_model():
    return nn.Sequential(
        nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
    )


net, loss_fn = make_model(), nn.MSELoss()
x = torch.randn(64, 8)
y = torch.stack([x.sum(1), x.prod(1)], 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
scaler = GradScaler("cpu", init_scale=1024.0, growth_interval=4, enabled=True)
losses = []
for epoch in range(6):
    for i, (inputs, target) in enumerate(zip(x.split(16), y.split(16), strict=True)):
        with autocast(device_type="cpu", dtype=torch.bfloat16, enabled=use_amp):
            output = net(inputs)
            loss = loss_fn(output, target) / 2
        scaler.scale(loss).backward()
        if i % 2:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    losses.append(loss.item())
    print(f"{epoch} loss {loss.item():.5f} norm {norm.item():.5f} scale {scaler.get_scale()}")
net[0].weight.grad = torch.full_like(net[0].weight, float("inf"))
before = net[0].weight.clone()
scaler.step(optimizer)
scaler.update()
print(
    "skipped", torch.equal(before, net[0].weight), scaler.get_scale(), sorted(scaler.state_dict())
)
with torch.autocast("cpu"):
    print("inside", torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
print("outside", torch.is_autocast_enabled("cpu"), net(x).dtype)
half = net[0].weight.to(torch.float16)
print(half.dtype, torch.finfo(torch.bfloat16).eps, torch.promote_types(half.dtype, torch.float32))
assert losses[-1] < losses[0]
