"""Neural style transfer: a picture is fitted to one picture's content and another's style."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


torch.manual_seed(0)
cnn = nn.Sequential(
    nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 3)
)
cnn = copy.deepcopy(cnn).eval().requires_grad_(False)
content, style = torch.rand(1, 3, 24, 24), torch.rand(1, 3, 24, 24).round()
model = nn.Sequential(Normalization(torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.3] * 3)))
contents, styles = [], []
for i, layer in enumerate(cnn.children()):
    model.add_module(f"layer_{i}", layer)
    if isinstance(layer, nn.Conv2d):
        styles.append(StyleLoss(model(style)))
        model.add_module(f"style_loss_{i}", styles[-1])
contents.append(ContentLoss(model(content)))
model.add_module("content_loss", contents[-1])
print([name for name, _ in model.named_children()])
image = content.clone().requires_grad_(True)
optimizer = optim.LBFGS([image], max_iter=3)
run, scores = [0], []
while run[0] < 6:

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        model(image)
        style_score = 1e5 * sum(s.loss for s in styles)
        loss = style_score + sum(c.loss for c in contents)
        loss.backward()
        run[0] += 1
        scores.append(loss.item())
        return loss

    optimizer.step(closure)
print("scores", [round(s, 3) for s in scores])
assert scores[-1] < 0.5 * scores[0]
