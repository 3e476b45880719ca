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


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags_of_embeddings_say_which_index_is_in_which(torch, mode, last):
    results = []
    for library, function in ((convcore, _functions.embedding_bag), (torch, torch.embedding_bag)):
        weight = library.arange(12.0).view(4, 3).requires_grad_()
        offsets = library.tensor([0, 2, 2, 5] if last else [0, 2, 2])
        indices = library.tensor([3, 1, 0, 0, 2])
        out, bags, sizes, _ = function(
            weight, indices, offsets, mode=mode, include_last_offset=last
        )
        assert library is torch or bags.tolist() == [0, 0, 2, 2, 2]
        out.sum().backward()
        results.append([out.detach(), weight.grad, *([sizes] if mode else [])])  # for sums unset
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    with pytest.raises(ValueError, match="mode must be 0, 1 or 2"):
        _functions.embedding_bag(convcore.eye(2), indices, offsets, mode=3)


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
