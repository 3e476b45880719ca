"""pytorch-grad-cam's class activation maps of a small convolutional net."""

import numpy as np
import pytorch_grad_cam
import torch
from pytorch_grad_cam.utils.image import show_cam_on_image
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from small_net import build

torch.set_default_dtype(torch.float64)
model = build()
x, targets = torch.rand(1, 3, 16, 16), [ClassifierOutputTarget(3)]
NAMES = (
    *("GradCAM", "HiResCAM", "GradCAMPlusPlus", "XGradCAM", "LayerCAM", "GradCAMElementWise"),
    *("EigenCAM", "EigenGradCAM", "KPCA_CAM", "FullGrad", "ShapleyCAM", "FinerCAM", "FEM"),
    *("ScoreCAM", "AblationCAM"),
)
for name in NAMES:
    with getattr(pytorch_grad_cam, name)(model=model, target_layers=[model[2]]) as cam:
        found = cam(input_tensor=x, targets=targets)
    print(name, found.shape, f"{found.sum():.4f} {found.std():.4f}", flush=True)
with pytorch_grad_cam.GradCAM(model=model, target_layers=[model[2]]) as cam:
    found = cam(input_tensor=x, targets=targets, aug_smooth=True, eigen_smooth=True)
print("smooth", f"{found.sum():.4f} {found.std():.4f}")
guided = pytorch_grad_cam.GuidedBackpropReLUModel(model=model, device="cpu")(x, target_category=3)
print("guided", guided.shape, f"{np.abs(guided).sum():.5e}")
image = np.float32(x[0].detach().permute(1, 2, 0).numpy())
picture = show_cam_on_image(image, np.full((16, 16), 0.5, np.float32), use_rgb=True)
print(picture.shape, picture.sum())
