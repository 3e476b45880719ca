"""Activations are thrown away and computed again: the same gradients, dropout included."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    calls = 0

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.CELU(), nn.Dropout(0.3))

    def forward(self, x):
        Block.calls += 1
        return x + self.body(x)


class Net(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(4))
        self.how = how

    def forward(self, x):
        x = self.first(x)
        if self.how == "sequential":
            return checkpoint_sequential(nn.Sequential(*self.blocks), 2, x, use_reentrant=False)
        for block in self.blocks:
            if self.how == "plain":
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.how == "reentrant")
        return x


results = {}
for how in ("plain", "reentrant", "not reentrant", "sequential"):
    torch.manual_seed(4)
    net, Block.calls = Net(how), 0
    x = torch.randn(10, 6, requires_grad=True)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    results[how] = losses, x.grad
    print(f"{how}: {Block.calls} calls,", " ".join(f"{v:.6f}" for v in losses))
    print(f"    gradient {x.grad.norm():.6f}, next number {torch.rand(1).item():.6f}")
plain_losses, plain_grad = results["plain"]
for losses, gradient in results.values():
    assert losses == plain_losses and torch.equal(gradient, plain_grad)
assert plain_losses[-1] < plain_losses[0]
