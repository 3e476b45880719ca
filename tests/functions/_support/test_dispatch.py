"""Kernels and NumPy do the same: which of them computes cannot be seen in the result."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from elements import ACTIVATIONS, IDS

import convcore
from convcore.nn import functional as F

# Functions with a kernel; each array below is large enough for it.
FUNCTIONS = {
    key: partial(getattr(F, name), **arguments)
    for key, (name, arguments, _) in zip(IDS, ACTIVATIONS, strict=True)
}
SMOOTH = ["gelu", "mish", "sigmoid", "silu", "softplus", "tanh"]
PAIRWISE = {"sum": lambda x, y: x + y, "product": lambda x, y: x * y}
SHAPE = (4, 16, 24, 30)


def with_gaps(array):
    """Return a tensor of the same elements that no kernel takes."""
    return convcore.from_numpy(np.repeat(array, 2, axis=-1))[..., ::2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_of_arrays_with_gaps_are_those_of_dense_ones(rng, name, dtype):
    x = (3 * rng.normal(size=SHAPE)).astype(dtype)
    x.flat[:4] = 0.0, -0.0, np.inf, np.nan
    dense, gapped = (FUNCTIONS[name](make(x)).numpy() for make in (convcore.from_numpy, with_gaps))
    assert dense.dtype == gapped.dtype == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(dense, gapped, rtol=16 * eps, atol=16 * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_is_the_same_whether_it_is_to_be_differentiated_again(rng, name, dtype):
    x = convcore.from_numpy((3 * rng.normal(size=SHAPE)).astype(dtype)).requires_grad_()
    v = convcore.from_numpy(rng.normal(size=SHAPE).astype(dtype))
    plain, recorded = (
        convcore.autograd.grad(FUNCTIONS[name](x), x, v, create_graph=again)[0]
        for again in (False, True)
    )
    assert not plain.requires_grad
    eps = np.finfo(dtype).eps
    atol = (200 if name == "gelu ['tanh']" else 32) * eps  # 1 - tanh^2 cancels
    np.testing.assert_allclose(plain.numpy(), recorded.detach().numpy(), rtol=64 * eps, atol=atol)


@pytest.mark.parametrize("name", [f"{name} []" for name in SMOOTH])
def test_gradient_of_a_large_array_can_be_differentiated_again(rng, name):
    array = rng.normal(size=(2, 64, 64))
    x = convcore.from_numpy(array).requires_grad_()
    ones = convcore.ones_like(x)
    (grad,) = convcore.autograd.grad(FUNCTIONS[name](x), x, ones, create_graph=True)
    (second,) = convcore.autograd.grad(grad.sum(), x)
    step = 1e-4
    slopes = []
    for shift in (-step, step):
        moved = convcore.from_numpy(array + shift).requires_grad_()
        slopes.append(convcore.autograd.grad(FUNCTIONS[name](moved).sum(), moved)[0].numpy())
    np.testing.assert_allclose(second.numpy(), (slopes[1] - slopes[0]) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("name", PAIRWISE)
def test_sums_and_products_have_numpys_bits_in_every_layout(rng, name, dtype):
    a, b = (np.asarray(100 * rng.normal(size=SHAPE), dtype) for _ in range(2))
    expected = PAIRWISE[name](a, b) if dtype != "float16" else None
    layouts = (convcore.from_numpy, with_gaps, lambda a: convcore.from_numpy(a[:, ::2]))
    for make in layouts[:2]:
        found = PAIRWISE[name](make(a), make(b)).numpy()
        assert found.dtype == dtype
        if expected is not None:
            np.testing.assert_array_equal(found, expected)
    found = PAIRWISE[name](layouts[2](a), convcore.from_numpy(b[:, 1::2])).numpy()
    if expected is not None:
        np.testing.assert_array_equal(found, PAIRWISE[name](a[:, ::2], b[:, 1::2]))


@pytest.mark.parametrize("size", [3, 100_000])
def test_infinities_come_without_warnings_by_numpy_and_by_the_kernel(size):
    x = convcore.full((size,), 3e38)
    with np.errstate(all="raise"):
        assert (x + x).isinf().all() and (x * x).isinf().all()
        assert F.silu(x * -x).isnan().all()  # -inf times 0
