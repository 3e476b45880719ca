"""Parameters that are functions of others: symmetric, of bounded norm."""

import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils.parametrizations import spectral_norm, weight_norm


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class CayleyMap(nn.Module):
    def forward(self, X):
        return torch.linalg.solve(torch.eye(len(X)) + X, torch.eye(len(X)) - X)


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


torch.manual_seed(2)
layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
print(layer, torch.equal(layer.weight, layer.weight.T))
layer.weight = torch.arange(9.0).view(3, 3)
print(layer.weight, layer.parametrizations.weight.original.detach())
rotation = nn.Linear(3, 3)
parametrize.register_parametrization(rotation, "weight", Skew())
parametrize.register_parametrization(rotation, "weight", CayleyMap())
print(torch.dist(rotation.weight.T @ rotation.weight, torch.eye(3)).item() < 1e-5)
with parametrize.cached():
    print(rotation.weight is rotation.weight)
net = nn.Sequential(
    weight_norm(nn.Conv1d(2, 8, 3)),
    nn.Mish(),
    spectral_norm(nn.Conv1d(8, 8, 3), n_power_iterations=2),
    nn.Softsign(),
    nn.Flatten(),
    nn.Linear(48, 6),
)
print([name for name, _ in net.named_parameters()])
x, target = torch.randn(16, 2, 10), torch.randn(16, 6)
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.5)
losses = []
for step in range(8):
    loss = nn.functional.mse_loss(net(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 2:
        largest = torch.linalg.matrix_norm(net[2].weight.flatten(1), 2)
        print(f"{step} {loss.item():.5f} largest singular value {largest:.3f}")
rows = net[5].weight
print(torch.allclose(rows @ rows.T, torch.eye(6), atol=1e-4))
parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
print(type(layer).__name__, type(layer.weight).__name__, parametrize.is_parametrized(layer))
assert losses[-1] < losses[0]
