"""A function's value and its first three derivatives, in the same words for either library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import convcore


def derivatives(
    grad: Callable, function: Callable, x: Any, v: Any, w: Any, u: Any
) -> tuple[Any, ...]:
    """Return f(x), J'v, Jw and J'u, where J is the Jacobian of f at x.

    Each is the gradient of the one before it: of f in x, of J'v in v, of Jw in w.  All tensors
    require grad; v and u have the shape of f(x), w that of x.
    """
    y = function(x)
    (first,) = grad(y, x, v, create_graph=True)
    (second,) = grad(first, v, w, create_graph=True)
    (third,) = grad(second, w, u)
    return y, first, second, third


def leaf(array: np.ndarray) -> convcore.Tensor:
    """Return a tensor around the array that requires grad."""
    tensor = convcore.from_numpy(array)
    tensor.requires_grad = True
    return tensor


def ours(function: Callable, x: np.ndarray, *directions: np.ndarray) -> list[np.ndarray]:
    """Return `derivatives` by convcore, as arrays."""
    leaves = [leaf(a) for a in (x, *directions)]
    results = derivatives(convcore.autograd.grad, function, *leaves)
    return [result.detach().numpy() for result in results]


def pytorchs(
    torch: Any, function: Callable, x: np.ndarray, *directions: np.ndarray
) -> list[np.ndarray]:
    """Return `derivatives` by PyTorch, as arrays; in memory each array lies as it did."""
    leaves = [torch.from_numpy(a.copy(order="K")).requires_grad_() for a in (x, *directions)]
    results = derivatives(torch.autograd.grad, function, *leaves)
    return [result.detach().numpy() for result in results]


def assert_same_derivatives(
    torch: Any,
    function: Callable,
    theirs: Callable,
    arrays: Sequence[np.ndarray],
    tolerance: float = 0.0,
) -> None:
    """Compare value and derivatives in dtype, shape and elements, exactly if tolerance is 0."""
    for result, expected in zip(
        ours(function, *arrays), pytorchs(torch, theirs, *arrays), strict=True
    ):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
