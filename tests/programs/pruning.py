"""Weights are pruned: at random, by size, by rows, over the net, by a method of one's own."""

import torch
import torch.nn.functional as F
import torch.nn.utils.prune as prune
from torch import nn


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.fc1 = nn.Linear(16 * 2 * 2, 24)
        self.fc2 = nn.Linear(24, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), (2, 2))
        return self.fc2(F.relu(self.fc1(x.view(-1, int(x.nelement() / x.shape[0])))))


class EveryOther(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def sparsity(tensor):
    return f"{100.0 * float(torch.sum(tensor == 0)) / tensor.nelement():.2f}%"


torch.manual_seed(13)
model = LeNet()
module = model.conv1
prune.random_unstructured(module, name="weight", amount=0.3)
print(module.weight_mask[0, 0], [name for name, _ in module.named_buffers()])
prune.l1_unstructured(module, name="bias", amount=3)
prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
print(module.bias, sparsity(module.weight), sorted(model.state_dict())[:4])
for hook in module._forward_pre_hooks.values():
    if hook._tensor_name == "weight":
        print([type(step).__name__ for step in hook])
prune.remove(module, "weight")
EveryOther.apply(model.fc2, "bias")
parameters = ((model.conv1, "weight"), (model.conv2, "weight"), (model.fc1, "weight"))
prune.global_unstructured(parameters, pruning_method=prune.L1Unstructured, amount=0.2)
print([sparsity(getattr(m, n)) for m, n in parameters], model.fc2.bias)
x, y = torch.randn(32, 1, 14, 14), torch.randint(4, (32,))
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
losses = []
for step in range(12):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 4 == 3:
        print(f"{step} {loss.item():.5f} {sparsity(model.conv2.weight)}")
print(prune.is_pruned(model), f"{model.fc1.weight_orig.grad.abs().sum():.4f}")
assert losses[-1] < losses[0] and model.fc2.bias[0] == 0
