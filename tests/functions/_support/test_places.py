"""Places that are named several times: their sums, and the values that stay."""

from __future__ import annotations

import numpy as np

import convcore


def test_gradients_of_repeated_indices_are_exact_and_the_same_each_time(rng):
    """Sums go in the order of the indices, so that no run differs from another."""
    index = convcore.from_numpy(rng.integers(0, 7, 1000))
    grad = convcore.from_numpy(rng.normal(size=(1000, 3)).astype("float32"))
    found = []
    for _ in range(3):
        x = convcore.zeros(7, 3, requires_grad=True)
        x[index].backward(grad)
        found.append(x.grad.numpy().tobytes())
    assert len(set(found)) == 1
    expected = np.zeros((7, 3))
    np.add.at(expected, index.numpy(), grad.numpy().astype("float64"))
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-3)


def test_setitem_gives_the_gradient_to_the_value_that_stays():
    """PyTorch gives all values at one place the gradient; only the last one has an effect."""
    v = convcore.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = convcore.zeros(3)
    y[[1, 0, 1]] = v
    assert y.tolist() == [2.0, 3.0, 0.0]
    (y * convcore.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert v.grad.tolist() == [0.0, 1.0, 10.0]
