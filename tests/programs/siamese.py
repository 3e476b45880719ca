"""A Siamese net learns whether two pictures are of one kind: contrastive and triplet losses."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding="same"),
            nn.BatchNorm2d(8),
            nn.PReLU(8),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(8, 16, 3, groups=2),
            nn.Hardswish(),
            nn.AdaptiveMaxPool2d(2),
        )
        self.fc = nn.Linear(64, 4)
        self.apply(self.init_weights)

    @staticmethod
    def init_weights(m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        return F.normalize(self.fc(torch.flatten(self.features(x), 1)))

    def forward(self, *inputs):
        return [self.forward_once(x) for x in inputs]


def contrastive(a, b, same, margin=1.0):
    distance = F.pairwise_distance(a, b)
    return torch.mean(torch.where(same, distance**2, F.relu(margin - distance) ** 2)), distance


torch.manual_seed(5)
kinds = torch.randn(4, 1, 14, 14)
net = SiameseNetwork()
groups = [
    {"params": net.features.parameters(), "lr": 0.05},
    {"params": net.fc.parameters(), "weight_decay": 1e-4},
]
optimizer = torch.optim.SGD(groups, lr=0.1)
triplet = nn.TripletMarginLoss(margin=0.5)
losses = []
for step in range(12):
    first, second = torch.randint(4, (2, 32))
    a, b = (kinds[k] + 0.5 * torch.randn(32, 1, 14, 14) for k in (first, second))
    out_a, out_b = net(a, b)
    near, distance = contrastive(out_a, out_b, first == second)
    ranked = triplet(
        out_a, net.forward_once(kinds[first]), net.forward_once(kinds[(first + 1) % 4])
    )
    loss = near + ranked
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 3 == 2:
        print(f"{step} {near:.5f} {ranked:.5f}")
net.eval()
with torch.no_grad():
    codes = net(kinds)[0]
print((codes @ codes.T).numpy().round(3))
print(F.cosine_embedding_loss(out_a, out_b, (first == second).float() * 2 - 1))
assert losses[-1] < losses[0]
