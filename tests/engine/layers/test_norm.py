"""Batch, group and instance norm beside float64 formulas, and gradients beside differences."""

import numpy as np
import pytest
from draws import is_channels_last, lay_out

from convcore.engine.layers.norm import norm

EPS = 1e-3
SHAPE = (3, 8, 5, 6)
GROUPS = [None, 1, 4, 8]
CLAMPS = {None: (-np.inf, np.inf), "relu": (0, np.inf), "relu6": (0, 6)}


def moments(x, groups):
    """Return means and variances, as `forward` does, in float64."""
    x = x.astype("f8")
    if groups is None:
        units = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)
    else:
        units = x.reshape(len(x) * groups, -1)
    return np.stack([units.mean(1), units.var(1)])


def formula(x, weight, bias, groups, statistics, residual=0, activation=None):
    n, c = x.shape[:2]
    mean, variance = (
        s.reshape(1, -1, 1) if groups is None else s.reshape(n, groups, 1) for s in statistics
    )
    units = x.astype("f8").reshape(n, c if groups is None else groups, -1)
    y = ((units - mean) / np.sqrt(variance + EPS)).reshape(x.shape)
    y = y * weight.reshape(-1, 1, 1) + bias.reshape(-1, 1, 1) + residual
    return np.clip(y, *CLAMPS[activation])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize("activation", CLAMPS)
@pytest.mark.parametrize("groups", GROUPS)
def test_each_unit_gets_its_own_mean_and_variance(groups, activation, layout, dtype, rng):
    x = lay_out((3 + 2 * rng.standard_normal(SHAPE)).astype(dtype), layout, rng)
    residual = rng.standard_normal(SHAPE).astype(dtype)
    weight, bias = rng.standard_normal((2, 8)).astype(dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    y, statistics = norm.forward(x, weight, bias, EPS, groups, None, residual, activation)
    np.testing.assert_allclose(statistics, moments(x, groups), rtol=tolerance)
    exact = formula(x, weight, bias, groups, moments(x, groups), residual, activation)
    np.testing.assert_allclose(y, exact, atol=10 * tolerance)
    assert y.dtype == dtype
    assert is_channels_last(y) == is_channels_last(x)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_given_statistics_are_taken_and_no_parameters_are_ones_and_zeros(layout, rng):
    x = lay_out(rng.standard_normal(SHAPE), layout, rng)
    given = np.stack([rng.standard_normal(8), 1 + rng.random(8)])
    y, statistics = norm.forward(x, None, None, EPS, statistics=given)
    assert statistics is given
    np.testing.assert_allclose(y, formula(x, np.ones(8), np.zeros(8), None, given), atol=1e-12)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize(("groups", "given"), [(None, False), (None, True), (4, False)])
def test_gradients_are_the_differences_of_the_formula(groups, given, layout, rng):
    x = lay_out(rng.standard_normal(SHAPE), layout, rng)
    grad = rng.standard_normal(SHAPE)
    weight, bias = rng.standard_normal((2, 8))
    known = np.stack([rng.standard_normal(8), 1 + rng.random(8)]) if given else None
    statistics = norm.forward(x, weight, bias, EPS, groups, known)[1]
    found = norm.backward(grad, x, weight, bias, EPS, statistics, given, groups)
    grad_input, grad_residual, grad_weight, grad_bias = found
    np.testing.assert_array_equal(grad_residual, grad)

    def loss(x, weight, bias):
        s = moments(x, groups) if known is None else known
        return (formula(x, weight, bias, groups, s) * grad).sum()

    for argument, gradient in enumerate((grad_input, grad_weight, grad_bias)):
        direction = rng.standard_normal(gradient.shape)
        ahead, behind = (
            loss(
                *(
                    a + h * direction if i == argument else a
                    for i, a in enumerate((x, weight, bias))
                )
            )
            for h in (1e-5, -1e-5)
        )
        np.testing.assert_allclose((gradient * direction).sum(), (ahead - behind) / 2e-5, rtol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "relu6"])
