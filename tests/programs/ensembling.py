"""Ten nets at once: their parameters stacked, vmap over them; gradients of single samples."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, grad_and_value, stack_module_state, vmap


class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 12)
        self.fc2 = nn.Linear(12, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


torch.manual_seed(0)
data, targets = torch.randn(5, 8, 1, 4, 4), torch.randint(3, (40,)).view(5, 8)
models = [SimpleMLP() for _ in range(5)]
each = torch.stack([model(batch) for model, batch in zip(models, data, strict=True)])
params, buffers = stack_module_state(models)
base_model = copy.deepcopy(models[0]).to("meta")


def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))


together = torch.vmap(fmodel)(params, buffers, data)
print(together.shape, torch.allclose(each, together, atol=1e-5))
shared = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, data[0])
print("shared batch", shared.mean((1, 2)))


def compute_loss(params, buffers, x, y):
    return F.cross_entropy(fmodel(params, buffers, x), y)


losses = []
for _ in range(10):
    grads, loss = vmap(grad_and_value(compute_loss))(params, buffers, data, targets)
    params = {k: (params[k] - 0.5 * grads[k]).detach() for k in params}
    losses.append(loss.detach())
print("first", losses[0], "last", losses[-1])
one = {k: v[0] for k, v in params.items()}


def sample_loss(params, x, y):
    return F.cross_entropy(fmodel(params, {}, x.unsqueeze(0)), y.unsqueeze(0))


per_sample = vmap(grad(sample_loss), in_dims=(None, 0, 0))(one, data[0], targets[0])
print({k: tuple(v.shape) for k, v in per_sample.items()})
print("norms", per_sample["fc1.weight"].flatten(1).norm(dim=1))
whole = grad(compute_loss)(one, {}, data[0], targets[0])
print(torch.allclose(per_sample["fc2.bias"].mean(0), whole["fc2.bias"], atol=1e-6))
assert (losses[-1] < losses[0]).all()
