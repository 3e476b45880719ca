"""A variational autoencoder of digits: encoder, reparametrization, decoder, samples."""

import torch
import torch.utils.data
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.nn import functional as F

torch.manual_seed(1)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()  # noqa: UP008
        self.fc1 = nn.Linear(64, 100)
        self.fc21 = nn.Linear(100, 5)
        self.fc22 = nn.Linear(100, 5)
        self.fc3 = nn.Linear(5, 100)
        self.fc4 = nn.Linear(100, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


images = torch.from_numpy(load_digits().images).div(16).float()
loader = torch.utils.data.DataLoader(images, batch_size=128, shuffle=True, pin_memory=False)
model = VAE()
optimizer = optim.Adam(model.parameters(), lr=2e-3)
averages = []
for epoch in range(1, 6):
    model.train()
    train_loss = 0
    for data in loader:
        optimizer.zero_grad()
        loss = loss_function(model(data)[0], data, *model(data)[1:])
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    averages.append(train_loss / len(loader.dataset))
    print(f"====> epoch {epoch} average loss: {averages[-1]:.4f}")
with torch.no_grad():
    sample = model.decode(torch.randn(4, 5)).view(4, 8, 8)
    print(f"sample mean {sample.mean():.5f}, brightest {sample.amax(dim=(1, 2)).tolist()}")
assert averages[-1] < 0.8 * averages[0]