def test_an_activation_masks_the_gradient(activation, rng):
    x, residual = 4 * rng.standard_normal((2, *SHAPE))
    grad = rng.standard_normal(SHAPE)
    y, statistics = norm.forward(x, None, None, EPS, None, None, residual, activation)
    low, high = CLAMPS[activation]
    masked = np.where((y > low) & (y < high), grad, 0)
    arguments = None, None, EPS, statistics, False, None
    found = norm.backward(grad, x, *arguments, activation, y)
    plain = norm.backward(masked, x, *arguments)
    np.testing.assert_array_equal(found[1], masked)
    np.testing.assert_allclose(found[0], plain[0], atol=1e-12)
    assert norm.backward(grad, x, *arguments, activation, y, needs_input=False)[0] is None


def test_a_large_mean_costs_no_digits(rng):
    x = (1e4 + rng.standard_normal((4, 3, 50, 50))).astype("f4")
    for layout in ("contiguous", "channels_last"):
        statistics = norm.forward(lay_out(x, layout, rng), None, None, EPS)[1]
        np.testing.assert_allclose(statistics, moments(x, None), rtol=1e-6)


def test_bits_do_not_depend_on_the_number_of_threads(rng, threads):
    x = rng.standard_normal((4, 20, 60, 61)).astype("f4")
    for layout in ("contiguous", "channels_last"):
        array, found = lay_out(x, layout, rng), set()
        for n in (1, 2, 7):
            threads(n)
            found.add(norm.forward(array, None, None, EPS)[0].tobytes())
        assert len(found) == 1


def bfloat16_of(array):
    """Return an array of bfloat16 whose channels run fastest."""
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)).astype(dtype), -1, 1)


# Rows of one pixel or several, with a rest; rows longer than the stage; images by themselves.
BFLOAT16_CASES = [
    ((3, 8, 5, 6), None), ((2, 300, 7, 3), None), ((5, 2100, 3, 1), None), ((1, 3, 211, 5), None),
    ((70, 40), None), ((3, 8, 5, 6), 4), ((2, 96, 9, 7), 96),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "groups"), BFLOAT16_CASES)
@pytest.mark.parametrize("activation", CLAMPS)
@pytest.mark.parametrize("with_result", [False, True])
def test_bfloat16_is_computed_in_float32_and_rounded_once(
    shape, groups, activation, with_result, rng, threads
):
    x, residual, grad = (bfloat16_of(rng.standard_normal(shape) + 2) for _ in range(3))
    residual = residual if with_result else None
    weight, bias = (rng.standard_normal(shape[1]).astype("f4") for _ in range(2))
    assert norm.reads(x, groups)

    def passes(cast, result):
        x_, residual_, grad_ = (None if a is None else cast(a) for a in (x, residual, grad))
        y, statistics = norm.forward(
            x_, weight, bias, EPS, groups, residual=residual_, activation=activation
        )
        y_ = cast(result) if with_result else None
        return (
            y,
            statistics,
            *norm.backward(grad_, x_, weight, bias, EPS, statistics, False, groups, activation, y_),
        )

    result = passes(lambda array: array, x)[0]
    wide = passes(lambda array: array.astype("f4", order="K"), result)
    for count in (1, 3):
        threads(count)
        found = passes(lambda array: array, result)
        for place, (one, right) in enumerate(zip(found, wide, strict=True)):
            dtype = x.dtype if place in (0, 2, 3) else right.dtype
            assert one.dtype == dtype
            right = right.astype(dtype).astype("f4") if place in (0, 2, 3) else right
            np.testing.assert_array_equal(one.astype(right.dtype), right)


def test_bfloat16_of_nchw_is_not_read(rng):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    assert not norm.reads(rng.standard_normal(SHAPE).astype(dtype))
    assert not norm.reads(rng.standard_normal(SHAPE).astype("f2"))
    assert norm.reads(rng.standard_normal(SHAPE).astype("f4"))
