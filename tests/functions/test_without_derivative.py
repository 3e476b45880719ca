"""Operations without a derivative raise in the backward pass; none loses a gradient unnoticed."""

from __future__ import annotations

import pytest

import convcore

OPERATIONS = {
    "unique": lambda x: convcore.unique(x),
    "unique of slices": lambda x: convcore.unique(x, return_counts=True, dim=0)[0],
    "unique_consecutive": lambda x: convcore.unique_consecutive(x, return_inverse=True)[0],
    "nextafter": lambda x: convcore.nextafter(x, x.detach() + 1),
    "bincount's weights": lambda x: convcore.bincount(convcore.tensor([0, 1, 1]), x),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_backward_raises_instead_of_losing_a_gradient(name):
    x = convcore.tensor([0.5, 1.0, 3.0], requires_grad=True)
    loss = x.sum() + OPERATIONS[name](x).sum()
    with pytest.raises(NotImplementedError, match=r"the derivative for '.*' is not implemented"):
        loss.backward()


@pytest.mark.parametrize("name", OPERATIONS)
def test_without_a_gradient_the_operation_is_constant(name):
    x = convcore.tensor([0.5, 1.0, 3.0])
    assert not OPERATIONS[name](x).requires_grad
    with convcore.no_grad():
        assert not OPERATIONS[name](x.requires_grad_()).requires_grad


def test_indices_and_counts_are_constants():
    x = convcore.tensor([0.5, 1.0, 1.0], requires_grad=True)
    values, inverse, counts = convcore.unique(x, return_inverse=True, return_counts=True)
    assert values.requires_grad
    assert not inverse.requires_grad and not counts.requires_grad
