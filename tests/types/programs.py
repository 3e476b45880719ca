"""What programs do with tensors and modules; read by type checkers, not run."""

from __future__ import annotations

from typing import Any, assert_type

import convcore as torch
from convcore import Tensor, nn, optim

x = torch.ones(2, 3, requires_grad=True)
assert_type(x, Tensor)
assert_type(x * 2, Tensor)
assert_type(2 - x, Tensor)
assert_type(x @ x.T, Tensor)
assert_type(-x, Tensor)
assert_type(x > 0, Tensor)
assert_type(x == x, Tensor)
assert_type(x[0, :2], Tensor)
assert_type(x.view(2, -1).sum(dim=0), Tensor)
assert_type(x.expand((4, 2, 3)).reshape(-1), Tensor)
assert_type(x.shape[0], int)
assert_type(x.shape, torch.Size)
assert_type(x.size(0), int)
assert_type(x.size(), torch.Size)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.grad, Tensor | Any)
assert_type(x.requires_grad, bool)
assert_type(x.dtype, torch.dtype)
assert_type(x.type(), str)
assert_type(x.float().clamp_(0, 1), Tensor)
assert_type(torch.relu(x), Tensor)
assert_type(torch.sum(x, dim=0), Tensor)
assert_type(torch.cat([x, x], dim=0), Tensor)
assert_type(torch.zeros(2, dtype=torch.float64), Tensor)
assert_type(torch.float32, torch.dtype)
assert_type(torch.get_num_threads(), int)
values, indices = x.max(dim=1)
assert_type(values, Tensor)
n, c = x.shape
assert_type(n * c, int)
for row in x:
    assert_type(row, Tensor)
y = x.detach().clone()
y[0] = 1
y[1] += x[0].detach()
y *= 2
assert_type(y, Tensor)
assert_type(len(y) + int(y.sum()), int)
handle = x.register_hook(lambda grad: grad * 2)
handle.remove()
x.sum().backward()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.conv(x)).flatten(1)


net = Net()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
with torch.no_grad():
    for parameter in net.parameters():
        parameter.mul_(2)
optimizer.step()
net.conv.weight.data.zero_()
torch.manual_seed(0)
