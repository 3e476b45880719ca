"""Activations in the epilogue of a convolution: the same numbers as after it."""

import math

import numpy as np
import pytest

from convcore import engine
from convcore.engine.conv.epilogue import CLAMP, LEAKY, activation_parameters

FORMULAS = {
    "relu": lambda y: np.maximum(y, 0),
    "relu6": lambda y: np.clip(y, 0, 6),
    ("leaky_relu", 0.25): lambda y: np.where(y < 0, 0.25 * y, y),
}
SINGLE = np.dtype("f4")


def test_kernels_get_a_clamp_or_a_slope():
    assert activation_parameters(None, SINGLE) == ()
    assert activation_parameters("relu", SINGLE) == (CLAMP, 0, math.inf, 0)
    assert activation_parameters("relu6", SINGLE) == (CLAMP, 0, 6, 0)
    assert activation_parameters(("leaky_relu", 1), SINGLE) == (LEAKY, 0, 0, 1)


@pytest.mark.parametrize(
    "bad", ["tanh", "leaky_relu", ("leaky_relu", "1"), ("leaky_relu", True), ("relu", 1), 3, ()]
)
def test_what_is_no_activation_is_a_value_error_that_says_what_is(bad):
    with pytest.raises(ValueError, match=r"activation must be None, 'relu', 'relu6' or") as error:
        activation_parameters(bad, SINGLE)
    assert repr(bad) in str(error.value)


@pytest.mark.parametrize("dtype", ["complex64", "int64"])
def test_activations_are_of_real_floating_point_numbers(dtype):
    assert activation_parameters(None, np.dtype(dtype)) == ()
    with pytest.raises(TypeError, match=f"activation 'relu' needs .*got {dtype}"):
        activation_parameters("relu", np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("activation", FORMULAS, ids=str)
def test_an_activation_is_applied_to_each_output_and_nan_stays(
    activation, channels_last, dtype, rng
):
    x = rng.integers(-3, 4, (2, 5, 7, 6)).astype(dtype)
    x[1, 2, 3, 3] = np.nan
    if channels_last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    w, b = rng.integers(-2, 3, (4, 5, 3, 3)).astype(dtype), np.arange(4).astype(dtype)
    y = engine.conv_forward(x, w, b, padding=1)
    found = engine.conv_forward(x, w, b, padding=1, activation=activation)
    assert np.isnan(found).any()
    np.testing.assert_array_equal(found, FORMULAS[activation](y), strict=True)
