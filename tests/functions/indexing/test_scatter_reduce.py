"""scatter_reduce beside PyTorch's and by a loop."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_reduce_agrees_with_pytorch(torch, rng, reduce, include, dim):
    x, src, index = rng.normal(size=(3, 4)), rng.normal(size=(2, 3)), rng.integers(0, 3, (2, 3))
    options = {"include_self": include}

    def call(m, x, index, src):
        return x.scatter_reduce(dim, index, src, reduce, **options)

    agree(torch, call, x, index, src)
    whole = rng.integers(-4, 4, (3, 4))
    agree(torch, call, whole, index, rng.integers(-4, 4, (2, 3)))
    changed = lambda m, x, i, s: x.clone().scatter_reduce_(dim, i, s, reduce, **options)  # noqa: E731
    agree(torch, changed, x, index, src)


def test_ties_and_zeros_share_gradients_as_in_pytorch(torch):
    x, index = np.array([0.0, 2.0, 3.0]), np.array([0, 0, 1, 1, 2])
    for src in (np.array([0.0, 5, 2, 2, 0]), np.array([4.0, 4, 0, 0, 0])):
        for reduce in ("amax", "amin", "prod"):
            call = lambda m, x, i, s, r=reduce: x.scatter_reduce(0, i, s, r)  # noqa: E731
            ours, theirs = (
                first_gradients(convcore, call, x, index, src),
                first_gradients(torch, call, x, index, src),
            )
            np.testing.assert_allclose(ours, theirs)


def first_gradients(m, call, x, index, src):
    x, src = (m.tensor(a.tolist(), requires_grad=True) for a in (x, src))
    call(m, x, m.from_numpy(index), src).sum().backward()
    return x.grad.tolist() + src.grad.tolist()


def test_an_unknown_reduction_is_refused(torch, rng):
    x = rng.normal(size=(4, 4))
    same_error(torch, lambda m, x: x.scatter_reduce(0, m.zeros(4, 4).long(), x, "mul"), x)


def test_values_are_those_of_a_loop(rng):
    index, src = rng.integers(0, 3, 10), rng.normal(size=10)
    expected = np.full(3, -np.inf)
    for place, value in zip(index, src, strict=True):
        expected[place] = max(expected[place], value)
    start = convcore.full((3,), -np.inf, dtype=convcore.float64)
    found = start.scatter_reduce(0, convcore.from_numpy(index), convcore.from_numpy(src), "amax")
    assert found.tolist() == expected.tolist()


def test_gradients_are_those_of_finite_differences(rng):
    x, src = (convcore.from_numpy(rng.normal(size=(3, 4))).requires_grad_() for _ in range(2))
    index = convcore.from_numpy(rng.integers(0, 3, (3, 4)))
    for reduce in REDUCTIONS:
        assert gradcheck(lambda x, s, r=reduce: x.scatter_reduce(0, index, s, r), (x, src))


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_what_is_left_out_gets_no_part_of_the_gradient_of_infinities(reduce, infinity):
    x = convcore.full((3,), infinity, requires_grad=True)
    src = convcore.full((2,), infinity, requires_grad=True)
    index = convcore.tensor([0, 0])
    y = x.scatter_reduce(0, index, src, reduce, include_self=False)
    y.sum().backward()
    # PyTorch gives each of src a third: x[0] counts there, and gets nothing.
    assert (src.grad.tolist(), x.grad.tolist()) == ([0.5, 0.5], [0, 1, 1])


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_a_nan_that_is_taken_gets_the_gradient_as_of_amax(reduce):
    values = np.array([1.0, np.nan, 3.0, np.nan])
    x = convcore.from_numpy(values).requires_grad_()
    getattr(convcore, reduce)(x).backward()
    own, src = (convcore.from_numpy(part).requires_grad_() for part in (values[:1], values[1:]))
    own.scatter_reduce(0, convcore.tensor([0, 0, 0]), src, reduce).backward()
    assert own.grad.tolist() + src.grad.tolist() == x.grad.tolist() == [0, 0.5, 0, 0.5]


@pytest.mark.parametrize("name", ["scatter_reduce"])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include", [False, True])
def test_bfloat16_is_reduced_as_in_pytorch(torch, name, reduce, include):
    pytest.importorskip("ml_dtypes")
    found = []
    for lib in (convcore, torch):
        x, src = (lib.tensor(v).bfloat16() for v in ([1.25, 5, 3, 2], [4, 2.5, 7]))
        out = getattr(x, name)(0, lib.tensor([1, 1, 2]), src, reduce, include_self=include)
        found.append(out.tolist())
    assert found[0] == found[1]
