"""Tensors, with the types that an editor shall show; read by type checkers, not run."""

from typing import Any, assert_type

import numpy as np

import convcore as torch
from convcore import Tensor

x = torch.ones(2, 3, requires_grad=True)
assert_type(x.item(), Any)  # of the dtype: an int indexes lists
assert_type(x.tolist(), Any)
assert_type(x.numpy(), np.ndarray)
assert_type(x[0], Tensor)
assert_type(x[0, :, None], Tensor)
assert_type(x[x > 0], Tensor)
assert_type(x[..., torch.tensor([0, 1])], Tensor)
assert_type(x.shape, torch.Size)
assert_type(x.shape[0], int)
assert_type(x.shape[1:], torch.Size)
assert_type(x.size(0), int)
assert_type(x.grad, Tensor | Any)  # None without one; a program knows when there is one
assert_type(x.argmax(dim=1), Tensor)
assert_type(bool((x > 0).all()), bool)
assert_type(float(x.sum()), float)
values, indices = x.topk(2)
assert_type(indices, Tensor)
assert_type(x.topk(2).values, Tensor)
assert_type(x.max(1).indices, Tensor)
assert_type(x.sort().values, Tensor)
assert_type(x.aminmax().min, Tensor)
assert_type(torch.from_numpy(np.zeros(3)), Tensor)
assert_type(torch.stack([x, x]), Tensor)
assert_type(torch.split(x, 1)[0], Tensor)
assert_type(x.chunk(2)[0], Tensor)
for row in x:
    assert_type(row, Tensor)
x[0] = 1
x[0, 1] += 2.0
torch.save({"x": x}, "x.pt")
