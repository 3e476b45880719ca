"""A training program, with the types that an editor shall show; read by type checkers, not run."""

from __future__ import annotations

from typing import Any, assert_type

import convcore as torch
from convcore import Tensor, nn, optim
from convcore.nn import functional as F
from convcore.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Net(nn.Module):
    """A net whose calls have the types of its `forward`."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(4 * 4 * 4, classes)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        x = self.features(x)
        return self.head(x.flatten(1)) * scale


class Pair(nn.Module):
    """A net with two results."""

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return x, x.dim()


class Squares(Dataset[tuple[Tensor, int]]):
    """Samples of a tensor and a class."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.full((1, 8, 8), index * index), index


net = Net()
x = torch.randn(2, 1, 8, 8)
assert_type(net(x), Tensor)
assert_type(net(x, scale=2.0), Tensor)
assert_type(Pair()(x), tuple[Tensor, int])
assert_type(nn.Conv2d(1, 4, 3)(x), Tensor)
assert_type(nn.Linear(8, 2)(x), Tensor)
assert_type(nn.BatchNorm2d(1)(x), Tensor)
assert_type(nn.Sequential(nn.ReLU(), nn.Flatten())(x), Tensor)
assert_type(nn.CrossEntropyLoss()(net(x), torch.tensor([1, 2])), Tensor)
assert_type(F.cross_entropy(net(x), torch.tensor([1, 2])), Tensor)
assert_type(nn.Sequential(nn.ReLU())[0], nn.Module)
assert_type(net.train(), Net)
assert_type(net.eval().to(torch.float64), Net)
assert_type(list(net.parameters()), list[nn.Parameter])
assert_type(dict(net.named_parameters()), dict[str, nn.Parameter])
assert_type(net.head.weight.shape[0], int)

optimizer = optim.SGD(net.parameters(), lr=0.1)
schedule = optim.lr_scheduler.StepLR(optimizer, step_size=3)
for number, (images, classes) in enumerate(DataLoader(Squares(), batch_size=2, shuffle=True)):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(images), classes)
    loss.backward()
    optimizer.step()
    assert_type(loss, Tensor)
    assert_type(images, Tensor)
    print(f"{number}: {loss.item():.3f}", classes.shape)
schedule.step()

samples = TensorDataset(x, torch.arange(2))
batches = DataLoader(samples, batch_size=2)
for (batch,) in batches:
    assert_type(batch, Tensor)
for rows in DataLoader(samples, collate_fn=len):
    assert_type(rows, Any)
for row in DataLoader([1.0, 2.0]):
    assert_type(row, Tensor)
for named in DataLoader([{"x": 1}]):
    assert_type(named["x"], Tensor)
for unknown in DataLoader(["a"]):
    assert_type(unknown, Any)
assert_type(samples[0], tuple[Tensor, ...])
assert_type(Squares()[0], tuple[Tensor, int])
train, test = random_split(Squares(), [2, 1])
assert_type(train[0], tuple[Tensor, int])
assert_type(len(train), int)
