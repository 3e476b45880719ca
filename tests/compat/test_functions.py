"""Functions that only `torch` has: what they return is PyTorch's."""

import numpy as np
import pytest

import convcore
from convcore.compat import torch as door
from convcore.compat.torch import _functions


@pytest.mark.parametrize("bounds", [(0, 1, 0.1), (0, 10, 0.3), (1, 5, 1), (-3.3, 7.7, 0.7)])
def test_range_includes_its_end_and_rounds_once(torch, bounds):
    with pytest.warns(UserWarning, match="range is deprecated"):
        ours = door.range(*bounds)
    assert ours.tolist() == np.float32(bounds[0] + bounds[2] * np.arange(len(ours))).tolist()
    assert abs(float(ours[-1]) - bounds[1]) < bounds[2]
    with pytest.warns(UserWarning, match="range is deprecated"):
        assert ours.tolist() == torch.range(*bounds).tolist()


def test_copies_of_views_that_are_no_methods(torch):
    for library, functions in ((convcore, door), (torch, torch)):
        x = library.ones(2, dtype=library.complex64)
        find = functions._fallback if functions is door else functions.__getattribute__
        copied = find("view_as_real_copy")(x)
        copied.fill_(3)
        assert copied.shape == (2, 2) and x.real.tolist() == [1, 1]
        assert find("view_as_complex_copy")(copied).tolist() == [3 + 3j, 3 + 3j]


def test_layers_take_their_arguments_in_the_order_of_torch(torch):
    results = []
    for library, functions in ((convcore, _functions), (torch, torch)):
        library.manual_seed(0)
        x, statistics = library.randn(3, 2, 4), (library.zeros(2), library.ones(2))
        affine = library.tensor([2.0, 3.0]), library.tensor([1.0, 0.0])
        results.append(
            [
                functions.batch_norm(x, *affine, *statistics, True, 0.1, 1e-5, False),
                functions.instance_norm(x, *affine, None, None, True, 0.1, 1e-5, False),
                functions.embedding(library.eye(3), library.tensor([2, 0])),
                *statistics,
            ]
        )
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-6)
