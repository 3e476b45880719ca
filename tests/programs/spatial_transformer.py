"""A spatial transformer learns to turn its input before it is classified."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.localization = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=5),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(True),
            nn.Conv2d(8, 10, kernel_size=3),
            nn.AvgPool2d(2, stride=2),
            nn.ReLU(True),
        )
        self.fc_loc = nn.Sequential(nn.Linear(10 * 2 * 2, 32), nn.ReLU(True), nn.Linear(32, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))
        self.conv = nn.Conv2d(1, 6, 5)
        self.fc = nn.Linear(6 * 36, 2)

    def stn(self, x):
        xs = self.localization(x).view(-1, 10 * 2 * 2)
        theta = self.fc_loc(xs).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv(self.stn(x)), 2))
        x = F.dropout(x.view(-1, 216), training=self.training)
        return F.log_softmax(self.fc(x), dim=1)


def bars(count):
    """Bars that lie (0) or stand (1), each turned by up to 40 degrees."""
    labels = torch.randint(2, (count,))
    picture = torch.zeros(count, 1, 16, 16)
    picture[labels == 0, :, 7:9, 3:13] = 1
    picture[labels == 1, :, 3:13, 7:9] = 1
    angle = torch.empty(count).uniform_(-0.7, 0.7)
    rows = [torch.stack([angle.cos(), -angle.sin()], 1), torch.stack([angle.sin(), angle.cos()], 1)]
    theta = torch.cat([torch.stack(rows, 1), torch.zeros(count, 2, 1)], dim=2)
    grid = F.affine_grid(theta, picture.shape, align_corners=False)
    turned = F.grid_sample(picture, grid, padding_mode="border", align_corners=False)
    return turned + 0.1 * torch.randn_like(turned), labels


torch.manual_seed(2)
data, target = bars(64)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
losses = []
for step in range(20):
    model.train()
    optimizer.zero_grad()
    loss = F.nll_loss(model(data), target)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 5 == 4:
        print(f"{step:02d} {loss.item():.5f}")
print("mean transform", model.fc_loc[2].bias.data)
assert losses[-1] < losses[0]
