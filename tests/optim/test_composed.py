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
    "Adamax": [{}, {"betas": (0.5, 0.9), "weight_decay": 0.1}],
    "NAdam": [{"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"betas": (0.5, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "ASGD": [{}, {"t0": 2, "lambd": 0.1, "weight_decay": 0.1}],
    "Rprop": [{}, {"lr": 0.5, "etas": (0.3, 2.0), "maximize": True}],
    "Adafactor": [{}, {"lr": 0.5, "weight_decay": 0.1, "d": 2.0, "eps": (1e-3, 1e-2)}],
}
FUSED = {
    "SGD": [{"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {}],
    "Adam": [{"amsgrad": True, "weight_decay": 0.1}, {"maximize": True}],
    "AdamW": [{}, {"weight_decay": 0.3}],
    "RMSprop": [{"momentum": 0.5, "centered": True}, {"weight_decay": 0.1}],
}
ALL = [(name, options) for name, cases in CASES.items() for options in cases]
REAL_ONLY = {"Adafactor"}


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
    "Adamax 0": (1.5476919215901466, 7.089742024474321),
    "Adamax 1": (1.5474271399395292, 7.087367243359557),
    "NAdam 0": (1.5472960783968763, 7.085235110569423),
    "NAdam 1": (1.5462405370206511, 7.080110813755004),
    "RAdam 0": (1.549004625597919, 7.084608556038141),
    "RAdam 1": (1.5483018625825724, 7.077296693334066),
    "ASGD 0": (1.519330117286704, 6.936712658737803),
    "ASGD 1": (1.4979652187945143, 6.838971880741048),
    "Rprop 0": (1.5538206435029962, 7.2144934401626735),
    "Rprop 1": (1.5847206435029961, 2.1542434401626744),
    "Adafactor 0": (1.5533637011755301, 7.12800589843654),
    "Adafactor 1": (0.7728420352375774, 2.2802306582304035),
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
    if dtype == "complex64" and name in REAL_ONLY:
        with pytest.raises(RuntimeError, match="does not support complex parameters"):
            stepped(convcore, name, options, dtype)
        return
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
    np.testing.assert_allclose(first_step("Adamax", lr=0.1), -0.1 * signs, 1e-6)
    np.testing.assert_allclose(first_step("RAdam", lr=0.1), [-0.05, -0.3], 1e-6)
    np.testing.assert_allclose(first_step("Rprop", lr=0.1), -0.1 * signs, 1e-6)
    np.testing.assert_allclose(first_step("ASGD", lr=0.1, lambd=0), [-0.05, -0.3], 1e-6)
    small = np.sqrt(1e-6 / (0.1 * np.array([0.25, 9]) + 1e-6)) * [0.5, 3]
    np.testing.assert_allclose(first_step("Adadelta"), -small, 1e-6)
    rms = np.sqrt(2.5)
    np.testing.assert_allclose(first_step("Adafactor", lr=0.1), -0.1 * rms * signs, 1e-6)


@pytest.mark.parametrize(
    ("name", "options"), [(n, o) for n, cases in (CASES | FUSED).items() for o in cases]
)
def test_recorded_steps_are_the_same_and_differentiable(name, options):
    if name in ("Adafactor",):  # it has no such option, as in PyTorch
        with pytest.raises(TypeError):
            getattr(optim, name)([convcore.ones(1)], differentiable=True)
        return
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
    "betas": lambda lib, p: lib.optim.Adamax(p, betas=(0.5, 1.0)),
    "momentum_decay": lambda lib, p: lib.optim.NAdam(p, momentum_decay=-1),
    "eps": lambda lib, p: lib.optim.RAdam(p, eps=-1),
    "weight_decay": lambda lib, p: lib.optim.ASGD(p, weight_decay=-1),
    "etas": lambda lib, p: lib.optim.Rprop(p, etas=(1.5, 1.2)),
    "beta2_decay": lambda lib, p: lib.optim.Adafactor(p, beta2_decay=1),
    "epsilon1": lambda lib, p: lib.optim.Adafactor(p, eps=(-1, 1)),
    "d": lambda lib, p: lib.optim.Adafactor(p, d=0.5),
    "vector": lambda lib, p: lib.optim.Muon(p),
    "adjust": lambda lib, p: lib.optim.Muon(p, adjust_lr_fn="x"),
    "momentum": lambda lib, p: lib.optim.Muon(p, momentum=-1),
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


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_bad_options_are_refused(make):
    with pytest.raises((ValueError, RuntimeError)):
        make(convcore, [convcore.ones(2, requires_grad=True)])


@pytest.mark.parametrize("name", [*CASES, *FUSED, "LBFGS", "Muon"])
def test_learning_rate_that_is_no_number_is_refused(name):
    with pytest.raises(TypeError, match="lr must be a number"):
        getattr(optim, name)([convcore.ones(2, 2, requires_grad=True)], lr="x")


def test_sparse_adam_says_that_gradients_are_dense():
    with pytest.raises(NotImplementedError, match="use Adam"):
        optim.SparseAdam([convcore.ones(1, requires_grad=True)])


@pytest.mark.parametrize("nesterov", [False, True])
def test_muon_steps_along_the_orthogonal_part_of_the_momentum(rng, nesterov):
    for shape in ((3, 7), (7, 3)):
        start, grad = rng.standard_normal((2, *shape))
        parameter = convcore.from_numpy(start.copy()).requires_grad_()
        parameter.grad = convcore.from_numpy(grad)
        optimizer = optim.Muon([parameter], lr=0.1, weight_decay=0, nesterov=nesterov)
        optimizer.step()
        scale = 0.1 * max(1, shape[0] / shape[1]) ** 0.5
        move = (start - parameter.detach().numpy()) / scale
        left, _, right = np.linalg.svd(grad, full_matrices=False)
        inside = left.T @ move @ right.T  # diagonal if the singular vectors are the gradient's
        assert np.abs(inside - np.diag(np.diag(inside))).max() < 1e-8
        assert ((np.diag(inside) > 0.6) & (np.diag(inside) < 1.3)).all()


def test_muon_is_pytorchs_up_to_its_rounding(torch):
    results = []
    for library in (convcore, torch):
        rng = np.random.default_rng(0)
        parameter = library.from_numpy(rng.standard_normal((4, 6))).requires_grad_()
        optimizer = library.optim.Muon([parameter], lr=0.1, adjust_lr_fn="match_rms_adamw")
        for _ in range(3):
            parameter.grad = library.from_numpy(rng.standard_normal((4, 6)))
            optimizer.step()
        results.append(parameter.detach().numpy())
        assert list(optimizer.state[parameter]) == ["momentum_buffer"]
    np.testing.assert_allclose(*results, atol=0.01)


def test_muon_is_pytorchs_exactly_where_that_does_not_round(torch, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda self: self)
    for shape in ((4, 6), (6, 4)):
        results = []
        for library in (convcore, torch):
            rng = np.random.default_rng(0)
            parameter = library.from_numpy(rng.standard_normal(shape)).requires_grad_()
            optimizer = library.optim.Muon([parameter], lr=0.1)
            for _ in range(4):
                parameter.grad = library.from_numpy(rng.standard_normal(shape))
                optimizer.step()
            results.append(parameter.detach().numpy())
        np.testing.assert_allclose(*results, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_optimizers_can_be_pickled(name):
    _, optimizer = stepped(convcore, name, {})
    copied = pickle.loads(pickle.dumps(optimizer))
    assert repr(copied) == repr(optimizer)
    assert values(copied).keys() == values(optimizer).keys()
