"""Optimizers composed of tensor operations: PyTorch's steps, states and errors; differentiation."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import convcore
from convcore import optim

CASES = {
    "Adadelta": [{}, {"rho": 0.5, "weight_decay": 0.1, "maximize": True}],
    "Adagrad": [{}, {"lr_decay": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.1}],
    "NAdam": [{"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"betas": (0.5, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}],
}
FUSED = {
    "SGD": [{"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {}],
    "Adam": [{"amsgrad": True, "weight_decay": 0.1}, {"maximize": True}],
    "AdamW": [{}, {"weight_decay": 0.3}],
    "RMSprop": [{"momentum": 0.5, "centered": True}, {"weight_decay": 0.1}],
}
ALL = [(name, options) for name, cases in CASES.items() for options in cases]


def drawn(rng, shape, dtype):
    values = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.standard_normal(shape)
    return np.asarray(values, dtype)


def stepped(library, name, options, dtype="float64", steps=7):
    """The parameters and the optimizer after some steps with the same random gradients."""
    rng = np.random.default_rng(3)
    parameters = [library.from_numpy(drawn(rng, shape, dtype)) for shape in ((3, 4), (5,), ())]
    for parameter in parameters:
        parameter.requires_grad = True
    optimizer = getattr(library.optim, name)(parameters, **options)
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = library.from_numpy(drawn(rng, tuple(parameter.shape), dtype))
        optimizer.step()
    return parameters, optimizer


def digest(library, name, options):
    """Two sums of the parameters after seven steps with gradients that need no random numbers."""
    values = [np.cos(1.7 * np.arange(n)).reshape(shape) for n, shape in ((6, (2, 3)), (1, ()))]
    parameters = [library.from_numpy(array).requires_grad_() for array in values]
    optimizer = getattr(library.optim, name)(parameters, **options)
    for step in range(7):
        for parameter, array in zip(parameters, values, strict=True):
            # Signs and sizes change from step to step.
            gradient = np.sin(2.3 * step + np.arange(1.0, array.size + 1)) * (step + 1)
            parameter.grad = library.from_numpy(gradient.reshape(array.shape))
        optimizer.step()
    flat = np.concatenate([p.detach().numpy().reshape(-1) for p in parameters])
    return flat.sum(), flat @ np.arange(1.0, flat.size + 1)


# PyTorch 2.13's results of `digest`.
EXPECTED = {
    "Adadelta 0": (1.5476981507811, 7.083975830539035),
    "Adadelta 1": (1.5483186187677243, 7.0817502810957915),
    "Adagrad 0": (1.5459545154638477, 7.104116849699271),
    "Adagrad 1": (1.5464383244560853, 7.08224676668099),
    "NAdam 0": (1.5472960783968763, 7.085235110569423),
    "NAdam 1": (1.5462405370206511, 7.080110813755004),
    "RAdam 0": (1.549004625597919, 7.084608556038141),
    "RAdam 1": (1.5483018625825724, 7.077296693334066),
    "SGD 0": (1.5395398940109306, 7.044614068178785),
    "SGD 1": (1.5466826618931548, 7.073545256670855),
    "Adam 0": (1.5481393837497777, 7.08626629435974),
    "Adam 1": (1.5506635634253843, 7.0883934468275545),
    "AdamW 0": (1.548669297020274, 7.08859718959844),
    "AdamW 1": (1.545527755474898, 7.074219062008984),
    "RMSprop 0": (1.5182486818014844, 7.640968880195668),
    "RMSprop 1": (1.4679298673598815, 7.0508656308352124),
}


def values(optimizer):
    """The state as plain numbers, and what each entry is."""
    states = optimizer.state_dict()["state"]
    return {
        (number, name): (np.asarray(entry.detach()), str(entry.dtype).split(".")[-1])
        for number, state in states.items()
        for name, entry in state.items()
    }


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("name", "options"), ALL)
def test_steps_and_states_are_pytorchs(torch, name, options, dtype):
    ours, theirs = (stepped(lib, name, options, dtype) for lib in (convcore, torch))
    rtol = 1e-12 if dtype == "float64" else 2e-5
    for mine, other in zip(ours[0], theirs[0], strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol, rtol)
    state, expected = values(ours[1]), values(theirs[1])
    assert state.keys() == expected.keys()
    for entry, (array, kind) in expected.items():
        assert state[entry][0].shape == array.shape
        assert state[entry][1] == kind
        np.testing.assert_allclose(state[entry][0], array, rtol, rtol)
    assert repr(ours[1]) == repr(theirs[1])


@pytest.mark.parametrize("case", EXPECTED)
def test_seven_steps_give_pytorchs_numbers(case):
    number, name = int(case[-1]), case[:-2]
    found = digest(convcore, name, (CASES | FUSED)[name][number])
    np.testing.assert_allclose(found, EXPECTED[case], 1e-10)


@pytest.mark.parametrize(("name", "options"), ALL)
def test_state_goes_from_pytorch_to_convcore_and_back(torch, name, options):
    (_, theirs), (_, ours) = (stepped(lib, name, options, steps=3) for lib in (torch, convcore))
    saved = copy.deepcopy(theirs.state_dict())
    for state in saved["state"].values():
        for entry in state:
            state[entry] = convcore.from_numpy(state[entry].numpy().copy())
    ours.load_state_dict(saved)
    results = []
    for optimizer in (ours, theirs):
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad = parameter.detach() * 0.5
        optimizer.step()
        results.append(optimizer.param_groups[0]["params"])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), 1e-10)
    back = copy.deepcopy(ours.state_dict())
    for state in back["state"].values():
        for entry in state:
            state[entry] = torch.from_numpy(state[entry].numpy().copy())
    theirs.load_state_dict(back)
    theirs.step()


def first_step(name, **options):
    """What the first step adds to a parameter of [1, -2] with the gradient [0.5, 3]."""
    parameter = convcore.tensor([1.0, -2.0], dtype=convcore.float64, requires_grad=True)
    parameter.grad = convcore.tensor([0.5, 3.0], dtype=convcore.float64)
    getattr(optim, name)([parameter], **options).step()
    return parameter.detach().numpy() - [1.0, -2.0]


def test_first_steps_are_what_the_formulas_say():
    signs = np.array([1.0, 1.0])
    np.testing.assert_allclose(first_step("Adagrad", lr=0.1), -0.1 * signs, 1e-6)
    np.testing.assert_allclose(first_step("RAdam", lr=0.1), [-0.05, -0.3], 1e-6)
    small = np.sqrt(1e-6 / (0.1 * np.array([0.25, 9]) + 1e-6)) * [0.5, 3]
    np.testing.assert_allclose(first_step("Adadelta"), -small, 1e-6)


@pytest.mark.parametrize(
    ("name", "options"), [(n, o) for n, cases in (CASES | FUSED).items() for o in cases]
)
def test_recorded_steps_are_the_same_and_differentiable(name, options):
    rng = np.random.default_rng(0)
    start, first, second = (
        convcore.from_numpy(drawn(rng, (3,), "float64")).requires_grad_() for _ in range(3)
    )

    def train(start, first, second, differentiable=True):
        parameter = start.clone() if differentiable else start.detach().clone().requires_grad_()
        optimizer = getattr(optim, name)([parameter], differentiable=differentiable, **options)
        for grad in (first, second, second):
            parameter.grad = grad
            optimizer.step()
        return parameter

    plain = train(start, first.detach(), second.detach(), False)
    recorded = train(start, first, second)
    np.testing.assert_allclose(recorded.detach().numpy(), plain.detach().numpy(), 1e-12)
    assert convcore.autograd.gradcheck(train, (start, first, second))


def test_step_is_differentiable_by_its_learning_rate():
    lr = convcore.tensor(0.1, dtype=convcore.float64, requires_grad=True)
    start = convcore.ones(2, dtype=convcore.float64)
    for name in ("SGD", "Adam", "NAdam"):
        parameter = start.clone()
        parameter.grad = convcore.tensor([2.0, -1.0], dtype=convcore.float64)
        getattr(optim, name)([parameter], lr=lr, differentiable=True).step()
        (slope,) = convcore.autograd.grad(parameter.sum(), lr)
        assert slope.item() == pytest.approx((parameter - start).sum().item() / 0.1)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_steps_are_differentiable_by_all_that_may_be_a_tensor(name):
    def train(weight_decay, beta1, beta2):
        parameter = convcore.tensor([1.0, -2.0], dtype=convcore.float64, requires_grad=True).clone()
        options = {"betas": (beta1, beta2), "weight_decay": weight_decay}
        optimizer = getattr(optim, name)([parameter], lr=0.1, differentiable=True, **options)
        for _ in range(2):
            (parameter.grad,) = convcore.autograd.grad(
                parameter.sum() ** 2, parameter, create_graph=True
            )
            optimizer.step()
        return parameter

    given = convcore.tensor([0.3, 0.9, 0.99], dtype=convcore.float64)
    assert convcore.autograd.gradcheck(train, [x.requires_grad_() for x in given.clone().unbind()])


def test_leaf_cannot_take_a_recorded_step():
    leaf = convcore.ones(1, requires_grad=True)
    leaf.grad = convcore.ones(1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        optim.Adagrad([leaf], differentiable=True).step()
    assert leaf.item() == 1


BAD = {
    "rho": lambda lib, p: lib.optim.Adadelta(p, rho=1.5),
    "lr": lambda lib, p: lib.optim.Adadelta(p, lr=-1.0),
    "lr_decay": lambda lib, p: lib.optim.Adagrad(p, lr_decay=-1),
    "accumulator": lambda lib, p: lib.optim.Adagrad(p, initial_accumulator_value=-1),
    "betas": lambda lib, p: lib.optim.NAdam(p, betas=(0.5, 1.0)),
    "momentum_decay": lambda lib, p: lib.optim.NAdam(p, momentum_decay=-1),
    "eps": lambda lib, p: lib.optim.RAdam(p, eps=-1),
    "weight_decay": lambda lib, p: lib.optim.Adadelta(p, weight_decay=-1),
    "tensor lr": lambda lib, p: lib.optim.Adagrad(p, lr=lib.ones(2)),
    "fused": lambda lib, p: lib.optim.Adam(p, fused=True, foreach=True),
    "recorded": lambda lib, p: lib.optim.SGD(p, fused=True, differentiable=True),
    "groups": lambda lib, p: lib.optim.LBFGS([{"params": p}, {"params": [lib.ones(1)]}]),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_errors_are_pytorchs(torch, make):
    told = []
    for library in (convcore, torch):
        with pytest.raises((ValueError, RuntimeError)) as caught:
            make(library, [library.ones(2, requires_grad=True)])
        told.append((caught.type, str(caught.value)))
    assert told[0] == told[1]


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad"])
@pytest.mark.parametrize("kind", [{"device": "meta"}, {"dtype": "complex64"}])
def test_fused_steps_of_what_has_no_values_or_is_complex_are_refused(lib, name, kind):
    options = {**kind, "dtype": getattr(lib, kind["dtype"])} if "dtype" in kind else kind
    parameter = lib.ones(2, **options, requires_grad=True)
    optimizer = getattr(lib.optim, name)([parameter], fused=True)
    parameter.grad = lib.ones_like(parameter)
    with pytest.raises(RuntimeError, match="requires all the params to be floating point"):
        optimizer.step()


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_bad_options_are_refused(make):
    with pytest.raises((ValueError, RuntimeError)):
        make(convcore, [convcore.ones(2, requires_grad=True)])


@pytest.mark.parametrize("name", [*CASES, *FUSED, "LBFGS"])
def test_learning_rate_that_is_no_number_is_refused(name):
    with pytest.raises(TypeError, match="lr must be a number"):
        getattr(optim, name)([convcore.ones(2, 2, requires_grad=True)], lr="x")


@pytest.mark.parametrize("name", CASES)
def test_optimizers_can_be_pickled(name):
    _, optimizer = stepped(convcore, name, {})
    copied = pickle.loads(pickle.dumps(optimizer))
    assert repr(copied) == repr(optimizer)
    assert values(copied).keys() == values(optimizer).keys()
