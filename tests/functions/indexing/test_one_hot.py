"""One-hot vectors, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 0)])
@pytest.mark.parametrize("classes", [-1, 4, 7])
def test_one_hot_agrees_with_pytorch(torch, rng, shape, classes):
    given = rng.integers(0, 4, shape)
    if given.size == 0 and classes == -1:
        same_error(torch, lambda lib, x: lib.nn.functional.one_hot(x), given)
    else:
        agree(torch, lambda lib, x: lib.nn.functional.one_hot(x, num_classes=classes), given)


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        (np.array([0, 2]), 2),
        (np.array([0, -1]), 2),
        (np.array([0, -1]), -1),
        (np.array([0]), 0),
        (np.array([0]), -2),
        (np.array([0], np.int32), 1),
        (np.array([0.0]), 1),
        (np.array([], np.int64), 0),
        ([1, 2], 3),
    ],
)
def test_one_hot_refuses_with_the_words_of_pytorch(torch, given, classes):
    same_error(torch, lambda lib, x: lib.nn.functional.one_hot(x, classes), given)
