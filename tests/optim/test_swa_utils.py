"""Averaged models and the statistics of their normalization: PyTorch's numbers, states, errors."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore import nn
from convcore.optim import swa_utils


def net(library):
    rng = np.random.default_rng(0)
    model = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.BatchNorm1d(3))
    for parameter in model.parameters():
        parameter.data = library.from_numpy(rng.random(tuple(parameter.shape), np.float32))
    return model


def averaged(library, rounds=4, **options):
    rng = np.random.default_rng(1)
    model = net(library)
    result = library.optim.swa_utils.AveragedModel(model, **options)
    for _ in range(rounds):
        for parameter in model.parameters():
            parameter.data = library.from_numpy(rng.random(tuple(parameter.shape), np.float32))
        model(library.from_numpy(rng.random((5, 2), np.float32)))
        result.update_parameters(model)
    return {name: value.numpy() for name, value in result.state_dict().items()}


OPTIONS = {
    "mean": lambda s: {},
    "mean, one": lambda s: {"avg_fn": s.get_swa_avg_fn()},
    "ema": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.9)},
    "ema, one": lambda s: {"avg_fn": s.get_ema_avg_fn(0.8)},
    "buffers": lambda s: {"use_buffers": True},
    "ema with buffers": lambda s: {
        "multi_avg_fn": s.get_ema_multi_avg_fn(0.9),
        "use_buffers": True,
    },
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_average_is_pytorchs(torch, options):
    from torch.optim import swa_utils as theirs

    ours, expected = averaged(convcore, **options(swa_utils)), averaged(torch, **options(theirs))
    assert list(ours) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-5, err_msg=name)


def test_exponential_averages_are_their_formula():
    # From 1 to 2 and 6 by a decay of 0.75: 0.75 + 0.25 * 2 = 1.25, then 0.9375 + 0.25 * 6.
    for options in (
        {"avg_fn": swa_utils.get_ema_avg_fn(0.75)},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)},
    ):
        model = nn.Linear(1, 1, bias=False)
        average = swa_utils.AveragedModel(model, **options)
        for value in (1.0, 2.0, 6.0):
            nn.init.constant_(model.weight, value)
            average.update_parameters(model)
        assert average.module.weight.item() == 2.4375
        assert average.n_averaged.item() == 3


def test_average_is_the_mean_of_all():
    model = nn.Linear(1, 1, bias=False)
    average = swa_utils.AveragedModel(model)
    for value in (1.0, 2.0, 6.0):
        nn.init.constant_(model.weight, value)
        average.update_parameters(model)
    assert average.module.weight.item() == pytest.approx(3.0)
    assert average(convcore.ones(1, 1)).item() == pytest.approx(3.0)
    assert model.weight.item() == 6


def test_statistics_are_those_of_the_whole_data(rng):
    model = net(convcore)
    data = [convcore.from_numpy(rng.random((4, 2), np.float32)) for _ in range(3)]
    model.eval()
    swa_utils.update_bn([(batch, "label") for batch in data], model)
    assert not model.training
    assert model[1].momentum == 0.1
    outputs = np.stack([model[0](batch).detach().numpy() for batch in data])
    np.testing.assert_allclose(model[1].running_mean.numpy(), outputs.mean((0, 1)), rtol=1e-5)
    variances = outputs.var(1, ddof=1).mean(0)
    np.testing.assert_allclose(model[1].running_var.numpy(), variances, rtol=1e-5)


BAD = {
    "decay": lambda lib, o: lib.optim.swa_utils.get_ema_avg_fn(2.0),
    "decay of many": lambda lib, o: lib.optim.swa_utils.get_ema_multi_avg_fn(-1.0),
    "strategy": lambda lib, o: lib.optim.swa_utils.SWALR(o, 0.1, anneal_strategy="x"),
    "whole epochs": lambda lib, o: lib.optim.swa_utils.SWALR(o, 0.1, anneal_epochs=1.5),
    "epochs": lambda lib, o: lib.optim.swa_utils.SWALR(o, 0.1, anneal_epochs=-1),
    "rates": lambda lib, o: lib.optim.swa_utils.SWALR(o, [0.1, 0.2]),
    "both": lambda lib, o: lib.optim.swa_utils.AveragedModel(net(lib), None, min, min),
    "T_0": lambda lib, o: lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 0),
    "T_mult": lambda lib, o: lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 0.5),
    "eta_min": lambda lib, o: lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 1, "x"),
    "epoch": lambda lib, o: lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3).step(-1),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_errors_are_pytorchs(torch, make):
    told = []
    for library in (convcore, torch):
        optimizer = library.optim.SGD([library.ones(1, requires_grad=True)], momentum=0.5)
        with pytest.raises((ValueError, AssertionError)) as caught:
            make(library, optimizer)
        told.append((caught.type, str(caught.value)))
    assert told[0] == told[1]


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_bad_options_are_refused(make):
    optimizer = convcore.optim.SGD([convcore.ones(1, requires_grad=True)], momentum=0.5)
    with pytest.raises((ValueError, AssertionError)):
        make(convcore, optimizer)


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_restarts_can_be_set_within_an_epoch(torch, factor):
    seen = []
    for library in (convcore, torch):
        optimizer = library.optim.SGD([library.ones(1, requires_grad=True)], lr=0.5)
        schedule = library.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, factor)
        for epoch in (0, 0.5, 1.75, 2, 3.25, 7.5, 20.1):
            schedule.step(epoch)
            seen.append(schedule.get_last_lr()[0])
    assert seen[:7] == pytest.approx(seen[7:])
