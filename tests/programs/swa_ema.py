"""Weights averaged along the way: stochastic weight averaging and an exponential average."""

import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
inputs = torch.randn(128, 2, 6, 6)
targets = (inputs[:, 0].mean((1, 2)) > inputs[:, 1].mean((1, 2))).long()
generator = torch.Generator()
generator.manual_seed(99)
loader = DataLoader(
    TensorDataset(inputs, targets), batch_size=32, shuffle=True, generator=generator
)
model = nn.Sequential(
    nn.Conv2d(2, 8, 3),
    nn.BatchNorm2d(8),
    nn.ReLU6(),
    nn.Flatten(),
    nn.Dropout(0.1),
    nn.Linear(128, 2),
)
swa_model = AveragedModel(model)
ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
swa_scheduler = SWALR(optimizer, swa_lr=0.03, anneal_epochs=2, anneal_strategy="linear")
swa_start, losses = 3, []
for epoch in range(6):
    total = 0.0
    for input, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(input), target)
        loss.backward()
        optimizer.step()
        ema_model.update_parameters(model)
        total += loss.item() / len(loader)
    if epoch >= swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    losses.append(total)
    print(f"{epoch} {total:.5f} lr {optimizer.param_groups[0]['lr']:.5f}")
update_bn(loader, swa_model)


@torch.no_grad()
def evaluate(net):
    net.eval()
    output = net(inputs)
    return nn.functional.cross_entropy(output, targets).item(), output.argmax(1).eq(
        targets
    ).sum().item()


for name, net in (("plain", model), ("swa", swa_model), ("ema", ema_model)):
    print(name, "{:.5f} {}".format(*evaluate(net)))
print(swa_model.n_averaged, ema_model.n_averaged, next(iter(swa_model.state_dict())))
print(swa_model.module[1].running_var[:3], ema_model.module[1].running_var[:3])
assert losses[-1] < losses[0] and evaluate(ema_model)[0] < losses[0]
