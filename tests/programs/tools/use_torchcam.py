"""TorchCAM's class activation maps of a small convolutional net."""

import torch
from small_net import build
from torchcam import methods

torch.set_default_dtype(torch.float64)
model = build()
x = torch.rand(1, 3, 16, 16)
SAMPLES = {"SmoothGradCAMpp": {"std": 1e-12, "num_samples": 2}, "ISCAM": {"num_samples": 2}}
NAMES = ("GradCAM", "GradCAMpp", "XGradCAM", "LayerCAM", "ScoreCAM", *SAMPLES)
for name in NAMES:
    with getattr(methods, name)(model, "2", **SAMPLES.get(name, {})) as extractor:
        (found,) = extractor(3, model(x))
    print(name, tuple(found.shape), f"{found.sum():.5e} {found.std():.5e}")
