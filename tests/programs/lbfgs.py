"""Curves fitted by L-BFGS, with and without a line search, beside other optimizers."""

import torch
from torch import nn, optim


def rosenbrock(p):
    x, y = p
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


for search in (None, "strong_wolfe"):
    point = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    rate = 1.0 if search else 0.01
    optimizer = optim.LBFGS([point], lr=rate, max_iter=20, history_size=5, line_search_fn=search)
    calls = []

    def closure(point=point, optimizer=optimizer, calls=calls):
        optimizer.zero_grad()
        value = rosenbrock(point)
        value.backward()
        calls.append(value.item())
        return value

    for _ in range(2):
        optimizer.step(closure)
    print(search, len(calls), [round(v, 6) for v in calls[::5]], point.detach())
assert calls[-1] < 1e-6

torch.manual_seed(0)
t = torch.linspace(0, 4, 50, dtype=torch.float64)
signal = 2.5 * torch.exp(-0.8 * t) * torch.cos(3 * t) + 0.02 * torch.randn(50, dtype=torch.float64)


class Damped(nn.Module):
    def __init__(self):
        super().__init__()
        self.amplitude = nn.Parameter(torch.tensor(1.0))
        self.rate = nn.Parameter(torch.tensor(0.5))
        self.frequency = nn.Parameter(torch.tensor(2.7))

    def forward(self, t):
        return self.amplitude * torch.exp(-self.rate * t) * torch.cos(self.frequency * t)


model = Damped().double()
optimizer = optim.LBFGS(model.parameters(), lr=1, max_iter=30, line_search_fn="strong_wolfe")


def fit():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(t), signal)
    loss.backward()
    return loss


first = optimizer.step(fit).item()
print(
    f"{first:.6f} -> {fit().item():.6f}",
    {k: round(v.item(), 4) for k, v in model.named_parameters()},
)
jacobian = torch.autograd.functional.jacobian(
    lambda a, r, f: a * torch.exp(-r * t) * torch.cos(f * t),
    tuple(p.detach() for p in model.parameters()),
)
J = torch.stack(jacobian, 1)
deviation = (torch.linalg.inv(J.T @ J).diagonal() * fit().item()).sqrt()
print("standard deviations", deviation.tolist())
for kind in (optim.Adam, optim.Adagrad):
    model = Damped()
    optimizer = kind(model.parameters(), lr=0.02)
    for _ in range(10):
        optimizer.zero_grad()
        loss = (model(t.float()) - signal.float()).abs().mean()
        loss.backward()
        optimizer.step()
    print(kind.__name__, f"{loss.item():.5f}", [round(p.item(), 4) for p in model.parameters()])
