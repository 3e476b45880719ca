"""GradScaler scales, skips and grows as PyTorch's does."""

from __future__ import annotations

import pytest

import convcore
from convcore import amp


def test_other_devices_are_disabled_with_a_warning(lib):
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = lib.amp.GradScaler("cuda")
    loss = lib.ones(1)
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and not scaler.is_enabled()


def scales(lib) -> list:
    """Return the scales and weights of steps of which one has an infinite gradient."""
    weight = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([weight], lr=0.5)
    scaler = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    found = []
    for factor in (1.0, 2.0, float("inf"), 1.0, 3.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        found += [scaler.get_scale(), *weight.tolist()]
    state = scaler.state_dict()
    other = lib.amp.GradScaler("cpu")
    other.load_state_dict(state)
    assert other.state_dict() == state
    return found


def test_scaler_skips_steps_that_overflow_and_grows():
    assert scales(convcore)[::3] == [8.0, 16.0, 8.0, 8.0, 16.0, 16.0]


def test_scaler_equals_pytorchs(torch):
    assert scales(convcore) == scales(torch)


def test_scaler_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="growth factor must be > 1"):
        amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(ValueError, match="backoff factor must be < 1"):
        amp.GradScaler("cpu", backoff_factor=1.0)
    scaler = amp.GradScaler("cpu")
    optimizer = convcore.optim.SGD([convcore.nn.Parameter(convcore.ones(1))], lr=1)
    scaler.scale(convcore.ones(1))
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        scaler.load_state_dict({})


def misused(lib, order: str) -> str:
    """Return the error of methods that are called in an order, each by its first letter."""
    weight = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([weight], lr=0.5)
    scaler = lib.amp.GradScaler("cpu", init_scale=8.0)
    calls = {
        "b": lambda: scaler.scale(weight.sum()).backward(),
        "u": lambda: scaler.unscale_(optimizer),
        "s": lambda: scaler.step(optimizer),
        "n": scaler.update,
        "g": lambda: scaler.update(4.0),
        "z": optimizer.zero_grad,
        "c": lambda: scaler.step(optimizer, closure=lambda: 0),
    }
    try:
        for letter in order:
            calls[letter]()
    except (AssertionError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return str(weight.tolist())


@pytest.mark.parametrize(
    "order",
    ["s", "n", "u", "g", "bn", "bss", "bsu", "buu", "busbs", "bsnbsn", "bzs", "bc", "bg", "bsnn"],
)
def test_steps_out_of_order_are_refused_as_by_pytorch(torch, order):
    assert misused(convcore, order) == misused(torch, order)


def test_a_second_step_before_an_update_does_not_take_scaled_gradients():
    assert misused(convcore, "bsbs").startswith("RuntimeError: step() has already been called")


def test_a_freed_optimizers_step_is_not_a_new_ones():
    scaler, weight = amp.GradScaler("cpu"), convcore.nn.Parameter(convcore.ones(1))
    for _ in range(30):
        scaler.scale(weight.sum()).backward()
        scaler.step(convcore.optim.SGD([weight], lr=0.0))
