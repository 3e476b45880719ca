"""Exact gradients of both libraries compared, and what hooks on a node see.

Sums of products of small integers have no rounding: multilinear functions of them, and all their
derivatives, must agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from against_torch import plain, tensors
from draws import numbers

import convcore


def drawer(seed: int, draw: int, dtype: str) -> Any:
    """Return draw(shape) of small integers, whose sums of products are exact."""
    rng = np.random.default_rng([seed, draw])
    return lambda shape: np.asarray(numbers(rng, shape, dtype, integers=True))


def gradients(
    library: Any,
    function: Callable,
    arrays: Sequence[np.ndarray],
    grad: np.ndarray,
    directions: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Return a function's value, its gradients, and the gradients of those along directions.

    ``function(library, *leaves)`` is differentiated by all leaves, given ``grad``; then the sum of
    the gradients times the directions by the leaves and by ``grad``.
    """
    *leaves, v = tensors(library, (*arrays, grad))
    value = function(library, *leaves)
    first = library.autograd.grad(value, leaves, v, create_graph=True)
    total = sum((g * library.from_numpy(d)).sum() for g, d in zip(first, directions, strict=True))
    second = library.autograd.grad(total, (*leaves, v), library.ones_like(total), allow_unused=True)
    zeros = [np.zeros_like(array) for array in (*arrays, grad)]
    return [
        *map(plain, (value, *first)),
        *(z if g is None else plain(g) for g, z in zip(second, zeros, strict=True)),
    ]


def assert_same_gradients(
    torch: Any,
    function: Callable,
    arrays: Sequence[np.ndarray],
    draw: Callable[[Sequence[int]], np.ndarray],
    tolerance: float = 0.0,
) -> None:
    """Compare `gradients` of both libraries in dtype, shape and elements.

    ``draw(shape)`` draws the numbers that the gradients are taken along.
    """
    copies = [torch.from_numpy(np.array(array)) for array in arrays]
    grad = draw(tuple(function(torch, *copies).shape))
    directions = [draw(array.shape) for array in arrays]
    results = gradients(convcore, function, arrays, grad, directions)
    expected = gradients(torch, function, arrays, grad, directions)
    for result, right in zip(results, expected, strict=True):
        assert result.dtype == right.dtype
        assert result.shape == right.shape
        np.testing.assert_allclose(result, right, rtol=tolerance, atol=tolerance)


def seen_by_a_hook(node: Any) -> list[tuple]:
    """Return a list that gets, when a node runs, the shapes of its gradients in and out."""
    seen: list[tuple] = []

    def shapes(grads: Sequence[Any]) -> tuple:
        return tuple(None if g is None else tuple(g.shape) for g in grads)

    node.register_hook(lambda inputs, outputs: seen.append((shapes(inputs), shapes(outputs))))
    return seen
