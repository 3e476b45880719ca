"""A denoising autoencoder, convolutions down and transposed convolutions up."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    """Filled squares of random place and size."""

    def __init__(self, count, generator):
        corner = torch.randint(0, 8, (count, 2), generator=generator)
        size = torch.randint(3, 8, (count, 1), generator=generator)
        line = torch.arange(16)
        inside = (line >= corner[..., None]) & (line < (corner + size)[..., None])
        self.images = (inside[:, 0, :, None] & inside[:, 1, None, :]).unsqueeze(1).float()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index]


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Flatten(),
            nn.Linear(256, 8),
        )
        self.decoder = nn.Sequential(
            nn.Linear(8, 256),
            nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1),
            nn.GELU(),
            nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


torch.manual_seed(0)
data = Squares(256, torch.Generator().manual_seed(5))
model, criterion = Autoencoder(), nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
losses = []
for epoch in range(4):
    total = 0.0
    for clean in DataLoader(data, batch_size=32, shuffle=True, drop_last=True):
        noisy = (clean + 0.3 * torch.randn_like(clean)).clamp_(0, 1)
        loss = criterion(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * clean.size(0)
    losses.append(total / len(data))
    print(f"epoch {epoch + 1}: {losses[-1]:.6f}")
print(model.encoder(data[3][None]).detach())
assert losses[-1] < 0.6 * losses[0]
