"""Softmax and its logarithm: compiled, in every layout, beside float64."""

import itertools

import numpy as np
import pytest
from draws import lay_out

import convcore
from convcore.engine.layers.softmax import softmax

# (shape, axis): behind whole vectors a rest, rows and columns, blocks and what is left of them.
PROBLEMS = [
    ((64, 10), 1),
    ((3, 1000), 1),
    ((700, 37), 1),
    ((1000, 3), 0),
    ((5, 1), 1),
    ((2, 21, 23, 19), 1),
    ((2, 3, 40, 33), 1),
    ((7,), 0),
]


def exact(x, along, log):
    """Return softmax, or its logarithm, of float64 as the textbook has it."""
    shifted = x.astype("f8") - x.max(along, keepdims=True)
    total = np.exp(shifted).sum(along, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


def exact_gradient(grad, y, along, log):
    grad, y = grad.astype("f8"), y.astype("f8")
    if log:
        return grad - np.exp(y) * grad.sum(along, keepdims=True)
    return y * (grad - (grad * y).sum(along, keepdims=True))


@pytest.mark.parametrize("form", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("shape", "along"), PROBLEMS)
def test_softmax_and_its_gradient_are_exact_to_a_few_units(shape, along, log, dtype, form, rng):
    form = "contiguous" if form == "channels_last" and len(shape) < 3 else form
    x = lay_out((5 * rng.standard_normal(shape)).astype(dtype), form, rng)
    grad = rng.standard_normal(shape).astype(dtype)
    y = softmax.forward(x, along, log)
    eps = np.finfo(dtype).eps
    expected = exact(x, along, log)
    assert y.dtype == x.dtype
    if form != "strided":
        assert y.strides == x.strides
    # x - max x is rounded, and is what the logarithm adds to and the exponential multiplies.
    distance = x.max(along, keepdims=True).astype("f8") - x
    scale = 1 + distance if log else (1 + distance) * expected
    assert np.all(np.abs(y - expected) <= 8 * eps * scale)
    found = softmax.backward(grad, y, along, log)
    bound = np.abs(grad) + exact(x, along, False) * np.abs(grad).sum(along, keepdims=True)
    assert found.strides == y.strides
    assert np.all(np.abs(found - exact_gradient(grad, y, along, log)) <= 8 * eps * bound)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("shape", "along"), [((64, 100), 1), ((2, 9, 16, 16), 1)])
def test_softmax_is_no_further_from_the_exact_one_than_pytorchs(shape, along, log, rng):
    torch = pytest.importorskip("torch")
    x = (4 * rng.standard_normal(shape)).astype("f4")
    grad = rng.standard_normal(shape).astype("f4")
    theirs = torch.from_numpy(x).requires_grad_()
    function = torch.log_softmax if log else torch.softmax
    y = function(theirs, along)
    y.backward(torch.from_numpy(grad))
    ours = softmax.forward(x, along, log)
    gradient = softmax.backward(grad, ours, along, log)
    oracle = exact(x, along, log)
    oracle_gradient = exact_gradient(grad, oracle, along, log)

    # Both round; without fused multiply-adds, as at the level base, a little more often.
    def error(found, expected):
        return np.sqrt(np.mean((found - expected) ** 2))

    assert error(ours, oracle) <= 1.5 * error(y.detach().numpy(), oracle)
    assert error(gradient, oracle_gradient) <= 1.5 * error(theirs.grad.numpy(), oracle_gradient)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("columns", [False, True])
def test_softmax_of_what_is_not_finite_is_pytorchs(dtype, log, columns):
    torch = pytest.importorskip("torch")
    parts = [0.0, 1e4, -1e4, np.inf, -np.inf, np.nan]
    x = np.array(list(itertools.product(parts, repeat=3)), dtype)
    x = np.ascontiguousarray(np.repeat(x, 7, axis=1))
    along = 1
    if columns:
        x, along = np.ascontiguousarray(x.T), 0
    function = "log_softmax" if log else "softmax"
    found = getattr(convcore, function)(convcore.from_numpy(x), along).numpy()
    expected = getattr(torch, function)(torch.from_numpy(x), along).numpy()
    tiny = float(np.finfo(dtype).tiny)
    np.testing.assert_allclose(
        found, expected, rtol=1e-3 if dtype == "float16" else 1e-6, atol=tiny
    )
