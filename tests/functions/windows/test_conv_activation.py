"""Bias and activation in the forward map: the same numbers as after it, in either memory format."""

from __future__ import annotations

import numpy as np
import pytest
from draws import lay_out, numbers

import convcore
from convcore import engine
from convcore.autograd import gradcheck, gradgradcheck
from convcore.backends import conv
from convcore.engine import make_geometry
from convcore.engine.conv.algorithms import ALGORITHMS
from convcore.engine.conv.problem import dense_problem
from convcore.nn import functional

# input, weight, steps: maps of one block and of several, within an image and across images
LAYERS = {
    "dense": ((2, 16, 19, 17), (33, 16, 3, 3), {"padding": 1}),
    "small maps": ((5, 17, 6, 5), (20, 17, 3, 2), {"padding": (1, 2)}),
    "strided": ((2, 16, 13, 12), (24, 16, 3, 3), {"stride": (2, 3), "padding": 1}),
    "pointwise": ((2, 20, 18, 17), (24, 20, 1, 1), {}),
    "pointwise, small maps": ((3, 20, 5, 5), (24, 20, 1, 1), {}),
    "stem": ((2, 3, 20, 21), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    "grouped": ((2, 16, 12, 12), (24, 4, 3, 3), {"padding": 1, "groups": 4}),
    "depthwise": ((2, 35, 12, 12), (35, 1, 3, 3), {"padding": 1, "groups": 35}),
    "no taps": ((1, 3, 1, 1), (2, 3, 1, 1), {"padding": 1}),
}
AFTER = {
    "relu": lambda y: np.maximum(y, 0),
    "relu6": lambda y: np.clip(y, 0, 6),
    ("leaky_relu", 0.1): lambda y: np.where(y < 0, y * y.dtype.type(0.1), y),
}


def arguments(layer, dtype, memory_format, rng):
    """Return input, weight and bias such that outputs lie on both sides of 0 and of 6."""
    x_shape, w_shape, steps = LAYERS[layer]
    x, w = (lay_out(numbers(rng, shape, dtype), memory_format, rng) for shape in (x_shape, w_shape))
    return x, w, 4 * numbers(rng, w_shape[:1], dtype), steps


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("memory_format", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fused_activation_has_the_bits_of_one_afterwards(layer, memory_format, dtype, rng):
    x, w, bias, steps = arguments(layer, dtype, memory_format, rng)
    last = memory_format == "channels_last"
    problem = dense_problem("forward", make_geometry(x.shape, w.shape, **steps), x.dtype, last)
    for algorithm in ALGORITHMS:
        if "forward" not in algorithm.passes or algorithm.impossible(problem):
            continue
        with conv.flags(algorithm=algorithm.name):
            for b in (bias, None):
                y = engine.conv_forward(x, w, b, **steps)
                for activation, after in AFTER.items():
                    fused = engine.conv_forward(x, w, b, activation=activation, **steps)
                    assert fused.strides == y.strides
                    np.testing.assert_array_equal(fused, after(y), err_msg=algorithm.name)


@pytest.mark.parametrize("layer", LAYERS)
def test_bias_is_added_once_to_every_output(layer, rng):
    x, w, bias, steps = arguments(layer, "float64", "contiguous", rng)
    y = engine.conv_forward(x, w, **steps)
    np.testing.assert_allclose(
        engine.conv_forward(x, w, bias, **steps), y + bias[:, None, None], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("activation", AFTER)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_goes_through_as_by_the_activation_alone(activation, value):
    x = np.full((1, 1, 1, 40), value, np.float32)
    y = engine.conv2d(x, np.ones((1, 1, 1, 1), np.float32), activation=activation)
    np.testing.assert_array_equal(y, AFTER[activation](x))


@pytest.mark.parametrize("layer", ["dense", "depthwise", "pointwise, small maps"])
def test_fused_bits_do_not_depend_on_the_number_of_threads(layer, rng, threads):
    x, w, bias, steps = arguments(layer, "float32", "channels_last", rng)
    results = []
    for n in (1, 2, 3, 7):
        threads(n)
        results.append(engine.conv_forward(x, w, bias, activation="relu6", **steps).tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    ("activation", "dtype", "error", "words"),
    [
        ("tanh", "float32", ValueError, ("activation", "'tanh'", "'relu6'")),
        (("leaky_relu",), "float32", ValueError, ("activation", "leaky_relu", "slope")),
        (("leaky_relu", True), "float32", ValueError, ("activation", "True")),
        (["leaky_relu", "0.1"], "float32", ValueError, ("activation", "'0.1'")),
        ("relu", "complex64", TypeError, ("activation", "complex64", "real")),
    ],
)
def test_activation_errors_name_the_argument(activation, dtype, error, words):
    x, w = np.ones((1, 1, 4, 4), dtype), np.ones((1, 1, 1, 1), dtype)
    with pytest.raises(error) as raised:
        engine.conv_forward(x, w, activation=activation)
    assert all(word in str(raised.value) for word in words)


# With gradients


def alone(activation, y):
    """Return the activation by the function of its own."""
    if activation == "relu":
        return functional.relu(y)
    if activation == "relu6":
        return functional.relu6(y)
    return functional.leaky_relu(y, activation[1])


def tensors(rng, *shapes, dtype="float64"):
    return [convcore.from_numpy(numbers(rng, s, dtype)).requires_grad_() for s in shapes]


@pytest.mark.parametrize("activation", [*AFTER, ("leaky_relu", 0), ("leaky_relu", 1.5), None])
@pytest.mark.parametrize(
    ("x", "w", "steps"),
    [
        ((2, 6, 7, 6), (4, 3, 3, 2), {"stride": 2, "padding": 1, "groups": 2}),
        ((6, 7, 6), (4, 6, 2, 2), {"padding": "same", "dilation": (1, 3)}),
        ((2, 3, 8), (4, 3, 3), {}),
        ((1, 2, 4, 4, 4), (2, 2, 3, 3, 3), {"padding": 1}),
    ],
)
def test_fused_function_and_its_gradients_are_those_of_the_two(activation, x, w, steps, rng):
    one = tensors(rng, x, w, w[:1])
    two = [t.detach().clone().requires_grad_() for t in one]
    y = functional.conv_activation(*one, activation=activation, **steps)
    plain = getattr(functional, f"conv{len(w) - 2}d")(*two, **steps)
    expected = plain if activation is None else alone(activation, plain)
    grad = convcore.from_numpy(numbers(rng, tuple(y.shape), "float64"))
    y.backward(grad)
    expected.backward(grad)
    assert y.tolist() == expected.tolist()
    assert [t.grad.tolist() for t in one] == [t.grad.tolist() for t in two]


@pytest.mark.parametrize("activation", AFTER)
def test_fused_function_passes_gradcheck_twice(activation, rng):
    inputs = tensors(rng, (1, 2, 4, 3), (3, 2, 2, 2), (3,))

    def function(x, w, b):
        return functional.conv_activation(x, w, b, activation, padding=1)

    assert gradcheck(function, inputs) and gradgradcheck(function, inputs)


def test_fused_function_is_one_node_and_computes_what_is_needed(rng):
    x, w, _ = tensors(rng, (1, 2, 4, 3), (3, 2, 2, 2), (3,))
    x.requires_grad_(False)
    y = functional.conv_activation(x, w)
    assert y.grad_fn.name() == "ConvolutionActivationBackward0"
    y.sum().backward()
    assert x.grad is None and w.grad is not None


def test_fused_function_rounds_float16_once(rng):
    x, w = (t.detach() for t in tensors(rng, (1, 2, 4, 3), (3, 2, 2, 2), dtype="float16"))
    y = functional.conv_activation(x, w)
    assert y.dtype is convcore.float16
    assert y.tolist() == functional.relu(functional.conv2d(x, w)).tolist()


def test_fused_function_notices_a_changed_result(rng):
    x, w = tensors(rng, (1, 2, 4, 3), (3, 2, 2, 2))
    y = functional.conv_activation(x, w)
    with convcore.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("w_shape", "activation", "dtype", "error", "words"),
    [
        ((1, 1, 1, 1), "tanh", "float32", ValueError, "'relu6'"),
        ((1, 1, 1, 1), ("leaky_relu", -0.1), "float32", ValueError, "at least 0, got -0.1"),
        ((1, 1, 1, 1), "relu", "int64", TypeError, "int64"),
        ((1, 1), "relu", "float32", RuntimeError, "3 to 5 axes"),
        ((1, 2, 1, 1), "relu", "float32", RuntimeError, "to have 2 channels"),
    ],
)
def test_fused_function_errors_say_what_is_wrong(w_shape, activation, dtype, error, words):
    x = convcore.from_numpy(np.ones((1, 1, 4, 4), dtype))
    w = convcore.from_numpy(np.ones(w_shape, dtype))
    with pytest.raises(error, match=words):
        functional.conv_activation(x, w, None, activation)
    with pytest.raises(TypeError, match="'weight'"):
        functional.conv_activation(x, None)
