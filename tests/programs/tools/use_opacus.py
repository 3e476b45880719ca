"""opacus' private training: gradients of single samples, clipped and with noise, in three ways."""

import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from opacus.validators import ModuleValidator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(10, 4), DPLSTM(4, 5, batch_first=True)
        self.last = nn.Linear(5, 2)

    def forward(self, x):
        return self.last(self.lstm(self.embedding(x))[0][:, -1])


def pictures():
    norm = nn.GroupNorm(2, 4)
    return nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))


def train(name, net, x, mode):
    loss = nn.CrossEntropyLoss()
    engine = PrivacyEngine()
    made = engine.make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(x, torch.arange(32) % 2), batch_size=8),
        criterion=loss,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    net, optimizer, *others = made
    loss = others[0] if mode == "ghost" else loss
    losses = []
    for inputs, classes in others[-1]:
        optimizer.zero_grad()
        cost = loss(net(inputs), classes)
        cost.backward()
        optimizer.step()
        losses.append((len(inputs), f"{cost.item():.4f}"))
    print(name, mode, losses, f"{engine.get_epsilon(delta=1e-5):.4f}")


for mode in ("hooks", "functorch", "ghost"):
    torch.manual_seed(0)
    train("pictures", pictures(), torch.rand(32, 1, 8, 8), mode)
torch.manual_seed(0)
train("words", Words(), torch.randint(0, 10, (32, 6)), "hooks")
normed = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))
print(len(ModuleValidator.validate(normed, strict=False)), ModuleValidator.fix(normed))
