"""How weights start: PyTorch's numbers after the same seed, and the distributions behind them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import same_error

import convcore
from convcore import nn
from convcore.nn import init


def drawn(torch, seed, make):
    """What ``make(library)`` returns in both libraries after the same manual_seed, as arrays."""
    results = []
    for library in (torch, convcore):
        library.manual_seed(seed)
        results.append([tensor.detach().numpy() for tensor in make(library)])
    return results


LAYERS = {
    "Conv1d": lambda nn: nn.Conv1d(2, 5, 3),
    "Conv2d": lambda nn: nn.Conv2d(3, 8, (3, 2)),
    "Conv2d grouped": lambda nn: nn.Conv2d(4, 8, 3, groups=2, bias=False),
    "Conv2d large": lambda nn: nn.Conv2d(64, 128, 3),
    "Conv3d": lambda nn: nn.Conv3d(2, 2, 2),
    "ConvTranspose2d": lambda nn: nn.ConvTranspose2d(4, 6, 3, groups=2),
    "Linear": lambda nn: nn.Linear(10, 7),
    "Linear of one": lambda nn: nn.Linear(1, 1),
    "a net": lambda nn: nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.ReLU(), nn.PReLU(3), nn.Flatten(), nn.Linear(20, 10)
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_start_with_pytorchs_numbers(torch, name, seed):
    theirs, ours = drawn(torch, seed, lambda library: LAYERS[name](library.nn).parameters())
    for expected, got in zip(theirs, ours, strict=True):
        assert got.dtype == expected.dtype and np.array_equal(got, expected)


def test_layers_start_within_their_bound(seed):
    convcore.manual_seed(seed)
    layer = nn.Conv2d(8, 40, 3, groups=2)
    bound = 1 / math.sqrt(4 * 9)
    for parameter in layer.parameters():
        values = parameter.detach().numpy()
        assert np.abs(values).max() <= bound * (1 + 1e-6)
    values = layer.weight.detach().numpy()
    assert np.abs(values).max() > 0.98 * bound
    assert values.mean() == pytest.approx(0, abs=0.1 * bound)
    assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_reset_parameters_draws_anew():
    layer = nn.Linear(3, 2)
    before, memory = layer.weight.tolist(), layer.weight.detach().numpy()
    layer.reset_parameters()
    assert layer.weight.tolist() != before and layer.weight.detach().numpy() is memory


SHAPE = (6, 4, 3, 2)
DRAWING = {
    "uniform_": lambda init, t: init.uniform_(t, -2, 3),
    "xavier_uniform_": lambda init, t: init.xavier_uniform_(t, 1.5),
    "kaiming_uniform_": lambda init, t: init.kaiming_uniform_(t, 0.1),
    "kaiming_uniform_ fan_out": lambda init, t: init.kaiming_uniform_(t, 0, "fan_out", "relu"),
    "normal_": lambda init, t: init.normal_(t, 1, 2),
    "xavier_normal_": lambda init, t: init.xavier_normal_(t),
    "kaiming_normal_": lambda init, t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"),
    "trunc_normal_": lambda init, t: init.trunc_normal_(t, 0.5, 1, -1, 1.5),
    "trunc_normal_ narrow": lambda init, t: init.trunc_normal_(t, std=0.02),
}


@pytest.mark.parametrize("name", DRAWING)
def test_drawn_numbers_are_pytorchs(torch, name, seed):
    def make(library):
        tensor = library.empty(*SHAPE)
        assert DRAWING[name](library.nn.init, tensor) is tensor
        return [tensor]

    (expected,), (got,) = drawn(torch, seed, make)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


FILLED = {
    "constant_": lambda init, t: init.constant_(t, 2.5),
    "ones_": lambda init, t: init.ones_(t),
    "zeros_": lambda init, t: init.zeros_(t),
    "eye_": lambda init, t: init.eye_(t),
    "dirac_": lambda init, t: init.dirac_(t),
    "dirac_ grouped": lambda init, t: init.dirac_(t, 2),
}


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3), (2, 4, 3, 2), (4, 1, 3, 4, 5)])
@pytest.mark.parametrize("name", FILLED)
def test_filled_values_are_pytorchs(torch, name, shape):
    rank_matters = name not in ("constant_", "ones_", "zeros_")
    if rank_matters and (name == "eye_") != (len(shape) == 2):
        with pytest.raises(ValueError, match="Only tensors with"):
            FILLED[name](init, convcore.empty(*shape))
        return
    theirs, ours = torch.ones(shape), convcore.ones(shape)
    FILLED[name](torch.nn.init, theirs)
    assert FILLED[name](init, ours) is ours
    assert ours.tolist() == theirs.tolist()


def test_convolution_started_with_dirac_passes_its_input_on(seed):
    layer = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)
    init.dirac_(layer.weight, groups=2)
    x = convcore.randn(1, 4, 5, 5)
    assert layer(x).tolist() == x.tolist()


@pytest.mark.parametrize("name", [*DRAWING, *FILLED])
def test_parameters_stay_leaves_and_the_change_is_noticed(name):
    shape = (6, 4) if name == "eye_" else SHAPE
    parameter = nn.Parameter(convcore.ones(*shape))
    version = parameter._version
    assert {**DRAWING, **FILLED}[name](init, parameter) is parameter
    assert parameter.is_leaf and parameter.requires_grad and parameter._version > version


def test_truncated_normal_numbers_are_within_and_spread_right(seed):
    convcore.manual_seed(seed)
    for mean, std, a, b in ((0, 1, -2, 2), (0, 1, 1.5, 2), (0, 1, -2, -1.5), (3, 2, 2.9, 3)):
        values = init.trunc_normal_(convcore.empty(20000), mean, std, a, b).double().numpy()
        assert values.min() >= np.float32(a) and values.max() <= np.float32(b)
        grid = np.linspace(a, b, 2001)
        density = np.exp(-(((grid - mean) / std) ** 2) / 2)
        assert values.mean() == pytest.approx((grid * density).sum() / density.sum(), abs=0.03)


def test_truncation_far_from_the_mean_warns():
    with pytest.warns(UserWarning, match="more than 2 std from"):
        values = init.trunc_normal_(convcore.empty(10), 0, 1, 3, 4)
    assert all(3 <= value <= 4 for value in values.tolist())


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_kaiming_keeps_the_variance_of_relu_layers(kind, seed):
    convcore.manual_seed(seed)
    fill = getattr(init, f"kaiming_{kind}_")
    weight = fill(convcore.empty(200, 100, 3, 3), nonlinearity="relu").numpy()
    assert weight.std() == pytest.approx(math.sqrt(2 / 900), rel=0.02)


def test_generator_is_drawn_from():
    for name in ("uniform_", "normal_", "xavier_uniform_", "kaiming_normal_", "trunc_normal_"):
        values = []
        for _ in range(2):
            generator = convcore.Generator().manual_seed(3)
            values.append(getattr(init, name)(convcore.empty(3, 3), generator=generator).tolist())
        assert values[0] == values[1]


@pytest.mark.parametrize(
    "arguments",
    [
        *[(name,) for name in ("linear", "conv_transpose2d", "sigmoid", "tanh", "relu", "selu")],
        *[("leaky_relu",), ("leaky_relu", 0.3), ("leaky_relu", 2)],
    ],
)
def test_gains_are_pytorchs(torch, arguments):
    assert init.calculate_gain(*arguments) == torch.nn.init.calculate_gain(*arguments)


ERRONEOUS = [
    lambda init, empty: init.calculate_gain("swish"),
    lambda init, empty: init.calculate_gain("leaky_relu", True),
    lambda init, empty: init.calculate_gain("leaky_relu", "x"),
    lambda init, empty: init.kaiming_uniform_(empty(3)),
    lambda init, empty: init.xavier_normal_(empty(3)),
    lambda init, empty: init.kaiming_uniform_(empty(3, 3), mode="fan"),
    lambda init, empty: init.eye_(empty(3)),
    lambda init, empty: init.dirac_(empty(3, 3)),
    lambda init, empty: init.dirac_(empty(3, 3, 3), 2),
]


@pytest.mark.parametrize("make", ERRONEOUS)
def test_errors_are_those_of_pytorch(torch, make):
    same_error(torch, lambda lib: make(lib.nn.init, lib.empty))


def test_empty_weights_are_left_with_a_warning():
    for fill in (init.kaiming_uniform_, init.kaiming_normal_):
        with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
            fill(convcore.empty(0, 3))


def test_fans_count_inputs_and_outputs():
    assert init._calculate_fan_in_and_fan_out(convcore.empty(5, 3, 2, 2)) == (12, 20)
    assert init._calculate_fan_in_and_fan_out(convcore.empty(5, 3)) == (3, 5)
