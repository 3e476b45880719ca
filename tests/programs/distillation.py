"""Knowledge distillation: a small net learns from a larger one's soft answers and its features."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def net(*widths, classes=5):
    layers, previous = [], 1
    for width in widths:
        layers += [nn.Conv2d(previous, width, 3, padding=1, bias=True), nn.ReLU()]
        previous = width
    features = nn.Sequential(*layers, nn.MaxPool2d(2, 2, ceil_mode=True))
    return nn.ModuleDict(
        {
            "features": features,
            "classifier": nn.Sequential(nn.Dropout(0.1), nn.Linear(previous * 16, classes)),
        }
    )


def forward(model, x):
    features = model["features"](x)
    return model["classifier"](torch.flatten(features, 1)), features


def train(model, data, labels, steps, extra=None):
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    model.train()
    history = []
    for _ in range(steps):
        optimizer.zero_grad()
        logits, features = forward(model, data)
        loss = F.cross_entropy(logits, labels)
        if extra is not None:
            loss = 0.5 * loss + extra(logits, features)
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    print(f"   first {history[0]:.5f} last {history[-1]:.5f}")
    return history


torch.manual_seed(42)
kinds = torch.randn(5, 1, 7, 7)
labels = torch.arange(100) % 5
data = kinds[labels] + torch.randn(100, 1, 7, 7)
teacher, student = net(12, 24), net(6)
print("teacher")
train(teacher, data, labels, 10)
teacher.eval()
with torch.no_grad():
    teacher_logits, teacher_features = forward(teacher, data)
temperature, regressor = 2.0, nn.Conv2d(6, 24, 1)


def soft_targets(logits, features):
    soft = F.log_softmax(teacher_logits / temperature, dim=-1)
    ours = F.log_softmax(logits / temperature, dim=-1)
    kl = nn.KLDivLoss(reduction="batchmean", log_target=True)(ours, soft) * temperature**2
    cosine = nn.CosineEmbeddingLoss()(
        regressor(features).flatten(1), teacher_features.flatten(1), target=torch.ones(len(logits))
    )
    return 0.5 * kl + 0.1 * cosine


print("student")
history = train(student, data, labels, 12, soft_targets)
student.eval()
agree = (forward(student, data)[0].argmax(1) == teacher_logits.argmax(1)).float().mean()
print(f"agreement {agree.item():.2f}", sum(p.numel() for p in student.parameters()))
assert history[-1] < history[0]
