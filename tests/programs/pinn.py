"""A physics-informed net solves the heat equation: second derivatives of the net enter its loss."""

import math

import torch
import torch.nn as nn
from torch.autograd import grad
from torch.autograd.functional import hessian, hvp

torch.manual_seed(123)
torch.set_default_dtype(torch.float64)


class PINN(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        for layer in self.net:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight, gain=nn.init.calculate_gain("tanh"))
                nn.init.zeros_(layer.bias)

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


def residual(model, x, t, alpha=0.1):
    u = model(x, t)
    ones = torch.ones_like(u)
    u_t = grad(u, t, ones, create_graph=True)[0]
    u_x = grad(u, x, ones, create_graph=True)[0]
    u_xx = grad(u_x, x, torch.ones_like(u_x), create_graph=True)[0]
    return u_t - alpha * u_xx


model = PINN()
x = torch.rand(100, 1, requires_grad=True)
t = torch.rand(100, 1, requires_grad=True)
edge = torch.linspace(0, 1, 20).unsqueeze(-1)
start = torch.sin(math.pi * edge)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
losses = []
for step in range(60):
    physics = residual(model, x, t).pow(2).mean()
    initial = (model(edge, torch.zeros_like(edge)) - start).pow(2).mean()
    walls = sum(model(torch.full_like(edge, w), edge).pow(2).mean() for w in (0.0, 1.0))
    loss = physics + 10 * (initial + walls)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    if step % 15 == 14:
        print(f"{step} {loss.item():.6f} = {physics:.6f} + 10 * ({initial:.6f} + {walls:.6f})")
exact = torch.exp(-0.1 * math.pi**2 * t) * torch.sin(math.pi * x)
print(f"mean error {(model(x, t) - exact).abs().mean().item():.6f}")
at = torch.tensor([[0.3, 0.5]])
H = hessian(lambda p: model.net(p).sum(), at).view(2, 2)
_, Hv = hvp(lambda p: model.net(p).sum(), at, torch.ones(1, 2))
print(H, torch.allclose(Hv.view(2), H.sum(1)))
assert losses[-1] < 0.5 * losses[0]
