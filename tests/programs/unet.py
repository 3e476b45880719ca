"""A U-Net finds discs in noise: cross entropy with class weights, and Dice."""

import itertools

import torch
from torch import nn
from torch.nn import functional as F


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        layers = []
        for i in (inputs, outputs):
            layers += [nn.Conv2d(i, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)]
            layers += [nn.ReLU(inplace=True)]
        super().__init__(*layers)


class Up(nn.Module):
    def __init__(self, inputs, outputs, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                nn.Conv2d(inputs, outputs, 1),
            )
        else:
            self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.conv = DoubleConv(2 * outputs, outputs)

    def forward(self, x, skip):
        x = self.up(x)
        dy, dx = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
        x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    def __init__(self, widths=(8, 16, 24), classes=3):
        super().__init__()
        self.stem = DoubleConv(1, widths[0])
        pairs = list(itertools.pairwise(widths))
        self.down = nn.ModuleList([DoubleConv(a, b) for a, b in pairs])
        self.up = nn.ModuleList([Up(b, a, a == 8) for a, b in reversed(pairs)])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skips = [self.stem(x)]
        for block in self.down:
            skips.append(block(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for block in self.up:
            x = block(x, skips.pop())
        return self.head(x)


def dice(logits, target):
    p, t = logits.softmax(1), F.one_hot(target, 3).permute(0, 3, 1, 2)
    return 1 - (2 * (p * t).sum((0, 2, 3)) / (p + t).sum(dim=(0, 2, 3))).mean()


torch.manual_seed(21)
y, x = torch.meshgrid(torch.arange(27.0), torch.arange(30.0), indexing="ij")
centre = torch.rand(2, 2, 4) * 20 + 4
masks = torch.zeros(4, 27, 30, dtype=torch.long)
for kind, (cy, cx) in enumerate(centre):
    near = (y - cy[:, None, None]).square() + (x - cx[:, None, None]).square() < 16 + 9 * kind
    masks.masked_fill_(near, kind + 1)
images = (masks.float() - 1 + 0.4 * torch.randn(masks.shape)).unsqueeze(1)
model = UNet().to(memory_format=torch.channels_last)
weight = masks.numel() / (3 * torch.bincount(masks.view(-1), minlength=3).float())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5, foreach=True)
losses = []
for step in range(6):
    logits = model(images.to(memory_format=torch.channels_last))
    loss = F.cross_entropy(logits, masks, weight=weight, ignore_index=255) + dice(logits, masks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 2:
        print(f"{step} {loss.item():.4f} weights {weight.mean():.4f}")
assert losses[-1] < 0.9 * losses[0]
