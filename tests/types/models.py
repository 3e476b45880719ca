"""Bundled nets, hooks, saving and other rooms; read by type checkers, not run."""

from __future__ import annotations

from typing import Any, assert_type

import convcore as torch
from convcore import Tensor, nn, optim

net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
assert_type(net[1:], nn.Sequential)
assert_type(nn.ModuleList([nn.ReLU()])[0], nn.Module)
assert_type([module for module in net], list[nn.Module])
assert_type(nn.LSTM(3, 4)(torch.zeros(5, 2, 3))[1], tuple[Tensor, Tensor])
assert_type(nn.Dropout(0.5)(torch.zeros(2)), Tensor)
assert_type(nn.Embedding(10, 4)(torch.tensor([1])), Tensor)
assert_type(nn.Conv2d(1, 1, 1).weight, nn.Parameter)
assert_type(nn.Parameter(torch.zeros(2)), nn.Parameter)


def show(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
    print(type(module).__name__, output.shape)


handle = net.register_forward_hook(show)
handle.remove()

optimizer = optim.AdamW(
    [{"params": net[0].parameters(), "lr": 1e-3}, {"params": net[3].parameters()}], lr=1e-2
)
optimizer.load_state_dict(optimizer.state_dict())
net.load_state_dict(net.state_dict(), strict=False)
nn.utils.clip_grad_norm_(net.parameters(), 1.0)
average = optim.swa_utils.AveragedModel(net)
average.update_parameters(net)

with torch.inference_mode(), torch.random.fork_rng():
    assert_type(net(torch.randn(1, 3, 8, 8)).softmax(1), Tensor)
x = torch.ones(2, requires_grad=True)
assert_type(torch.autograd.grad(x.sum(), x)[0], Tensor)
assert_type(torch.linalg.norm(x), Tensor)
print(torch.summary(net, (1, 3, 8, 8)))
