"""A Wasserstein GAN whose critic pays for gradients of other lengths than one."""

import torch
from torch import autograd, nn


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1).expand_as(real)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    (gradients,) = autograd.grad(
        outputs=scores,
        inputs=mixed,
        grad_outputs=torch.ones_like(scores),
        create_graph=True,
        retain_graph=True,
    )
    return ((gradients.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def critic_net():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.InstanceNorm2d(8, affine=True),
        nn.LeakyReLU(0.2),
        nn.Conv2d(8, 16, 3, 2, 1),
        nn.GroupNorm(4, 16),
        nn.Softplus(),
        nn.Flatten(),
        nn.Linear(64, 1),
    )


torch.manual_seed(3)
critic = critic_net()
generator = nn.Sequential(
    nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 64), nn.Unflatten(1, (1, 8, 8))
)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=2e-3)
opt_g = torch.optim.RMSprop(generator.parameters(), lr=1e-3)
window = torch.sin(torch.arange(8) * torch.pi / 8) ** 2
pattern = torch.outer(window, window)
distances = []
for step in range(3):
    for _ in range(3):
        real = pattern + 0.1 * torch.randn(12, 1, 8, 8)
        fake = generator(torch.randn(12, 4)).detach()
        penalty = gradient_penalty(critic, real, fake)
        distance = critic(real).mean() - critic(fake).mean()
        opt_c.zero_grad()
        (10 * penalty - distance).backward()
        opt_c.step()
        distances.append(distance.item())
    for p in critic.parameters():
        p.requires_grad_(False)
    opt_g.zero_grad()
    loss = -critic(generator(torch.randn(12, 4))).mean()
    loss.backward()
    opt_g.step()
    for p in critic.parameters():
        p.requires_grad_(True)
    print(f"{step} distance {distance:.5f} penalty {penalty:.5f} generator {loss.item():.5f}")
norm = nn.utils.clip_grad_norm_(generator.parameters(), 1.0)
print("norm of the generator's gradient", norm)
assert distances[-1] > distances[0]
