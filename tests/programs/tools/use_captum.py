"""Captum's methods on a small convolutional net: inputs, layers, neurons, attacks."""

import numpy as np
import torch
from captum import attr
from captum.attr import visualization
from captum.metrics import infidelity
from captum.robust import FGSM, PGD
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.relu1 = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()
        self.conv2, self.norm = nn.Conv2d(8, 16, 3, padding=1, stride=2), nn.BatchNorm2d(16)
        self.relu2, self.pool = nn.ReLU(), nn.AdaptiveAvgPool2d(4)
        self.fc = nn.Linear(256, 5)

    def forward(self, x):
        x = self.relu1(self.conv1(x))
        x = self.pool(self.relu2(self.norm(self.conv2(x))))
        return self.fc(torch.flatten(x, 1))


def show(name, *results):
    for value in results:
        value = value.detach()
        print(name, tuple(value.shape), f"{value.abs().sum():.5e} {value.std():.5e}", flush=True)


torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
model = Net().eval()
x, baseline = torch.rand(2, 3, 16, 16), torch.zeros(2, 3, 16, 16)
to = {"target": torch.tensor([1, 3])}
quarters = torch.arange(4).reshape(1, 1, 2, 2).repeat_interleave(8, 2).repeat_interleave(8, 3)

for name in ("Saliency", "InputXGradient", "GuidedBackprop", "Deconvolution", "LRP"):
    show(name, getattr(attr, name)(model).attribute(x, **to))
for name in ("IntegratedGradients", "DeepLift"):
    shares, delta = getattr(attr, name)(model).attribute(
        x, baseline, **to, return_convergence_delta=True
    )
    show(name, shares)
    assert delta.abs().max() < 1e-2
show("DeepLiftShap", attr.DeepLiftShap(model).attribute(x, baseline, **to))
np.random.seed(0)
show("GradientShap", attr.GradientShap(model).attribute(x, baseline, **to, stdevs=0.0))
show("NoiseTunnel", attr.NoiseTunnel(attr.Saliency(model)).attribute(x, **to, stdevs=0.0))

show("Occlusion", attr.Occlusion(model).attribute(x, (3, 4, 4), strides=(3, 4, 4), **to))
show("FeatureAblation", attr.FeatureAblation(model).attribute(x, **to, feature_mask=quarters))
show("ShapleyValues", attr.ShapleyValues(model).attribute(x, **to, feature_mask=quarters))
torch.manual_seed(3)
for name in ("ShapleyValueSampling", "KernelShap"):
    method = getattr(attr, name)(model)
    show(name, method.attribute(x[:1], target=1, n_samples=20, feature_mask=quarters))

layer = model.conv2
for name in ("LayerGradCam", "LayerGradientXActivation", "LayerDeepLift", "LayerLRP"):
    show(name, getattr(attr, name)(model, layer).attribute(x, **to))
for name in ("LayerConductance", "LayerIntegratedGradients", "InternalInfluence"):
    show(name, getattr(attr, name)(model, layer).attribute(x, baseline, **to, n_steps=10))
show("LayerActivation", attr.LayerActivation(model, layer).attribute(x))
show("GuidedGradCam", attr.GuidedGradCam(model, layer).attribute(x, **to))
for name in ("NeuronGradient", "NeuronDeepLift", "NeuronGuidedBackprop"):
    show(name, getattr(attr, name)(model, layer).attribute(x, (3, 1, 2)))

gradients = attr.Saliency(model).attribute(x, **to)
show(
    "infidelity", infidelity(model, lambda t, b=None: (t * 0 + 0.01, t - 0.01), x, gradients, **to)
)
show("FGSM", FGSM(model).perturb(x, epsilon=0.1, **to))
show("PGD", PGD(model).perturb(x, radius=0.1, step_size=0.02, step_num=3, **to))
picture, image = (t[0].detach().permute(1, 2, 0).numpy() for t in (gradients, x))
figure, _ = visualization.visualize_image_attr(picture, image, "blended_heat_map", use_pyplot=False)
print(type(figure).__name__)
