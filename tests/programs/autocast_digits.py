"""A small conv net trained under autocast with a gradient scaler, evaluated under it too."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
images = torch.rand(96, 1, 8, 8)
labels = (images[:, 0, :4].mean((1, 2)) > images[:, 0, 4:].mean((1, 2))).long()

net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 16, 2),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu")
first = last = None
for _ in range(8):
    for batch, target in zip(images.split(32), labels.split(32), strict=True):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            logits = net(batch)
            loss = cross_entropy(logits, target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        first = loss.item() if first is None else first
        last = loss.item()
print("dtypes", logits.dtype, loss.dtype, net[0].weight.dtype, net[0].weight.grad.dtype)
print("learned", last < first, "scale", scaler.get_scale(), "enabled", scaler.is_enabled())


@torch.no_grad()
def evaluate():
    net.eval()
    with torch.amp.autocast("cpu"):
        return net(images)


outputs = evaluate()
print("evaluated", outputs.dtype, tuple(outputs.shape), (outputs.argmax(1) == labels).sum() > 48)
with torch.inference_mode(), torch.autocast("cpu", dtype=torch.float16):
    print("half", net(images[:2]).dtype)
print("outside", torch.is_autocast_enabled("cpu"), net(images[:2]).dtype)
