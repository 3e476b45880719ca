"""Nets and optimizers in bfloat16, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import convcore


@pytest.fixture(autouse=True)
def _ml_dtypes():
    pytest.importorskip("ml_dtypes")


def numbers(tensor) -> np.ndarray:
    return np.array(tensor.detach().double().tolist())


def trained(lib, dtype: str, steps: int = 20):
    """Return the losses, parameters and statistics of a small net of convolutions."""
    nn = lib.nn
    net = nn.Sequential(
        *(nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(32, 4)),
    )
    rng = np.random.default_rng(1)
    with lib.no_grad():
        for parameter in net.parameters():
            values = rng.uniform(-0.3, 0.3, tuple(parameter.shape)).astype(np.float32)
            parameter.copy_(lib.tensor(values))
    net.to(getattr(lib, dtype))
    labels = rng.integers(0, 4, 32)
    images = rng.normal(size=(32, 1, 8, 8)) + np.linspace(-1, 1, 4)[labels, None, None, None]
    x = lib.tensor(images.astype(np.float32)).to(getattr(lib, dtype))
    y = lib.tensor(labels.tolist())
    optimizer = lib.optim.SGD(net.parameters(), lr=0.125, momentum=0.5)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        assert all(p.grad.dtype is p.dtype for p in net.parameters())
        optimizer.step()
        losses.append(loss.item())
    state = {name: t for name, t in net.state_dict().items() if t.is_floating_point()}
    assert all(t.dtype is getattr(lib, dtype) for t in state.values())
    return np.array(losses), np.concatenate([numbers(t).ravel() for t in state.values()])


def test_a_net_trains_as_pytorchs_does_and_no_farther_from_float32(torch):
    losses, state = trained(convcore, "bfloat16")
    their_losses, their_state = trained(torch, "bfloat16")
    _, exact_state = trained(torch, "float32")
    assert losses[-1] < 0.5 * losses[0]
    assert np.abs(losses - their_losses).max() <= 2 * 2.0**-7  # two ulps of 1
    away = np.linalg.norm(their_state - exact_state)
    assert np.linalg.norm(state - exact_state) < 1.5 * away
    assert np.linalg.norm(state - their_state) < 1.5 * away


def stepped(lib, name: str, gradients, **options) -> np.ndarray:
    """Return a bfloat16 parameter after a step of each gradient."""
    start = np.random.default_rng(2).normal(size=(5, 7)).astype(np.float32)
    parameter = lib.nn.Parameter(lib.tensor(start).bfloat16())
    optimizer = getattr(lib.optim, name)([parameter], **options)
    for gradient in gradients:
        parameter.grad = lib.tensor(gradient).bfloat16()
        optimizer.step()
    assert parameter.dtype is lib.bfloat16
    for value in optimizer.state[parameter].values():
        assert not isinstance(value, lib.Tensor) or not value.ndim or value.dtype is lib.bfloat16
    return numbers(parameter)


@pytest.fixture
def gradients():
    return np.random.default_rng(3).normal(size=(5, 5, 7)).astype(np.float32)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize("options", [{}, {"amsgrad": True, "weight_decay": 0.1, "lr": 0.01}])
def test_steps_have_the_bits_of_pytorchs_fused_steps(torch, gradients, name, options):
    theirs = stepped(torch, name, gradients, fused=True, **options)
    assert np.array_equal(stepped(convcore, name, gradients, **options), theirs)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_steps_are_near_pytorchs_which_round_more_often(torch, gradients, name):
    ours, theirs = (stepped(lib, name, gradients, lr=0.01) for lib in (convcore, torch))
    ulp = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(theirs), 0.25))) - 7)
    assert (np.abs(ours - theirs) <= 2 * ulp).all()


def test_a_step_of_sgd_is_rounded_once(gradients):
    for lr in (0.1, 0.003):
        before = stepped(convcore, "SGD", [], lr=lr)
        gradient = numbers(convcore.tensor(gradients[0]).bfloat16())
        exact = convcore.tensor((before - lr * gradient).tolist(), dtype=convcore.float64)
        after = stepped(convcore, "SGD", gradients[:1], lr=lr)
        assert np.array_equal(after, numbers(exact.bfloat16()))
