"""einops' functions and layers: rearranged, reduced and packed tensors, and a net."""

import torch
from einops import einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

torch.manual_seed(0)
x = torch.rand(2, 3, 8, 8, requires_grad=True)
patches = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=4)
print(tuple(patches.shape), f"{patches[0, 3].sum():.4f}", parse_shape(x, "b c _ _"))
for how in ("mean", "max", "min", "sum", "prod"):
    print(
        how, [f"{value:.4e}" for value in reduce(x, "b c (h 4) w -> b h", how).flatten().tolist()]
    )
print(tuple(repeat(x, "b c h w -> b (r c) h w", r=2).shape))
print(f"{einsum(x, x, 'b c h w, b d h w -> b c d').sum():.3f}")
packed, shapes = pack([x, torch.rand(2, 5)], "b *")
print(tuple(packed.shape), [tuple(part.shape) for part in unpack(packed, shapes, "b *")])

net = nn.Sequential(
    nn.Conv2d(3, 6, 3, padding=1),
    Reduce("b c (h 2) (w 2) -> b c h w", "max"),
    Rearrange("b c h w -> b (c h w)"),
    EinMix("b i -> b o", weight_shape="i o", bias_shape="o", i=96, o=4),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(f"{loss:.5f}")
print(f"{x.grad.abs().sum():.4f}", net)
