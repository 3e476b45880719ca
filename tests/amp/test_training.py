"""Training under autocast: losses beside PyTorch's, parameters and gradients in float32."""

from __future__ import annotations

import numpy as np
import pytest
from torch_twins import copied_state, models_of_torch

import convcore
from convcore.models import resnet18

pytest.importorskip("ml_dtypes")

# Half an ulp of bfloat16 relative to a number, the rounding of one result.
EPS = 2.0**-8


def conv_net(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


def train(lib, net, steps: int, dtype, size: int = 12, classes: int = 5) -> list[float]:
    draw = np.random.default_rng(1)
    x = lib.from_numpy(draw.standard_normal((16, 3, size, size), dtype=np.float32))
    y = lib.from_numpy(draw.integers(0, classes, 16))
    optimizer = lib.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scaler = lib.amp.GradScaler("cpu", init_scale=256.0)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with lib.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            out = net(x)
            loss = lib.nn.functional.cross_entropy(out, y)
        assert out.dtype is (lib.float32 if dtype is None else dtype)
        assert loss.dtype is lib.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    for parameter in net.parameters():
        assert parameter.dtype is parameter.grad.dtype is lib.float32
    return losses


def test_a_conv_net_learns_beside_pytorchs(torch):
    found = {}
    for name in ("float32", "bfloat16"):
        convcore.manual_seed(0)
        ours, theirs = conv_net(convcore), conv_net(torch)
        theirs.load_state_dict(copied_state(ours, torch))
        for lib, net in ((convcore, ours), (torch, theirs)):
            found[lib, name] = train(lib, net, 20, None if name == "float32" else lib.bfloat16)
    exact, lower = np.array(found[torch, "float32"]), np.array(found[convcore, "bfloat16"])
    np.testing.assert_allclose(found[convcore, "float32"], exact, rtol=1e-4)
    assert abs(lower - found[torch, "bfloat16"]).max() <= 4 * EPS * exact.max()
    assert lower[-1] < 0.7 * lower[0] and (lower != found[convcore, "float32"]).any()


def test_resnet18s_gradients_are_as_near_to_those_of_float32_as_pytorchs(torch):
    convcore.manual_seed(0)
    ours = resnet18(num_classes=5)
    state = copied_state(ours, torch)
    losses, grads = {}, {}
    for name, lib, lower in (("exact", torch, 0), ("ours", convcore, 1), ("theirs", torch, 1)):
        net = ours
        if lib is torch:
            net = models_of_torch().resnet18(num_classes=5)
            net.load_state_dict(state)
        losses[name] = train(lib, net, 1, lib.bfloat16 if lower else None, size=48)[0]
        grads[name] = np.concatenate([p.grad.numpy().ravel() for p in net.parameters()])
    assert abs(losses["ours"] - losses["theirs"]) <= 4 * EPS * losses["exact"]
    distance = {name: np.linalg.norm(grad - grads["exact"]) for name, grad in grads.items()}
    assert 0 < distance["ours"] <= 1.2 * distance["theirs"]
