"""Run the same function on convcore and on PyTorch and compare all that can be seen of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import convcore


def outcome(library: Any, function: Callable, *arguments: Any) -> Any:
    """Return what a call gives, or the kind and the first line of the error that it raises."""
    try:
        return function(library, *arguments)
    except Exception as error:
        return type(error), str(error).split("\n")[0]


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

    def leaf(array: np.ndarray) -> Any:
        return library.from_numpy(array).requires_grad_()

    leaves = [leaf(array) for array in arrays]
    value = function(library, *leaves)
    v = leaf(grad)
    first = library.autograd.grad(value, leaves, v, create_graph=True)
    total = sum((g * library.from_numpy(d)).sum() for g, d in zip(first, directions, strict=True))
    second = library.autograd.grad(total, (*leaves, v), library.ones_like(total), allow_unused=True)
    zeros = [np.zeros_like(array) for array in (*arrays, grad)]
    return [
        *map(_array, (value, *first)),
        *(z if g is None else _array(g) for g, z in zip(second, zeros, strict=True)),
    ]


def _array(tensor: Any) -> np.ndarray:
    """Return a tensor's elements; PyTorch may not have conjugated them yet."""
    tensor = tensor.detach()
    return (tensor if isinstance(tensor, convcore.Tensor) else tensor.resolve_conj()).numpy()


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
    writable = [np.array(array, order="K") for array in arrays]
    expected = gradients(torch, function, writable, grad, directions)
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
