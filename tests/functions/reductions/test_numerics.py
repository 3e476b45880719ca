"""Counts, membership, differences and traces, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import SEEDS, drawn
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.autograd import gradcheck, gradgradcheck

NAN = float("nan")


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


@examples(30)
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


def test_triangles_far_beyond_their_matrix_agree_with_pytorch(torch):
    for row in (2**33, 2**63 - 1):
        agree(torch, lambda m, r=row: m.triu_indices(r, 3))
        agree(torch, lambda m, r=row: m.tril_indices(3, r))
    for call in (convcore.tril_indices, convcore.triu_indices):
        with pytest.raises(RuntimeError, match="Storage size"):
            call(2**62, 2**62)


@pytest.mark.parametrize("function", [convcore.trace, convcore.diff])
def test_gradients_are_those_of_finite_differences(rng, function):
    x = convcore.from_numpy(rng.uniform(0.3, 0.8, (2, 3))).requires_grad_()
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


@pytest.mark.parametrize("weights", [None, [1.0, 2.0]])
def test_counts_that_no_memory_holds_are_refused(weights):
    """NumPy's bincount would write before its result."""
    weights = None if weights is None else convcore.tensor(weights)
    for far in (2**63 - 1, 2**62, 2**60):
        with pytest.raises(RuntimeError, match="must be less than 2"):
            convcore.bincount(convcore.tensor([1, far]), weights)
        with pytest.raises(RuntimeError, match="must be less than 2"):
            convcore.bincount(convcore.tensor([1, 2]), weights, far)
