"""Elements by an index along an axis, read and written: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import agree, same_error
from shapes import complex_or_real

import convcore


def indices(lib: Any) -> Any:
    return lib.tensor([[0, 1, 1], [2, 0, 1]])


ALONG: dict[str, Callable] = {
    "gather": lambda lib, x, v: x.gather(1, indices(lib)),
    "gather-0": lambda lib, x, v: lib.gather(x, 0, indices(lib)),
    "gather-one": lambda lib, x, v: x.gather(-1, lib.tensor([[3]])),
    "gather-empty": lambda lib, x, v: x.gather(0, lib.zeros(0, 2, dtype=lib.int64)),
    "gather-vector": lambda lib, x, v: x[0].gather(0, lib.tensor([3, 3])),
    "gather-of-0d": lambda lib, x, v: x[0, 0].gather(0, lib.tensor(0)),
    "take-along-dim": lambda lib, x, v: lib.take_along_dim(x, lib.tensor([[1], [0], [2]]), 1),
    "take-along-dim-broadcast": lambda lib, x, v: x.take_along_dim(lib.tensor([[1, 2]]), 1),
    "take-along-flat": lambda lib, x, v: x.take_along_dim(lib.tensor([1, 7])),
    "take": lambda lib, x, v: lib.take(x, lib.tensor([[0, -1], [5, 0]])),
    "scatter": lambda lib, x, v: x.scatter(0, lib.tensor([[0, 1, 2, 0]]), v[1:2]),
    "scatter-1": lambda lib, x, v: lib.scatter(x, 1, lib.tensor([[0, 3], [2, 1]]), v[1:, 1:3]),
    "scatter-number": lambda lib, x, v: x.scatter(1, lib.tensor([[0], [3]]), 7.0),
    "scatter-value": lambda lib, x, v: x.scatter(1, lib.tensor([[0], [3]]), value=7),
    "scatter-in-place": lambda lib, x, v: (x * 1).scatter_(0, lib.tensor([[0, 1, 2, 0]]), v[:1]),
    "scatter-reduce-add": lambda lib, x, v: x.data.scatter(1, indices(lib), 2.0, reduce="add"),
    "scatter-add": lambda lib, x, v: x.scatter_add(1, indices(lib), v[:2, :3]),
    "scatter-add-0": lambda lib, x, v: lib.scatter_add(x, 0, indices(lib), v[:2, :3]),
    "scatter-add-in-place": lambda lib, x, v: (x * 1).scatter_add_(1, indices(lib), v[:2, :3]),
}


# PyTorch reads the elements of a vector by other nodes here.
OTHER_NODES = {"gather-empty", "gather-of-0d", "take", "take-along-flat", "scatter-reduce-add"}


ALONG_ERRORS: dict[str, Callable] = {
    "gather-range": lambda lib, x: x.gather(0, lib.tensor([[3]])),
    "gather-rank": lambda lib, x: x.gather(0, lib.tensor([0])),
    "gather-size": lambda lib, x: x.gather(0, lib.tensor([[0] * 5])),
    "gather-float": lambda lib, x: x.gather(0, lib.tensor([[0.0]])),
    "scatter-range": lambda lib, x: x.scatter(0, lib.tensor([[-1]]), x),
    "scatter-size": lambda lib, x: x.scatter(0, lib.tensor([[0] * 5]), x),
    "scatter-dtype": lambda lib, x: x.scatter(0, lib.tensor([[0]]), x.float()),
    "scatter-reduce": lambda lib, x: x.detach().scatter(0, lib.tensor([[0]]), x, reduce="max"),
    "scatter-add-dtype": lambda lib, x: x.scatter_add(0, lib.tensor([[0]]), x.float()),
    "take-range": lambda lib, x: x.take(lib.tensor([12])),
    "take-float": lambda lib, x: x.take(lib.tensor([0.0])),
}


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_along_an_axis_like_torch(torch, rng, seed, name, dtype):
    if dtype == "complex64" and name == "scatter-reduce-add":
        pytest.skip("PyTorch has no such gradient of complex numbers")
    x, v = (complex_or_real(rng, (3, 4), dtype) for _ in range(2))
    agree(torch, ALONG[name], x, v, seed=seed, nodes=0 if name in OTHER_NODES else 2)


@pytest.mark.parametrize("name", ALONG_ERRORS)
def test_along_an_axis_errors_like_torch(torch, name):
    same_error(torch, ALONG_ERRORS[name], np.linspace(-1, 1, 12).reshape(3, 4))


def test_scatter_gives_the_gradient_to_the_element_that_stays():
    v = convcore.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = convcore.zeros(2).scatter(0, convcore.tensor([1, 0, 1]), v)
    assert y.tolist() == [2.0, 3.0]
    y.sum().backward()
    assert v.grad.tolist() == [0.0, 1.0, 1.0]


def test_scatter_multiply_like_torch(torch, rng):
    def function(lib, x):
        return x.detach().scatter(0, lib.tensor([[0, 0], [0, 1]]), x.detach(), reduce="multiply")

    agree(torch, function, rng.normal(size=(3, 4)))
    with pytest.raises(RuntimeError, match="no gradient"):
        function_with_grad = convcore.ones(2, requires_grad=True)
        function_with_grad.scatter(0, convcore.tensor([0]), 2.0, reduce="multiply")
    with convcore.no_grad():
        y = function_with_grad.scatter(0, convcore.tensor([0]), 2.0, reduce="multiply")
    assert y[0].equal(function_with_grad[0] * 2)


def test_take_along_dim_takes_int64_only(torch):
    function = lambda lib, x: lib.take_along_dim(x, lib.tensor([0]).int(), dim=0)  # noqa: E731
    same_error(torch, function, np.ones(2))


@pytest.mark.parametrize("dim", [0, 1])
def test_take_along_dim_counts_from_the_end_below_0(torch, dim):
    def function(lib, x):
        return lib.take_along_dim(x, lib.tensor([[-1, 0], [0, -2]]), dim)

    agree(torch, function, np.arange(4.0).reshape(2, 2))
    for beyond in (2, -3):
        with pytest.raises((IndexError, RuntimeError)):
            convcore.ones(2).take_along_dim(convcore.tensor([beyond]), 0)
    same_error(torch, lambda m, x: m.take_along_dim(x, m.tensor([-1])), np.ones(2))
