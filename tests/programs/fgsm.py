"""The fast gradient sign attack: how accuracy falls with the step along the gradient's sign."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Subset, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2_drop = nn.Dropout2d(p=0.2)
        self.fc1 = nn.Linear(72, 10)

    def forward(self, x):
        x = self.conv2_drop(F.max_pool2d(F.relu(self.conv1(x)), 2))
        return F.log_softmax(self.fc1(x.view(-1, 72)), dim=-1)


def fgsm_attack(image, epsilon, data_grad):
    sign_data_grad = data_grad.sign()
    return torch.clamp(image + epsilon * sign_data_grad, 0, 1)


def attack(model, loader, epsilon):
    correct = 0
    for data, target in loader:
        data.requires_grad = True
        output = model(data)
        loss = F.nll_loss(output, target)
        model.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(data, epsilon, data.grad.data)
        final_pred = model(perturbed).max(1, keepdim=True)[1]
        correct += (final_pred.squeeze(1) == target).sum().item()
    return correct


torch.manual_seed(42)
images, labels = load_digits(return_X_y=True)
dataset = TensorDataset(
    torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16, torch.as_tensor(labels)
)
train = DataLoader(Subset(dataset, range(1200)), batch_size=50, shuffle=True)
test = DataLoader(Subset(dataset, range(1200, 1500)), batch_size=100)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(2):
    for data, target in train:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.5f}")
model.eval()
accuracies = []
for eps in [0, 0.05, 0.1, 0.2]:
    accuracies.append(attack(model, test, eps))
    print(f"Epsilon: {eps}\tTest Accuracy = {accuracies[-1]} / 300")
assert accuracies[0] > 240 and accuracies == sorted(accuracies, reverse=True)
