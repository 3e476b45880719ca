"""A normalizing flow of affine couplings learns two moons; distributions do the accounting."""

import math

import torch
import torch.distributions as D
from torch import nn


class Coupling(nn.Module):
    """Change one half of the coordinates by a scale and shift that the other half decides."""

    def __init__(self, swap):
        super().__init__()
        self.swap = swap
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 2))
        self.scale = nn.Parameter(torch.zeros(1))

    def split(self, x):
        return x.flip(-1).chunk(2, dim=-1) if self.swap else x.chunk(2, dim=-1)

    def join(self, a, b):
        return torch.cat([b, a] if self.swap else [a, b], dim=-1)

    def forward(self, x):
        a, b = self.split(x)
        s, t = self.net(a).chunk(2, dim=-1)
        s = self.scale.exp() * torch.tanh(s)
        return self.join(a, b * s.exp() + t), s.sum(-1)

    def inverse(self, y):
        a, b = self.split(y)
        s, t = self.net(a).chunk(2, dim=-1)
        s = self.scale.exp() * torch.tanh(s)
        return self.join(a, (b - t) * torch.exp(-s))


def moons(count):
    angle = math.pi * torch.rand(count)
    side = torch.bernoulli(torch.full((count,), 0.5)) * 2 - 1
    points = torch.stack([side * (angle.cos() - 0.5), side * angle.sin()], 1)
    return points + 0.08 * torch.randn(count, 2)


torch.manual_seed(10)
base = D.MultivariateNormal(torch.zeros(2), torch.eye(2))
layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(4))
optimizer = torch.optim.Adam(layers.parameters(), lr=5e-3)
losses = []
for step in range(40):
    x, log_det = moons(128), torch.zeros(128)
    for layer in layers:
        x, change = layer(x)
        log_det = log_det + change
    loss = -(base.log_prob(x) + log_det).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 10 == 9:
        print(f"{step} nats {loss.item():.5f}")
with torch.no_grad():
    z = sample = base.sample((5,))
    for layer in reversed(layers):
        sample = layer.inverse(sample)
    back = sample
    for layer in layers:
        back = layer(back)[0]
print(sample, torch.allclose(back, z, atol=1e-4))
skewed = D.TransformedDistribution(
    D.Normal(0.0, 1.0), [D.AffineTransform(0.5, 0.3), D.ExpTransform()]
)
print(
    skewed.sample((3,)),
    skewed.log_prob(torch.tensor(2.0)),
    D.LogNormal(0.5, 0.3).log_prob(torch.tensor(2.0)),
)
for d in (D.Gamma(2.0, 1.5), D.Beta(0.5, 0.7), D.Dirichlet(torch.ones(3)), D.Poisson(4.0)):
    print(type(d).__name__, d.sample((2,)).flatten().tolist(), d.mean.sum().item())
assert losses[-1] < losses[0] - 0.2
