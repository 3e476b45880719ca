"""Local response normalization beside PyTorch's and by its formula."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F


@pytest.mark.parametrize("shape", [(2, 6, 3), (2, 6, 3, 2), (1, 4, 2, 2, 3)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_normalization_agrees_with_pytorch(torch, rng, shape, size):
    call = lambda m, x: m.nn.functional.local_response_norm(x, size, 0.3, 0.6, 1.5)  # noqa: E731
    agree(torch, call, rng.normal(size=shape), rtol=1e-9)


def test_values_by_hand_and_errors(torch):
    x = convcore.tensor([[[1.0], [2.0], [3.0]]])
    found = F.local_response_norm(x, 3, alpha=3.0, beta=1.0, k=0.0)
    assert found.flatten().tolist() == pytest.approx([1 / 5, 2 / 14, 3 / 13])
    assert F.local_response_norm(convcore.ones(0, 2, 2), 3).shape == (0, 2, 2)
    same_error(torch, lambda m, x: m.nn.functional.local_response_norm(x, 2), np.ones((2, 2)))


def test_gradients_are_those_of_finite_differences(rng):
    x = convcore.from_numpy(rng.normal(size=(1, 5, 2, 2))).requires_grad_()
    assert gradcheck(lambda x: F.local_response_norm(x, 3, 0.5), (x,))
