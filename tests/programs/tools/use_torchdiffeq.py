"""torchdiffeq's solvers on a net's differential equation, their gradients, and an event."""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event


class Slope(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, t, y):
        return self.net(y**3)


torch.set_default_dtype(torch.float64)
times = torch.linspace(0, 1, 5)
METHODS = (
    *("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun", "euler", "midpoint", "heun3"),
    *("heun2", "rk4", "explicit_adams", "implicit_adams"),
)
for solve in (odeint, odeint_adjoint):
    for method in METHODS if solve is odeint else ("dopri5", "rk4"):
        torch.manual_seed(0)
        slope, start = Slope(), torch.randn(4, 2, requires_grad=True)
        path = solve(slope, start, times, method=method)
        path.pow(2).sum().backward()
        grad = slope.net[0].weight.grad
        print(method, f"{path.sum():.4e} {start.grad.abs().sum():.4e} {grad.abs().sum():.4e}")

torch.manual_seed(0)
slope, start = Slope(), torch.randn(16, 2)
optimizer = torch.optim.Adam(slope.parameters(), lr=0.05)
for _ in range(4):
    optimizer.zero_grad()
    loss = (odeint(slope, start, times)[-1] - 2 * start).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(f"{loss:.5f}")


def falling(t, y):
    return torch.stack([y[1], -9.8 * torch.ones_like(y[1])])


now, (height, speed) = torch.tensor(0.0), torch.tensor([10.0, 0.0])
time, path = odeint_event(falling, torch.stack([height, speed]), now, event_fn=lambda t, y: y[0])
print(f"{time:.4f} {path[-1, 1]:.4f}")
