"""A conditional VAE with a convolutional encoder draws shapes of the class it is asked for."""

import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

CLASSES = 3


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1 + CLASSES, 8, 4, 2, 1), nn.ELU(), nn.Conv2d(8, 16, 4, 2, 1), nn.ELU()
        )
        self.heads = nn.Linear(144, 2 * 2)

    def forward(self, x: Tensor, y: Tensor) -> Normal:
        planes = y[:, :, None, None].expand(-1, -1, *x.shape[2:])
        mean, log_std = self.heads(self.body(torch.cat([x, planes], 1)).flatten(1)).chunk(2, 1)
        return Normal(mean, log_std.clamp(-5, 2).exp())


class Decoder(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Linear(2 + CLASSES, 72),
            nn.SiLU(),
            nn.Unflatten(-1, (8, 3, 3)),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.SiLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(8, 1, 3, padding=1),
        )


def shapes(count):
    labels = torch.arange(count) % CLASSES
    y, x = torch.meshgrid(torch.arange(12), torch.arange(12), indexing="ij")
    kinds = torch.stack([(y - x).abs() < 2, (y - 6).abs() < 2, (y - 6) ** 2 + (x - 6) ** 2 < 16])
    shift = torch.randint(-2, 3, (count,)).tolist()
    rolled = [torch.roll(kinds[k], s, 1) for k, s in zip(labels.tolist(), shift, strict=True)]
    return torch.stack(rolled).unsqueeze(1).float(), one_hot(labels, CLASSES).float()


torch.manual_seed(11)
images, labels = shapes(96)
encoder, decoder = Encoder(), Decoder()
optimizer = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
losses = []
for step in range(40):
    posterior = encoder(images, labels)
    z = posterior.rsample()
    logits = decoder(torch.cat([z, labels], -1))
    misfit = binary_cross_entropy_with_logits(logits, images, reduction="none").sum((1, 2, 3))
    divergence = kl_divergence(posterior, Normal(0.0, 1.0)).sum(-1)
    loss = (misfit + divergence).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 8 == 0:
        print(f"{step:3d} {loss:.4f} = {misfit.mean():.4f} + {divergence.mean():.4f}")
assert losses[-1] < 0.7 * losses[0]
