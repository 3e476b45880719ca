"""A run that is stopped, saved, loaded and resumed ends where an unbroken one ends."""

import os
import tempfile

import torch
import torch.nn as nn
import torch.optim as optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(2, 6, 3)
        self.bn = nn.BatchNorm1d(6)
        self.fc = nn.LazyLinear(3)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.seen += len(x)
        return self.fc(torch.relu(self.bn(self.conv1(x))).mean(-1))


def build():
    torch.manual_seed(0)
    net = Net()
    net(torch.zeros(2, 2, 10))
    optimizer = optim.Adam(net.parameters(), lr=0.01)
    return net, optimizer, optim.lr_scheduler.StepLR(optimizer, 3, 0.5)


def train(net, optimizer, scheduler, epochs):
    losses = []
    for _ in range(epochs):
        x = torch.randn(16, 2, 10)
        loss = nn.functional.cross_entropy(net(x), x.mean((1, 2)).gt(0).long() + (x[:, 0, 0] > 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(round(loss.item(), 5))
    return losses


parts = build()
whole = train(*parts, 8)
print("unbroken", whole)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    net, optimizer, scheduler = build()
    begun = train(net, optimizer, scheduler, 4)
    torch.save(
        {
            "epoch": 4,
            "model_state_dict": net.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
            "loss": begun[-1],
        },
        path,
    )
    net, optimizer, scheduler = build()
    checkpoint = torch.load(path, weights_only=True)
    print(
        net.load_state_dict(checkpoint["model_state_dict"]), checkpoint["epoch"], checkpoint["loss"]
    )
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    torch.set_rng_state(checkpoint["rng"])
    torch.save(net, path)
    net_loaded = torch.load(path, weights_only=False)
rest = train(net, optimizer, scheduler, 4)
print("resumed ", begun + rest)
for name, tensor in net.state_dict().items():
    print(name, tuple(tensor.shape), tensor.dtype)
missing, unexpected = net.load_state_dict(
    {"fc.bias": torch.ones(3), "other": torch.ones(1)}, strict=False
)
print(missing, unexpected, net.fc.bias.data, net.seen.item(), net_loaded.seen.item())
assert begun + rest == whole
