"""Mistakes that type checkers find; a line that none is found in any more fails the check."""

from __future__ import annotations

import convcore as torch
from convcore import Tensor, nn, optim


class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


x = torch.ones(2, 3)
net = Net()
net(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
net(2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
nn.Conv2d(3, 8, kernal_size=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
nn.Conv2D(3, 8, 3)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
nn.functional.rellu(x)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
optim.Adamm([x])  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
optim.SGD([x], learning_rate=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
torch.zeroes(2)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
x.viev(2)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
x.transpose(0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
x.backward(retain=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
net.train(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
