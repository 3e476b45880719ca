"""relu and its relatives beside PyTorch's: values, gradients, node names."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree
from call_tests import errors_agree
from elements import ACTIVATIONS, IDS, REAL, SEEDS, SHAPES, TOLERANCE, drawn
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore import nn
from convcore.autograd import gradcheck, gradgradcheck
from convcore.nn import functional as F


@pytest.mark.parametrize(("name", "arguments", "has_inplace"), ACTIVATIONS, ids=IDS)
@examples(8)
@given(st.sampled_from(REAL), SHAPES, SEEDS)
def test_activation_agrees_with_pytorch(torch, name, arguments, has_inplace, dtype, shape, seed):
    x = drawn(np.random.default_rng(seed), shape, dtype, -4, 4)

    def function(m, x):
        return getattr(m.nn.functional, name)(x, **arguments)

    if name == "hardsigmoid":  # which PyTorch cannot differentiate twice
        with torch.no_grad(), convcore.no_grad():
            agree(torch, function, x, rtol=TOLERANCE[dtype])
        return
    # PyTorch's celu has its 1 / alpha in float32.
    rtol = max(TOLERANCE[dtype], 1e-6)
    agree(torch, function, x, seed=seed, nodes=1, rtol=rtol)


@pytest.mark.parametrize(("name", "arguments", "has_inplace"), ACTIVATIONS, ids=IDS)
def test_activation_agrees_with_pytorch_at_its_corners(torch, name, arguments, has_inplace):
    corners = [0.0, -0.0, 3, -3, 6, 1.2, -0.7, 0.6, -0.6, 0.3, 10, -10, 100, -100, 1000, -1000]
    grads = []
    for lib in (convcore, torch):
        x = lib.tensor([*corners, np.inf, -np.inf, np.nan], dtype=lib.float64, requires_grad=True)
        y = getattr(lib.nn.functional, name)(x, **arguments)
        y.sum().backward()
        grads.append((y.detach().numpy(), x.grad.numpy()))
    finite = slice(None, len(corners))
    np.testing.assert_allclose(grads[0][0], grads[1][0], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(grads[0][1][finite], grads[1][1][finite], rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize(("name", "arguments", "has_inplace"), ACTIVATIONS, ids=IDS)
def test_activation_gradients_are_those_of_finite_differences(rng, name, arguments, has_inplace):
    x = convcore.from_numpy(rng.uniform(-4, 4, (2, 3))).requires_grad_()
    function = lambda x: getattr(F, name)(x, **arguments)  # noqa: E731
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [row[:2] for row in ACTIVATIONS if row[2]],
    ids=[i for i, row in zip(IDS, ACTIVATIONS, strict=True) if row[2]],
)
def test_activation_in_place_agrees_with_pytorch(torch, rng, name, arguments):
    def function(m, x):
        y = x * 1
        result = getattr(m.nn.functional, name)(y, **arguments, inplace=True)
        assert result is y
        assert y._version == 1
        return y

    x = rng.uniform(-4, 4, (2, 3))
    if name == "hardsigmoid":
        with torch.no_grad(), convcore.no_grad():
            agree(torch, function, x)
    else:
        agree(torch, function, x, nodes=2 * (name == "relu"), rtol=1e-6)


def test_activations_keep_channels_last(rng):
    array = np.ascontiguousarray(rng.normal(size=(2, 4, 5, 3))).transpose(0, 3, 1, 2)
    x = convcore.from_numpy(array).requires_grad_()
    for name, arguments, _ in ACTIVATIONS:
        y = getattr(F, name)(x, **arguments)
        (grad,) = convcore.autograd.grad(y, x, convcore.from_numpy(array))
        assert y.stride() == grad.stride() == x.stride(), name
        if name in ("softsign", "tanhshrink"):  # several nodes, which add up gradients
            continue
        (grad,) = convcore.autograd.grad(getattr(F, name)(x, **arguments).sum(), x)
        assert grad.stride() == x.stride(), name
    for y in (F.softmax(x, 1), F.log_softmax(x, 1), F.dropout(x)):
        (grad,) = convcore.autograd.grad(y, x, convcore.from_numpy(array))
        assert y.stride() == grad.stride() == x.stride()


def test_relu_saves_its_result_alone():
    x = convcore.tensor([-1.0, 2.0], requires_grad=True)
    y = convcore.relu(x)
    assert [name for name in dir(y.grad_fn) if name.startswith("_saved_")] == ["_saved_result"]
    assert y.grad_fn._saved_result.data_ptr() == y.data_ptr()


@pytest.mark.parametrize(("name", "arguments", "has_inplace"), ACTIVATIONS, ids=IDS)
def test_results_may_be_changed_where_pytorchs_may(torch, rng, name, arguments, has_inplace):
    """Nets add a shortcut in place."""
    array = rng.standard_normal((2, 3))

    def outcome(lib):
        x = lib.from_numpy(array.copy()).requires_grad_()
        y = getattr(lib.nn.functional, name)(x, **arguments)
        y += x.detach()
        try:
            y.sum().backward()
        except RuntimeError as error:
            return "modified by an inplace operation" in str(error)
        return x.grad.numpy()

    np.testing.assert_allclose(outcome(convcore), outcome(torch), rtol=1e-6)


def test_relu_in_place_works_in_the_same_memory():
    x = convcore.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    address = y.data_ptr()
    convcore.relu_(y)
    assert y.data_ptr() == address
    y.backward(convcore.tensor([np.inf, np.inf]))
    assert x.grad.tolist() == [0, np.inf]


def test_gradient_that_is_infinite_does_not_pass_a_closed_relu():
    x = convcore.tensor([-1.0, 0.0, 2.0, np.nan], requires_grad=True)
    convcore.relu(x).backward(convcore.tensor([np.inf, np.nan, -np.inf, 3.0]))
    assert x.grad.tolist() == [0, 0, -np.inf, 3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("again", [False, True])
def test_hardswish_of_nan_has_no_gradient_but_nan(dtype, again):
    x = convcore.tensor([np.nan, -4, 4, np.nan] * 20, dtype=getattr(convcore, dtype))
    x.requires_grad_()
    (grad,) = convcore.autograd.grad(F.hardswish(x).sum(), x, create_graph=again)
    np.testing.assert_array_equal(grad.detach().float().numpy(), [np.nan, 0, 1, np.nan] * 20)


# With weights, and directions


@examples(10)
@given(st.sampled_from([(4,), (2, 3), (2, 3, 4), (2, 3, 2, 2)]), st.booleans(), SEEDS)
def test_prelu_agrees_with_pytorch(torch, shape, shared, seed):
    rng = np.random.default_rng(seed)
    channels = shape[1] if len(shape) > 1 else 1
    weight = rng.uniform(-1, 1, 1 if shared else channels)
    x = rng.normal(size=shape)
    agree(torch, lambda m, x, w: m.nn.functional.prelu(x, w), x, weight, seed=seed, nodes=1)


def test_glu_agrees_with_pytorch(torch, rng):
    x = rng.normal(size=(2, 4, 6))
    for dim in (-1, 0, 1):
        agree(torch, lambda m, x: m.nn.functional.glu(x, dim), x)  # noqa: B023


# Numbers, and errors


NUMBERS = {
    "celu": ["alpha"],
    "elu": ["alpha"],
    "hardshrink": ["lambd"],
    "hardtanh": ["min_val", "max_val"],
    "leaky_relu": ["negative_slope"],
    "softplus": ["beta", "threshold"],
    "softshrink": ["lambd"],
    "threshold": ["threshold", "value"],
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["x", None, [1]])
def test_arguments_that_are_no_numbers_are_named(name, value):
    for argument in NUMBERS[name]:
        given = dict.fromkeys(NUMBERS[name], 0.5) | {argument: value}
        message = f"'{argument}' must be Number, not {type(value).__name__}"
        with pytest.raises(TypeError, match=message):
            getattr(F, name)(convcore.ones(2), **given)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_may_be_tensors_without_axes(name):
    numbers = {argument: 0.25 * (n + 1) for n, argument in enumerate(NUMBERS[name])}
    results = []
    for as_given in (float, convcore.tensor):
        given = {argument: as_given(value) for argument, value in numbers.items()}
        x = convcore.linspace(-2, 2, 9, requires_grad=True)
        convcore.manual_seed(0)
        y = getattr(F, name)(x, **given)
        y.sum().backward()
        results.append((y.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


def test_modules_name_the_number_that_is_none():
    for make in (nn.Dropout2d, nn.Hardtanh):
        with pytest.raises(TypeError, match=f"{make.__name__}.*must be Number, not str"):
            make("x")


ERRORS = {
    "relu of bools": lambda m: m.relu(m.tensor([True])),
    "gelu": lambda m: m.nn.functional.gelu(m.ones(2), approximate="x"),
    "glu": lambda m: m.nn.functional.glu(m.ones(3)),
    "hardtanh": lambda m: m.nn.functional.hardtanh(m.ones(2), 1, -1),
    "softshrink": lambda m: m.nn.functional.softshrink(m.ones(2), -1),
    "softshrink of float16": lambda m: m.nn.functional.softshrink(m.ones(2).half(), 1e6),
    "celu": lambda m: m.nn.functional.celu(m.ones(2), 0.0),
    "prelu": lambda m: m.nn.functional.prelu(m.ones(3, 5), m.ones(3)),
    "softmax's axis": lambda m: m.softmax(m.ones(2), 1),
    "relu_ of a leaf": lambda m: m.ones(2, requires_grad=True).relu_(),
}
test_errors_are_pytorchs = errors_agree(ERRORS)


# Many elements


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_relu_of_many_elements_is_that_of_few(torch, rng, dtype):
    array = rng.normal(size=(3, 4, 90, 80)).astype(dtype)
    array[0, 0, 0, :5] = np.nan, np.inf, -np.inf, 0.0, -0.0
    for layout in (array, array.transpose(0, 3, 1, 2), array[:, ::2]):
        ours, theirs = convcore.from_numpy(layout), torch.from_numpy(layout)
        np.testing.assert_array_equal(convcore.relu(ours).numpy(), torch.relu(theirs).numpy())
        in_place = convcore.from_numpy(layout.copy()).relu_()
        np.testing.assert_array_equal(in_place.numpy(), torch.relu(theirs).numpy())
        assert convcore.relu(ours).stride() == torch.relu(theirs).stride()


FLAT = {
    "relu": lambda F, x: F.relu(x),
    "leaky_relu": lambda F, x: F.leaky_relu(x, 0.2),
    "hardtanh": lambda F, x: F.hardtanh(x),
    "relu6": lambda F, x: F.relu6(x),
    "threshold": lambda F, x: F.threshold(x, 1.0, 0.5),
    "hardshrink": lambda F, x: F.hardshrink(x),
    "softshrink": lambda F, x: F.softshrink(x),
    "prelu": lambda F, x: F.prelu(x, x.detach()[:1].reshape(1)),
    "max_pool1d": lambda F, x: F.max_pool1d(x[None], 2),
    "max_pool2d": lambda F, x: F.max_pool2d(x.view(1, 2, 2), 2),
    "max_pool2d-indices": lambda F, x: F.max_pool2d(x.view(1, 2, 2), 2, return_indices=True)[0],
    "adaptive_max_pool2d": lambda F, x: F.adaptive_max_pool2d(x.view(1, 2, 2), 1),
}


@pytest.mark.parametrize("name", FLAT)
def test_second_derivatives_of_piecewise_linear_functions_are_zeros(lib, name):
    x = lib.tensor([-1.0, 0.25, 2.0, 7.0], dtype=lib.float64, requires_grad=True)
    y = FLAT[name](lib.nn.functional, x).sum()
    (slope,) = lib.autograd.grad(y, x, create_graph=True)
    assert slope.requires_grad
    (second,) = lib.autograd.grad(slope.sum(), x)
    assert second.tolist() == [0.0] * 4


@pytest.mark.parametrize("name", ["celu_", "elu_", "leaky_relu_"])
def test_a_negative_slope_in_place_has_no_backward(lib, name):
    function = getattr(lib.nn.functional, name)
    x = lib.tensor([-1.0, 2.0], requires_grad=True)
    assert function(x.detach().clone(), -2.0)[1] == 2
    with pytest.raises(RuntimeError, match="call out-of-place version"):
        function(x * 1, -2.0).sum().backward()
    function(x * 1, 2.0).sum().backward()


def test_threshold_in_place_takes_elements_that_share_memory(lib):
    x = lib.zeros(1).expand(3)
    F = lib.nn.functional
    assert F.threshold(x, 0.5, 0.75, inplace=True).tolist() == [0.75] * 3
    assert F.threshold_(x, 0.8, 1.0).tolist() == [1.0] * 3


@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
def test_the_second_derivative_at_zero_is_zero_as_in_pytorch(torch, name):
    agree(torch, lambda m, x: getattr(m.nn.functional, name)(x), np.array([0.0, -0.0, -1.0, 1.0]))
