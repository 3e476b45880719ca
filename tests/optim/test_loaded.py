"""States of optimizers that are no states: refused by name, and nothing is changed."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import convcore
from convcore import nn, optim
from convcore.optim import _loaded
from convcore.optim._composed import Composed

MADE = {
    "SGD": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: optim.Adam(parameters, lr=0.1),
    "NAdam": lambda parameters: optim.NAdam(parameters, lr=0.1),
}


def stepped(kind):
    """Return a layer and an optimizer that has made a step of it."""
    layer = nn.Linear(2, 2)
    optimizer = MADE[kind](layer.parameters())
    layer(convcore.ones(1, 2)).sum().backward()
    optimizer.step()
    return layer, optimizer


def changed(state, path, value):
    """Return a copy of a state with another value in a place, or without it if that is None."""
    state = copy.deepcopy(state)
    inner = state
    for key in path[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return state


def values(optimizer):
    """Return an optimizer's state, with lists for tensors."""
    state = optimizer.state_dict()
    plain = {
        number: {name: v.tolist() if hasattr(v, "tolist") else v for name, v in own.items()}
        for number, own in state["state"].items()
    }
    return repr((plain, state["param_groups"]))


GROUP = ("param_groups", 0)
OPTION = r"state_dict\['param_groups'\]\[0\]"
HOSTILE = [
    (("state",), KeyError, "has no 'state'"),
    (("param_groups",), KeyError, "has no 'param_groups'"),
    (("state",), [1], r"state_dict\['state'\] must be a dict, got list"),
    (("state", 0), 3, "the state of parameter 0 must be a dict, got int"),
    (("param_groups",), "x", r"state_dict\['param_groups'\] must be a list of dicts, got str"),
    (GROUP, None, f"{OPTION} must be a dict, got NoneType"),
    ((*GROUP, "params"), KeyError, rf"{OPTION}\['params'\] must be a list of numbers"),
    ((*GROUP, "params"), [[], []], rf"{OPTION}\['params'\] must be a list of numbers, got list"),
    ((*GROUP, "lr"), "0.1", rf"{OPTION}\['lr'\] must be a number, got '0.1'"),
    ((*GROUP, "lr"), None, rf"{OPTION}\['lr'\] must be a number, got None"),
    ((*GROUP, "weight_decay"), [1], rf"{OPTION}\['weight_decay'\] must be a number"),
]
HOSTILE_OF_ADAM = [
    ((*GROUP, "betas"), "ab", rf"{OPTION}\['betas'\] must be 2 numbers, got str"),
    ((*GROUP, "betas"), (0.9,), rf"{OPTION}\['betas'\] must be 2 numbers"),
    ((*GROUP, "betas"), (0.9, "a"), rf"{OPTION}\['betas'\] must be a number, got 'a'"),
    (("state", 0, "step"), "x", "step in the state of parameter 0 must be a number, got str"),
    (("state", 0, "step"), None, "step in the state of parameter 0 must be a number"),
    (("state", 0, "step"), convcore.ones(2), "step in .* must be one number, got 2"),
    (("state", 0, "exp_avg"), np.ones((2, 2)), "exp_avg in .* must be a Tensor, got ndarray"),
    (("state", 0, "exp_avg"), "x", "exp_avg in the state of parameter 0 must be a Tensor"),
    (("state", 0, "exp_avg"), convcore.ones(2, 2, device="meta"), "Cannot copy out of meta"),
]


@pytest.mark.parametrize(
    ("kind", "path", "value", "what"),
    [(kind, *case) for kind in ("SGD", "Adam") for case in HOSTILE]
    + [(kind, *case) for kind in ("Adam", "NAdam") for case in HOSTILE_OF_ADAM],
)
def test_what_is_no_state_is_named_and_nothing_is_changed(kind, path, value, what):
    layer, optimizer = stepped(kind)
    before = values(optimizer)
    hostile = changed(optimizer.state_dict(), path, value)
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=what):
        optimizer.load_state_dict(hostile)
    assert values(optimizer) == before
    optimizer.step()
    assert not layer.weight.isnan().any()


@pytest.mark.parametrize("state", [None, [1], "x", 3])
def test_what_is_no_mapping_is_refused(state):
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class"):
        stepped("SGD")[1].load_state_dict(state)


def test_older_states_with_plain_numbers_are_taken():
    _, optimizer = stepped("NAdam")
    state = optimizer.state_dict()
    for name in ("step", "mu_product"):
        state = changed(state, ("state", 0, name), state["state"][0][name].item())
    optimizer.load_state_dict(state)
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"] == 2


@pytest.mark.parametrize("kind", MADE)
def test_entries_of_a_program_are_kept_as_they_are(kind):
    layer, optimizer = stepped(kind)
    own = {"calls": 3, "tags": ["a", None], "ratio": convcore.tensor(0.5)}
    optimizer.state[layer.weight].update(own)
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.step()
    assert own.items() <= optimizer.state[layer.weight].items()


CLASSES = {name: vars(optim)[name] for name in optim.__all__ if name[0].isupper()}
COMPOSED = [name for name, made in CLASSES.items() if issubclass(made, Composed)]
OPTIONS = {"Adam": {"amsgrad": True}, "RMSprop": {"centered": True, "momentum": 0.9}}
OPTIONS |= {"SGD": {"momentum": 0.9}}


@pytest.mark.parametrize("kind", COMPOSED)
def test_entries_of_an_optimizer_are_those_that_are_checked(kind):
    layer = nn.Linear(2, 3)
    layer(convcore.ones(1, 2)).sum().backward()
    optimizer = CLASSES[kind](layer.parameters(), lr=0.1, **OPTIONS.get(kind, {}))
    optimizer.step()
    for parameter, own in optimizer.state.items():
        arrays = {name for name, value in own.items() if value.shape == parameter.shape}
        assert arrays <= _loaded.ARRAYS
        assert own.keys() - arrays <= _loaded.NUMBERS
