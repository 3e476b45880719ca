"""Counts, differences, traces, moments and edge-safe logarithms, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import SEEDS, drawn, few
from hypothesis import given
from hypothesis import strategies as st

import convcore
from convcore.autograd import gradcheck, gradgradcheck

NAN, INF = float("nan"), float("inf")


# Moments


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@few(20)
@given(
    st.sampled_from([(4,), (2, 3), (3, 2, 2)]),
    st.sampled_from([None, 0, -1, (0,), "all"]),
    st.sampled_from([{}, {"correction": 0}, {"unbiased": False}, {"keepdim": True}]),
    st.sampled_from(["float64", "float32", "complex128"]),
    SEEDS,
)
def test_moments_agree_with_pytorch(torch, name, shape, dim, arguments, dtype, seed):
    dim = tuple(range(len(shape))) if dim == "all" else dim
    if "unbiased" in arguments and dim is None:
        arguments = {**arguments, "keepdim": False}
        dim = tuple(range(len(shape)))
    x = drawn(np.random.default_rng(seed), shape, dtype, -2, 2)
    rtol = 1e-3 if dtype == "float32" else 1e-9
    call = lambda m, x: getattr(m, name)(x, dim, **arguments)  # noqa: E731
    agree(torch, call, x, seed=seed, nodes=1, rtol=rtol)
    for place in range(2):
        agree(torch, lambda m, x: call(m, x)[place], x, seed=seed, nodes=1, rtol=rtol)  # noqa: B023


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_moments_take_the_arguments_of_pytorch(torch, rng, name):
    x = rng.normal(size=(2, 3))
    agree(torch, lambda m, x: getattr(m, name)(x, False), x)
    agree(torch, lambda m, x: getattr(m, name)(x, axis=1, keepdim=True), x)
    same_error(torch, lambda m, x: getattr(m, name)(x), np.arange(3))
    for m in (torch, convcore):
        with pytest.warns(UserWarning, match=rf"{name}\(\): degrees of freedom is <= 0"):
            spread, mean = getattr(m, name)(m.tensor(2.0))
        assert spread.isnan()
        assert mean.item() == 2


@pytest.mark.parametrize("name", ["nansum", "nanmean"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("dim", "keepdim"), [(None, False), (0, True), (-1, False), ((0, 1), True)]
)
def test_sums_without_nan_agree_with_pytorch(torch, rng, seed, name, dtype, dim, keepdim):
    x = np.where(rng.random((3, 4)) < 0.3, NAN, rng.normal(size=(3, 4))).astype(dtype)
    x[:, 0] = x[0] = 1
    rtol = 1e-2 if dtype == "float16" else 1e-5
    agree(torch, lambda m, x: getattr(m, name)(x, dim, keepdim), x, seed=seed, nodes=1, rtol=rtol)
    agree(torch, lambda m, x: getattr(x, name)(dim, dtype=m.float64), x, seed=seed, rtol=rtol)


def test_sums_without_nan_of_other_dtypes_are_as_in_pytorch(torch):
    agree(torch, lambda m, x: m.nansum(x), np.arange(6))
    agree(torch, lambda m, x: x.nansum(0), np.ones((2, 2), bool))
    agree(torch, lambda m, x: x.detach().nanmean(), np.full(3, NAN))
    same_error(torch, lambda m, x: m.nansum(x), np.ones(2, "complex64"))
    same_error(torch, lambda m, x: m.nanmean(x), np.arange(2))


# Counts and membership


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_bincount_agrees_with_pytorch(torch, rng, dtype):
    x = rng.integers(0, 9, 20).astype(dtype)
    agree(torch, lambda m, x: m.bincount(x), x)
    agree(torch, lambda m, x: x.bincount(minlength=12), x)
    for weights in ("float32", "float64", "float16", "int64"):
        w = rng.integers(-4, 5, 20).astype(weights)
        agree(torch, lambda m, x, w: m.bincount(x, w.detach(), 3), x, w)
    agree(torch, lambda m, x: m.bincount(x, minlength=3), x[:0])


@pytest.mark.parametrize(
    ("x", "arguments"),
    [
        (np.array([-1]), {}),
        (np.ones((2, 2), int), {}),
        (np.ones(2), {}),
        (np.array([True]), {}),
        (np.ones(2, int), {"minlength": -1}),
    ],
)
def test_bincount_refuses_with_the_words_of_pytorch(torch, x, arguments):
    same_error(torch, lambda m, x: m.bincount(x.detach(), **arguments), x)
    same_error(torch, lambda m, x: m.bincount(x, m.ones(3)), np.ones(2, int))


def test_isin_agrees_with_pytorch(torch, rng):
    x, y = rng.integers(0, 9, (3, 4)), rng.integers(0, 9, 4)
    agree(torch, lambda m, x, y: m.isin(x, y), x, y)
    agree(torch, lambda m, x, y: m.isin(x, y, invert=True, assume_unique=True), x, y)
    agree(torch, lambda m, x: m.isin(x, 3), x)
    agree(torch, lambda m, x: m.isin(3, x), x)
    agree(torch, lambda m, x, y: m.isin(x, y), x, np.array([1.5, 2, NAN]))
    agree(torch, lambda m, x: m.isin(x, x), np.array([NAN, 1]))
    same_error(torch, lambda m, x: m.isin(x, x), np.ones(2, bool))
    same_error(torch, lambda m, x: m.isin(x, x), np.ones(2, complex))
    with pytest.raises(TypeError):
        convcore.isin(1, 1)


# Differences and matrices


@few(30)
@given(
    st.sampled_from([(5,), (3, 4), (2, 3, 2), (3, 0)]),
    st.integers(0, 4),
    st.integers(-1, 0),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["float64", "int32", "bool"]),
    SEEDS,
)
def test_diff_agrees_with_pytorch(torch, shape, n, dim, before, after, dtype, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype) for _ in range(2))
    agree(
        torch,
        lambda m, x, y: m.diff(x, n, dim, y if before else None, y if after else None),
        x,
        y,
        seed=seed,
        nodes=1 if n else 0,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.diff(x[0, 0]),
        lambda m, x: x.diff(-1),
        lambda m, x: m.diff(x, prepend=x[0]),
        lambda m, x: m.diff(x, dim=1, append=m.ones(3, 1)),
        lambda m, x: m.trace(x[0]),
        lambda m, x: (x > 0).trace(),
        lambda m, x: m.tril_indices(-1, 2),
        lambda m, x: m.triu_indices(2, -1),
        lambda m, x: m.triu_indices(2, 1, dtype=m.float32),
    ],
)
def test_mistakes_are_told_in_the_words_of_pytorch(torch, call):
    same_error(torch, call, np.ones((2, 3)))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (0, 3)])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int32"])
def test_trace_agrees_with_pytorch(torch, rng, seed, shape, dtype):
    x = drawn(rng, shape, dtype, -9, 9)
    agree(torch, lambda m, x: m.trace(x), x, seed=seed, nodes=1)


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_indices_of_triangles_agree_with_pytorch(torch, name):
    for row, col, offset in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 2, -5), (0, 2, 0), (3, 2, 7)]:
        agree(torch, lambda m, r=row, c=col, o=offset: getattr(m, name)(r, c, o))
    agree(torch, lambda m: getattr(m, name)(row=2, col=2, offset=1, dtype=m.int32, device="cpu"))


# At the edges


EDGES = np.array([NAN, 0.0, INF, -INF, -1.0, 1.0, 0.5])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logarithms_agree_with_pytorch(torch, rng, seed, dtype):
    rtol = 2e-2 if dtype == "float16" else 1e-4
    x, y = drawn(rng, (3, 4), dtype, 0.5, 3), drawn(rng, (4,), dtype, 0.5, 3)
    same = {"seed": seed, "nodes": 1, "rtol": rtol}
    agree(torch, lambda m, x, y: m.logaddexp(x, y), x, y, **same)
    agree(torch, lambda m, x, y: x.xlogy(y), x, y, **same)
    agree(torch, lambda m, x: m.xlogy(2, x), x, **same)
    agree(torch, lambda m, x: m.xlogy(x, 2.5), x, **same)
    agree(torch, lambda m, x: m.erfinv(x), drawn(rng, (3, 2), dtype, -0.8, 0.8), **same)


def test_logarithms_at_the_edges_agree_with_pytorch(torch):
    x, y = (a.reshape(-1).copy() for a in np.meshgrid(EDGES, EDGES))
    for call in (lambda m, x, y: m.logaddexp(x, y), lambda m, x, y: m.xlogy(x, y)):
        agree(torch, lambda m, x, y, call=call: call(m, x.detach(), y.detach()), x, y)
    agree(torch, lambda m, x: m.erfinv(x.detach()), EDGES)


def test_gradient_of_xlogy_is_zero_where_both_are_zero(torch):
    found = []
    for m in (convcore, torch):
        x, y = (m.tensor([0.0, 0.0, 2.0], requires_grad=True) for _ in range(2))
        m.xlogy(x, y + m.tensor([0.0, -1.0, 0.0])).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == pytest.approx(found[1])


def test_logarithms_of_other_dtypes_are_as_in_pytorch(torch):
    n = np.arange(3)
    agree(torch, lambda m, x: m.xlogy(x, x), n)
    agree(torch, lambda m, x: m.erfinv(x), n[:1])
    agree(torch, lambda m, x, y: m.xlogy(x, y), n, np.array(2, "float32"))
    agree(torch, lambda m, x, y: m.logaddexp(x, y), np.ones(2, "float32"), np.ones(2))
    same_error(torch, lambda m, x: m.logaddexp(x, x), n)
    same_error(torch, lambda m, x: m.logaddexp(x, 1.0), np.ones(2))
    same_error(torch, lambda m, x: m.erfinv(x), np.ones(2, complex))
    same_error(torch, lambda m, x: m.xlogy(x, x), np.ones(2, complex))
    same_error(torch, lambda m, x: x.xlogy_(m.ones(3)), n)
    with pytest.raises(TypeError):
        convcore.xlogy(1, 2)


def test_gradients_are_those_of_finite_differences(rng):
    x, y = (convcore.from_numpy(rng.uniform(0.3, 0.8, (2, 3))).requires_grad_() for _ in range(2))
    for function in (convcore.logaddexp, convcore.xlogy):
        assert gradcheck(function, (x, y))
        assert gradgradcheck(function, (x, y))
    for function in (
        convcore.erfinv,
        convcore.trace,
        convcore.diff,
        convcore.nansum,
        convcore.std_mean,
        convcore.var_mean,
    ):
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))
