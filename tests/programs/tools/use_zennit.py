"""zennit's composites of rules for layer-wise relevance propagation on a small net."""

import torch
from small_net import build
from zennit import attribution, composites
from zennit.canonizers import SequentialMergeBatchNorm
from zennit.image import imgify

torch.set_default_dtype(torch.float64)
model = build()
x, target = torch.rand(2, 3, 16, 16), torch.eye(5)[[1, 3]]


def show(name, attributor):
    with attributor:
        output, relevance = attributor(x, target)
    print(name, tuple(relevance.shape), f"{output.sum():.5e} {relevance.abs().sum():.5e}")
    return relevance


merge = {"canonizers": [SequentialMergeBatchNorm()]}
box = composites.EpsilonGammaBox(low=-3.0, high=3.0, **merge)
show("EpsilonGammaBox", attribution.Gradient(model=model, composite=box))
NAMES = (
    *("EpsilonPlus", "EpsilonPlusFlat", "EpsilonAlpha2Beta1", "EpsilonAlpha2Beta1Flat"),
    *("GuidedBackprop", "ExcitationBackprop", "DeconvNet", "BetaSmooth"),
)
for name in NAMES:
    composite = getattr(composites, name)(**merge)
    show(name, attribution.Gradient(model=model, composite=composite))
show("Gradient", attribution.Gradient(model=model))
show("SmoothGrad", attribution.SmoothGrad(model=model, noise_level=0.0, n_iter=3))
relevance = show("IntegratedGradients", attribution.IntegratedGradients(model=model, n_iter=5))
picture = imgify(relevance[0].sum(0).detach().numpy(), symmetric=True, cmap="coldnhot")
print(picture.size, picture.mode)
