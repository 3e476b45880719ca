"""A small convolutional net learns to read digits, 8 by 8 pixels each."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1)
        self.dropout1 = nn.Dropout2d(0.1)
        self.dropout2 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(288, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(self.dropout1(x), 1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, device, loader, optimizer, epoch):
    model.train()
    for batch, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch % 10 == 0:
            print(f"epoch {epoch} [{batch * len(data)}/{len(loader.dataset)}] {loss.item():.5f}")


@torch.no_grad()
def test(model, loader):
    model.eval()
    loss = correct = 0
    for data, target in loader:
        output = model(data)
        loss += F.nll_loss(output, target, reduction="sum").item()
        correct += (
            output.argmax(dim=1, keepdim=True).eq(target.view_as(output[:, 0:1])).sum().item()
        )
    print(f"test {loss / len(loader.dataset):.5f}")
    return correct / len(loader.dataset)


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
images, labels = load_digits(return_X_y=True)
x = torch.from_numpy(images / 16).float().view(-1, 1, 8, 8)
data = torch.utils.data.random_split(TensorDataset(x, torch.tensor(labels)), [1500, 297])
model = Net().to(device)
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
for epoch in range(1, args.epochs + 1):
    train(model, device, DataLoader(data[0], batch_size=64, shuffle=True), optimizer, epoch)
    accuracy = test(model, DataLoader(data[1], batch_size=100))
    scheduler.step()
assert accuracy > 0.8
