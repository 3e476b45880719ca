"""Schedules of step sizes: PyTorch's numbers, states, warnings and errors."""

from __future__ import annotations

import copy
import warnings

import pytest
from against_torch import same_error

import convcore
from convcore import optim
from convcore.optim import lr_scheduler


def optimizer_of(library, lrs=(0.1, 0.5), **options):
    """An optimizer with a group for each step size."""
    groups = [{"params": [library.ones(1, requires_grad=True)], "lr": lr} for lr in lrs]
    return library.optim.SGD(groups, momentum=0.9, **options)


def warm_up(lib, o):
    s = lib.optim.lr_scheduler
    parts = [s.LinearLR(o, 0.1, total_iters=3), s.CosineAnnealingLR(o, 5), s.StepLR(o, 2, 0.5)]
    return s.SequentialLR(o, parts, [3, 9])


SCHEDULES = {
    "step": lambda lib, o: lib.optim.lr_scheduler.StepLR(o, 3, gamma=0.3),
    "milestones": lambda lib, o: lib.optim.lr_scheduler.MultiStepLR(o, [2, 5, 5, 9], 0.5),
    "exponential": lambda lib, o: lib.optim.lr_scheduler.ExponentialLR(o, 0.9),
    "constant": lambda lib, o: lib.optim.lr_scheduler.ConstantLR(o, 0.25, 4),
    "linear": lambda lib, o: lib.optim.lr_scheduler.LinearLR(o, 0.2, 0.7, 6),
    "cosine": lambda lib, o: lib.optim.lr_scheduler.CosineAnnealingLR(o, 4, eta_min=0.01),
    "lambda": lambda lib, o: lib.optim.lr_scheduler.LambdaLR(
        o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]
    ),
    "one cycle": lambda lib, o: lib.optim.lr_scheduler.OneCycleLR(o, [0.3, 0.2], total_steps=17),
    "one cycle, linear": lambda lib, o: lib.optim.lr_scheduler.OneCycleLR(
        o, 1.0, epochs=4, steps_per_epoch=5, anneal_strategy="linear", three_phase=True
    ),
    "multiplicative": lambda lib, o: lib.optim.lr_scheduler.MultiplicativeLR(
        o, [lambda e: 0.9, lambda e: 1 / (e + 1)]
    ),
    "polynomial": lambda lib, o: lib.optim.lr_scheduler.PolynomialLR(o, 6, power=2.0),
    "restarts": lambda lib, o: lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2, 0.01),
    "averaging": lambda lib, o: lib.optim.swa_utils.SWALR(o, [0.05, 0.2], 4),
    "averaging, linear": lambda lib, o: lib.optim.swa_utils.SWALR(o, 0.05, 3, "linear"),
    "averaging at once": lambda lib, o: lib.optim.swa_utils.SWALR(o, 0.05, 0),
    "warm-up": warm_up,
    "chained": lambda lib, o: lib.optim.lr_scheduler.ChainedScheduler(
        [lib.optim.lr_scheduler.ConstantLR(o, 0.5, 3), lib.optim.lr_scheduler.ExponentialLR(o, 0.8)]
    ),
}


def followed(library, make, epochs=15):
    """Step sizes and momenta of each epoch."""
    o = optimizer_of(library)
    schedule = make(library, o)
    seen = []
    for _ in range(epochs):
        seen.append([(group["lr"], group["momentum"]) for group in o.param_groups])
        assert schedule.get_last_lr() == [group["lr"] for group in o.param_groups]
        o.step()
        schedule.step()
    return seen


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_has_the_numbers_of_pytorch(torch, name):
    ours, theirs = (followed(library, SCHEDULES[name]) for library in (convcore, torch))
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine, other, strict=True):
            assert a == pytest.approx(b, rel=1e-13)


@pytest.mark.parametrize("name", SCHEDULES)
def test_state_has_what_pytorchs_has(torch, name):
    states = []
    for library in (convcore, torch):
        o = optimizer_of(library)
        schedule = SCHEDULES[name](library, o)
        for _ in range(4):
            o.step()
            schedule.step()
        states.append(schedule.state_dict())
    assert same_numbers(*states)


