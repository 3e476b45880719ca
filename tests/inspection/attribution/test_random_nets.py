"""Completeness on random nets: shortcuts, halves, shuffles, shared and in-place ReLUs, pools."""

import random

import pytest
from attribution_nets import settled

import convcore
from convcore import nn
from convcore.inspection import attribution
from convcore.nn import functional as F


class Random(nn.Module):
    """A random chain of steps on maps; ``bias`` says whether anything adds one."""

    STEPS = ("residual", "dense", "shuffle", "depthwise", "pool")

    def __init__(self, seed, bias):
        super().__init__()
        draw = random.Random(seed)
        self.stem = nn.Conv2d(3, 4, 3, padding=1, bias=bias)
        self.relu = nn.ReLU(inplace=draw.random() < 0.5)  # one for all steps
        self.steps, self.layers, channels = [], nn.ModuleList(), 4
        for step in draw.choices(self.STEPS, k=draw.randint(2, 5)):
            layers = []
            if step in ("residual", "depthwise"):
                groups = channels if step == "depthwise" else 1
                conv = nn.Conv2d(channels, channels, 3, padding=1, groups=groups, bias=bias)
                layers = [conv, nn.BatchNorm2d(channels)]
            elif step == "dense":
                layers = [nn.BatchNorm2d(channels), nn.Conv2d(channels, 4, 1, bias=bias)]
                channels += 4
            self.steps.append((step, draw.random()))
            self.layers.append(nn.Sequential(*layers))
        self.fc = nn.Linear(channels, 3, bias=bias)

    def forward(self, x):
        x = self.relu(self.stem(x))
        for (step, share), layers in zip(self.steps, self.layers, strict=True):
            if step == "residual":
                x = self.relu(x + layers(x)) if share < 0.5 else F.relu_(layers(x)) + x
            elif step == "dense":
                x = convcore.cat([x, layers[1](self.relu(layers[0](x)))], 1)
            elif step == "depthwise":
                x = self.relu(layers(x))
            elif step == "shuffle":
                left, right = x.chunk(2, 1)
                x = convcore.stack([left, right.clone().relu_()], 2).flatten(1, 2)
            elif min(x.shape[2:]) > 1:
                x = F.max_pool2d(x, 2) if share < 0.5 else F.avg_pool2d(x, 2)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def made(seed, centred):
    """Return a net, a batch of images, and baselines."""
    convcore.manual_seed(seed)
    net = settled(Random(seed, bias=not centred), centred)
    x = convcore.randn(2, 3, 8, 8, dtype=convcore.float64)
    return net, x, x.flip(0) * 0.5


@pytest.mark.parametrize("seed", range(10))
def test_attributions_of_random_nets_are_complete(seed):
    net, x, baseline = made(seed, centred=False)
    with convcore.no_grad():
        gained = (net(x) - net(baseline))[:, 1].abs()
    for method, options in (
        (attribution.integrated_gradients, {"tolerance": 1e-6}),
        (attribution.deep_lift, {}),
    ):
        _, delta = method(net, x, 1, baseline=baseline, return_convergence_delta=True, **options)
        assert (delta.abs() < 1e-5 * gained).all()


@pytest.mark.parametrize("seed", range(10))
def test_relevances_of_random_nets_are_conserved(seed):
    net, x, _ = made(seed, centred=True)
    rule = attribution.Epsilon(0.0)
    _, delta = attribution.lrp(net, x, 1, rules=rule, return_convergence_delta=True)
    assert (delta.abs() < 1e-6 * net(x)[:, 1].detach().abs()).all()
