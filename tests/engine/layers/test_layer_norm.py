"""Layer norm beside the float64 formula, and its gradients beside differences."""

import numpy as np
import pytest
from draws import lay_out

from convcore.engine.layers.norm import layer_norm

EPS = 1e-3
CASES = [((4, 7), 1), ((3, 5, 6), 2), ((2, 3, 50), 1), ((6,), 1), ((3, 1), 1)]


def formula(x, weight, bias, axes):
    over = tuple(range(x.ndim - axes, x.ndim))
    x = x.astype("f8")
    y = (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + EPS)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_each_row_gets_its_own_mean_and_variance(shape, axes, layout, dtype, rng):
    x = lay_out((2 + rng.standard_normal(shape)).astype(dtype), layout, rng)
    weight, bias = rng.standard_normal((2, *shape[len(shape) - axes :])).astype(dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for parameters in ((weight, bias), (weight, None), (None, None)):
        y, statistics = layer_norm.forward(x, *parameters, EPS, axes)
        assert y.dtype == dtype
        assert y.flags.c_contiguous
        np.testing.assert_allclose(y, formula(x, *parameters, axes), atol=10 * tolerance)
    rows = x.astype("f8").reshape(-1, weight.size)
    np.testing.assert_allclose(
        statistics, [rows.mean(1), rows.var(1)], rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize(("shape", "axes"), CASES[:4])
def test_gradients_are_the_differences_of_the_formula(shape, axes, layout, rng):
    x = lay_out(rng.standard_normal(shape), layout, rng)
    grad = lay_out(rng.standard_normal(shape), layout, rng)
    arguments = x, *rng.standard_normal((2, *shape[len(shape) - axes :]))
    statistics = layer_norm.forward(*arguments, EPS, axes)[1]
    found = layer_norm.backward(grad, x, arguments[1], EPS, axes, statistics)
    for number, gradient in enumerate(found):
        assert gradient.shape == arguments[number].shape
        direction = rng.standard_normal(gradient.shape)
        ahead, behind = (
            (
                formula(
                    *(a + h * direction if i == number else a for i, a in enumerate(arguments)),
                    axes,
                )
                * grad
            ).sum()
            for h in (1e-5, -1e-5)
        )
        np.testing.assert_allclose((gradient * direction).sum(), (ahead - behind) / 2e-5, rtol=1e-6)


def test_nothing_to_normalise_is_no_error():
    x = np.zeros((0, 4))
    y, statistics = layer_norm.forward(x, None, None, EPS, 1)
    assert y.shape == (0, 4)
    found = layer_norm.backward(x, x, None, EPS, 1, statistics)
    assert [g.shape for g in found] == [(0, 4), (4,), (4,)]
    assert not found[1].any()


def test_bits_do_not_depend_on_the_number_of_threads(rng, threads):
    x, grad = rng.standard_normal((2, 500, 300)).astype("f4")
    found = set()
    for n in (1, 2, 7):
        threads(n)
        y, statistics = layer_norm.forward(x, None, None, EPS, 1)
        back = layer_norm.backward(grad, x, None, EPS, 1, statistics)
        found.add(b"".join(a.tobytes() for a in (y, *back)))
    assert len(found) == 1