def same_numbers(ours, theirs):
    """Compare states, numbers in them up to rounding."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        return all(same_numbers(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        return all(same_numbers(a, b) for a, b in zip(ours, theirs, strict=True))
    assert ours == (pytest.approx(theirs, rel=1e-13) if isinstance(theirs, float) else theirs)
    return True


@pytest.mark.parametrize("name", SCHEDULES)
def test_loaded_state_goes_on_where_it_was_saved(name):
    whole = followed(convcore, SCHEDULES[name], 12)
    o = optimizer_of(convcore)
    schedule = SCHEDULES[name](convcore, o)
    for _ in range(6):
        o.step()
        schedule.step()
    saved = copy.deepcopy((o.state_dict(), schedule.state_dict()))
    o = optimizer_of(convcore)
    schedule = SCHEDULES[name](convcore, o)
    o.load_state_dict(saved[0])
    schedule.load_state_dict(saved[1])
    for expected in whole[6:]:
        assert [(group["lr"], group["momentum"]) for group in o.param_groups] == expected
        o.step()
        schedule.step()


@pytest.mark.parametrize("name", ["step", "exponential", "cosine", "linear", "milestones"])
def test_resumed_schedule_goes_on_at_its_epoch(torch, name):
    makers = {
        "step": lambda s, o, last: s.StepLR(o, 3, last_epoch=last),
        "exponential": lambda s, o, last: s.ExponentialLR(o, 0.9, last_epoch=last),
        "cosine": lambda s, o, last: s.CosineAnnealingLR(o, 10, last_epoch=last),
        "linear": lambda s, o, last: s.LinearLR(o, last_epoch=last),
        "milestones": lambda s, o, last: s.MultiStepLR(o, [6], last_epoch=last),
    }
    seen = []
    for library in (convcore, torch):
        o = optimizer_of(library)
        for group in o.param_groups:
            group["initial_lr"] = 2 * group["lr"]
        schedule = makers[name](library.optim.lr_scheduler, o, 4)
        lrs = [schedule.get_last_lr()]
        for _ in range(3):
            o.step()
            schedule.step()
            lrs.append(schedule.get_last_lr())
        seen.append([lr for pair in lrs for lr in pair])
    assert seen[0] == pytest.approx(seen[1], rel=1e-13)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateau_is_seen_when_pytorch_sees_it(torch, rng, mode, threshold_mode):
    losses = rng.standard_normal(60).cumsum() * (1 if mode == "max" else -1)
    seen = []
    for library in (convcore, torch):
        o = optimizer_of(library)
        schedule = library.optim.lr_scheduler.ReduceLROnPlateau(
            o,
            mode,
            patience=2,
            cooldown=1,
            threshold=0.1,
            threshold_mode=threshold_mode,
            min_lr=[1e-3, 1e-9],
        )
        lrs = []
        for loss in losses:
            schedule.step(loss)
            lrs.append(schedule.get_last_lr())
        seen.append((lrs, schedule.state_dict()))
    assert seen[0] == seen[1]
    assert seen[0][0][-1] != seen[0][0][0]


def test_step_size_in_a_tensor_stays_the_same_tensor():
    o = optim.SGD([convcore.ones(1, requires_grad=True)], lr=convcore.tensor(1.0))
    lr = o.param_groups[0]["lr"]
    schedule = lr_scheduler.ExponentialLR(o, 0.5)
    o.step()
    schedule.step()
    assert lr.item() == 0.5 and schedule.base_lrs[0].item() == 1.0


# Warnings and errors


def test_schedule_before_the_first_step_warns(torch):
    for library in (convcore, torch):
        o = optimizer_of(library)
        schedule = library.optim.lr_scheduler.StepLR(o, 1)
        with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler\.step\(\)` before"):
            schedule.step()


def test_overridden_step_warns():
    o = optimizer_of(convcore)
    schedule = lr_scheduler.StepLR(o, 1)
    o.step = lambda: None
    with pytest.warns(UserWarning, match=r"`optimizer\.step\(\)` has been overridden"):
        schedule.step()


def test_step_overridden_before_does_not_warn():
    o = optimizer_of(convcore)
    o.step = lambda: None
    schedule = lr_scheduler.StepLR(o, 1)
    o.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_epoch_given_warns_and_takes_the_closed_form(torch):
    seen = []
    for library in (convcore, torch):
        o = optimizer_of(library)
        schedule = library.optim.lr_scheduler.CosineAnnealingLR(o, 10)
        o.step()
        with pytest.warns(UserWarning, match="The epoch parameter in") as caught:
            schedule.step(7)
        assert str(caught[0].message) == library.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING
        seen.append(schedule.get_last_lr())
    assert seen[0] == pytest.approx(seen[1], rel=1e-13)


def test_restarts_go_on_from_an_epoch_set_far_ahead():
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer_of(convcore), T_0=4)
    schedule.optimizer.step()
    schedule.T_cur = 9
    schedule.step()
    assert schedule.T_cur == 2  # not 6, which is past the period


def test_get_lr_called_alone_warns():
    schedule = lr_scheduler.StepLR(optimizer_of(convcore), 1)
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


@pytest.mark.parametrize(
    "make",
    [
        lambda s, o: s.StepLR(3, 1),
        lambda s, o: s.LambdaLR(o, [lambda e: 1]),
        lambda s, o: s.ConstantLR(o, 1.5),
        lambda s, o: s.LinearLR(o, 0.0),
        lambda s, o: s.LinearLR(o, 0.5, 1.5),
        lambda s, o: s.OneCycleLR(o, 0.1),
        lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0),
        lambda s, o: s.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=-1),
        lambda s, o: s.OneCycleLR(o, 0.1, total_steps=5, pct_start=2.0),
        lambda s, o: s.OneCycleLR(o, 0.1, total_steps=5, anneal_strategy="steep"),
        lambda s, o: s.OneCycleLR(o, [0.1], total_steps=5),
        lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
        lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
        lambda s, o: s.ReduceLROnPlateau(o, "least"),
        lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="share"),
        lambda s, o: s.SequentialLR(o, [], []),
        lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]),
        lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
        lambda s, o: s.SequentialLR(o, [3], []),
        lambda s, o: s.ChainedScheduler([]),
    ],
)
def test_errors_are_those_of_pytorch(torch, make):
    same_error(torch, lambda lib: make(lib.optim.lr_scheduler, optimizer_of(lib)))


NUMBERS = {
    "ConstantLR": {"factor": 0.5, "total_iters": 3},
    "CosineAnnealingLR": {"T_max": 3, "eta_min": 0.1},
    "ExponentialLR": {"gamma": 0.5},
    "LinearLR": {"start_factor": 0.5, "end_factor": 1.0, "total_iters": 3},
    "MultiStepLR": {"milestones": [2], "gamma": 0.5},
    "OneCycleLR": {
        **{"max_lr": 0.5, "total_steps": 5, "base_momentum": 0.5, "max_momentum": 0.9},
        **{"div_factor": 5.0, "final_div_factor": 10.0},
    },
    "ReduceLROnPlateau": {
        **{"factor": 0.5, "patience": 3, "threshold": 0.1, "cooldown": 3, "min_lr": 0.1},
        "eps": 0.1,
    },
    "StepLR": {"step_size": 2, "gamma": 0.5},
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["x", None, ["x", "x"]], ids=str)
def test_options_that_are_no_numbers_are_named_and_change_nothing(name, value):
    for option in NUMBERS[name].keys() - {"total_steps"}:
        o = optimizer_of(convcore)
        before = [dict(group) for group in o.param_groups]
        with pytest.raises(TypeError, match=rf"{option} must be .*, got (None|.*x)"):
            getattr(lr_scheduler, name)(o, **NUMBERS[name] | {option: value})
        assert [dict(group) for group in o.param_groups] == before


def test_one_cycle_that_is_refused_changes_nothing():
    o = optimizer_of(convcore)
    before = [dict(group) for group in o.param_groups]
    with pytest.raises(ZeroDivisionError):
        lr_scheduler.OneCycleLR(o, 0.1, total_steps=5, final_div_factor=0)
    assert [dict(group) for group in o.param_groups] == before


def test_factors_of_no_function_are_refused():
    o = optimizer_of(convcore)
    with pytest.raises(TypeError, match="lr_lambda should be a function, but got float"):
        lr_scheduler.LambdaLR(o, 0.5)
    assert "initial_lr" not in o.param_groups[0]
    with pytest.raises(TypeError, match="is not an Optimizer"):
        lr_scheduler.LambdaLR(3, lambda epoch: 1.0)


def test_resuming_without_a_beginning_is_refused():
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(optimizer_of(convcore), 1, last_epoch=3)


def test_more_steps_than_there_were_to_be_are_refused():
    o = optimizer_of(convcore)
    schedule = lr_scheduler.OneCycleLR(o, 0.1, total_steps=2)
    o.step()
    schedule.step()
    schedule.step()
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        schedule.step()


def test_schedules_of_different_optimizers_cannot_be_combined():
    first, second = optimizer_of(convcore), optimizer_of(convcore)
    parts = [lr_scheduler.StepLR(first, 1), lr_scheduler.StepLR(second, 1)]
    with pytest.raises(ValueError, match="belong to the same optimizer"):
        lr_scheduler.SequentialLR(first, parts, [1])
