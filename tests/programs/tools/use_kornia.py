"""kornia: filters, colours, warps, losses and augmentations, and a gradient through a warp."""

import kornia
import torch
from kornia import augmentation, color, filters, geometry, losses, morphology

torch.manual_seed(0)
x, y = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)


def show(name, value):
    print(name, tuple(value.shape), f"{value.double().sum():.3e} {value.double().abs().max():.3e}")


show("blur", filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)))
show("sobel", filters.sobel(x))
show("median", filters.median_blur(x, (3, 3)))
show("canny", filters.canny(x)[0])
for name in ("hsv", "lab", "ycbcr", "xyz", "grayscale"):
    show(name, getattr(color, f"rgb_to_{name}")(x))
matrix = torch.tensor([[[1.0, 0.1, 2.0], [0.0, 0.9, 1.0], [0.0, 0.0, 1.0]]]).repeat(2, 1, 1)
show("perspective", geometry.warp_perspective(x, matrix, (32, 32)))
show("rotate", geometry.rotate(x, torch.tensor([30.0, 45.0])))
show("resize", geometry.resize(x, (20, 24)))
show("clahe", kornia.enhance.equalize_clahe(x))
show("dilation", morphology.dilation(x, torch.ones(3, 3)))
show("ssim", losses.ssim_loss(x, y, 5))
show(
    "focal",
    losses.focal_loss(torch.randn(2, 3, 8, 8), x[:, 0, :8, :8].long(), 0.5, reduction="mean"),
)
show("corners", kornia.feature.harris_response(x[:, :1]))

torch.manual_seed(1)
both = augmentation.AugmentationSequential(
    augmentation.RandomAffine(20.0, p=1.0),
    augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    augmentation.RandomHorizontalFlip(p=0.5),
    data_keys=["input", "mask"],
)
for name, value in zip(("image", "mask"), both(x, x[:, :1].round()), strict=True):
    show(name, value)
angle = torch.tensor([10.0, 20.0], requires_grad=True)
losses.charbonnier_loss(geometry.rotate(x, angle), y, "mean").backward()
print(f"{angle.grad.abs().sum():.3e}")
