"""Learning-rate schedules: each drives the same small problem, alone and chained."""

import torch
from torch.optim import SGD, Adam, lr_scheduler

MAKERS = {
    "step": lambda o: lr_scheduler.StepLR(o, 3, gamma=0.5),
    "multistep": lambda o: lr_scheduler.MultiStepLR(o, milestones=[2, 5], gamma=0.3),
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
    "multiplicative": lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.95),
    "linear": lambda o: lr_scheduler.LinearLR(o, 0.25, total_iters=4),
    "constant": lambda o: lr_scheduler.ConstantLR(o, 0.5, total_iters=3),
    "exponential": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "polynomial": lambda o: lr_scheduler.PolynomialLR(o, total_iters=6, power=2.0),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=4, eta_min=0.01),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=2, T_mult=2),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=9),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o,
        [lr_scheduler.LinearLR(o, 0.1, total_iters=3), lr_scheduler.CosineAnnealingLR(o, 6)],
        milestones=[3],
    ),
    "chained": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
}
torch.manual_seed(0)
inputs, targets = torch.randn(32, 4), torch.randn(32, 1)
finals = []
for name, make in MAKERS.items():
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    kind = Adam if name == "one cycle" else SGD
    optimizer = kind([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.05}], lr=0.1)
    scheduler, rates = make(optimizer), []
    for _ in range(8):
        optimizer.zero_grad()
        loss = torch.nn.functional.huber_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
        rates.append(round(optimizer.param_groups[0]["lr"], 6))
    finals.append(loss.item())
    print(f"{name}: {rates} {scheduler.get_last_lr()[-1]:.6f} loss {loss.item():.6f}")
optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.1, maximize=False)
scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, "min", factor=0.1, patience=1, cooldown=1)
for loss in [1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5]:
    scheduler.step(loss)
print(optimizer.param_groups[0]["lr"], scheduler.num_bad_epochs, sorted(scheduler.state_dict())[:4])
print(optimizer)
assert max(finals) < 1
