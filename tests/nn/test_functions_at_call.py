"""Layers look functions up in nn.functional when they are called: tools replace them there."""

from __future__ import annotations

import pytest

import convcore
from convcore import nn
from convcore.nn import functional as F

IMAGE = (1, 2, 4, 4)
LAYERS = {
    "relu": (nn.ReLU(), IMAGE),
    "silu": (nn.SiLU(), IMAGE),
    "elu": (nn.ELU(), IMAGE),
    "leaky_relu": (nn.LeakyReLU(), IMAGE),
    "hardtanh": (nn.Hardtanh(), IMAGE),
    "gelu": (nn.GELU(), IMAGE),
    "prelu": (nn.PReLU(), IMAGE),
    "sigmoid": (nn.Sigmoid(), IMAGE),
    "softmax": (nn.Softmax(1), IMAGE),
    "conv1d": (nn.Conv1d(2, 2, 1), (1, 2, 4)),
    "conv2d": (nn.Conv2d(2, 2, 1), IMAGE),
    "conv3d": (nn.Conv3d(2, 2, 1), (1, 2, 2, 2, 2)),
    "conv_transpose2d": (nn.ConvTranspose2d(2, 2, 1), IMAGE),
    "linear": (nn.Linear(4, 2), IMAGE),
    "batch_norm": (nn.BatchNorm2d(2), IMAGE),
    "group_norm": (nn.GroupNorm(1, 2), IMAGE),
    "layer_norm": (nn.LayerNorm(4), IMAGE),
    "instance_norm": (nn.InstanceNorm2d(2), IMAGE),
    "max_pool2d": (nn.MaxPool2d(2), IMAGE),
    "avg_pool2d": (nn.AvgPool2d(2), IMAGE),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d(1), IMAGE),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d(1), IMAGE),
    "dropout": (nn.Dropout(), IMAGE),
    "dropout2d": (nn.Dropout2d(), IMAGE),
    "interpolate": (nn.Upsample(scale_factor=2), IMAGE),
    "pixel_shuffle": (nn.PixelShuffle(1), IMAGE),
    "pad": (nn.ReflectionPad2d(1), IMAGE),
    "unfold": (nn.Unfold(2), IMAGE),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_calls_what_is_in_functional(monkeypatch, name):
    layer, shape = LAYERS[name]
    calls = []
    function = getattr(F, name)
    monkeypatch.setattr(
        F, name, lambda *args, **kwargs: calls.append(1) or function(*args, **kwargs)
    )
    layer(convcore.ones(shape))
    assert calls == [1]


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy"])
def test_loss_calls_what_is_in_functional(monkeypatch, name):
    layers = {"mse_loss": nn.MSELoss, "l1_loss": nn.L1Loss, "smooth_l1_loss": nn.SmoothL1Loss}
    layer = layers.get(name, nn.BCELoss)()
    monkeypatch.setattr(F, name, lambda *args, **kwargs: "replaced")
    assert layer(convcore.ones(2), convcore.ones(2)) == "replaced"
