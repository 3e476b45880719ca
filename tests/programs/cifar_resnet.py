"""A residual net of CIFAR's kind takes a few steps on coloured stripes."""

import torch
from torch import nn, optim
from torch.nn import functional as F


def conv3x3(inputs, outputs, stride=1):
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, inputs, planes, stride=1):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(inputs, planes, stride), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes), nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out)) + self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, blocks, classes=4):
        super().__init__()
        self.stem = nn.Sequential(conv3x3(3, 16), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        layers, width = [], 16
        for i, n in enumerate(blocks):
            for j in range(n):
                planes = 16 * 2**i
                layers.append(BasicBlock(width, planes, 2 if i and not j else 1))
                width = planes
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(width, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.layers(self.stem(x)), 1)
        return self.fc(x.flatten(1))


torch.manual_seed(7)
net = ResNet([1, 1, 1])
print(sum(p.numel() for p in net.parameters() if p.requires_grad), "parameters")
labels = torch.randint(0, 4, (32,))
ramp = torch.linspace(0, 6.3, 32)
waves = torch.sin(ramp[None] * (1 + labels[:, None].float()))
images = waves.view(32, 1, 1, 32).expand(-1, 3, 32, -1) + 0.1 * torch.randn(32, 3, 32, 32)
optimizer = optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4, nesterov=True)
schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
losses = []
for step in range(6):
    loss = criterion(net(images), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    print(f"{step} loss {loss.item():.5f} lr {schedule.get_last_lr()[0]:.6f}")
norm = net.stem[1]
# The means are rounding noise around 0, which differs by how a processor sums.
print(f"running mean at most {float(norm.running_mean.abs().max()):.1e}")
print("running variance", norm.running_var[:4], norm.num_batches_tracked.item())
assert losses[-1] < 0.7 * losses[0]
