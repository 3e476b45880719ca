"""Super-resolution by sub-pixel convolution: small picture in, picture of twice the size out."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.init as init


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 16, (3, 3), (1, 1), (1, 1), padding_mode="reflect")
        self.conv3 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
        self.conv4 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv4.weight)

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        return self.pixel_shuffle(self.conv4(x))


def pictures(count):
    grid = F.affine_grid(
        torch.eye(2, 3).expand(count, 2, 3), [count, 1, 24, 24], align_corners=True
    )
    frequency, phase = 3 + 4 * torch.rand(count, 1, 1, 2), 6 * torch.rand(count, 1, 1, 2)
    return torch.sin(grid * frequency + phase).prod(-1).unsqueeze(1)


def psnr(a, b):
    return 10 * math.log10(4 / F.mse_loss(a, b).item())


torch.manual_seed(123)
large = pictures(16)
small = F.interpolate(large, scale_factor=0.5, mode="bicubic", antialias=True)
print("bicubic", round(psnr(F.interpolate(small, size=(24, 24), mode="bicubic"), large), 4))
model = Net(upscale_factor=2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
before = psnr(model(small), large)
for epoch in range(3):
    epoch_loss = 0
    for low, high in zip(small.split(4), large.split(4), strict=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(low), high)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: avg. loss {epoch_loss / 4:.5f}, {psnr(model(small), large):.4f} dB")
print(
    "round trip",
    torch.equal(F.pixel_unshuffle(F.pixel_shuffle(model.conv4.weight, 2), 2), model.conv4.weight),
)
assert psnr(model(small), large) > before
