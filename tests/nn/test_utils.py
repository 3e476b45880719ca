"""nn.utils: gradients clipped, parameters as one vector; beside PyTorch's."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest
from against_torch import agree, same, tensors

import convcore
from convcore.nn import utils


def with_gradients(lib, arrays):
    """Return leaves that have the given gradients; a leaf without any comes last."""
    leaves = []
    for array in arrays:
        leaf = lib.from_numpy(np.zeros_like(array)).requires_grad_()
        leaf.grad = lib.from_numpy(array.copy())
        leaves.append(leaf)
    return [*leaves, lib.zeros(2, requires_grad=True)]


def drawn(rng):
    return [rng.normal(size=(3, 2)), rng.normal(size=4).astype("float32"), np.array(0.5)]


@pytest.mark.parametrize("norm_type", [2, 1, 3.5, 0.5, math.inf, "inf"])
@pytest.mark.parametrize("max_norm", [0.1, 1000])
@pytest.mark.parametrize("foreach", [None, False])
def test_clipping_by_norm_agrees_with_pytorch(torch, rng, norm_type, max_norm, foreach):
    arrays = drawn(rng)
    ours, theirs = (with_gradients(lib, arrays) for lib in (convcore, torch))
    total = utils.clip_grad_norm_(ours, max_norm, norm_type, foreach=foreach)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type, foreach=foreach)
    same(total, expected, "norm", 1e-6)
    for a, b in zip(ours[:-1], theirs[:-1], strict=True):
        same(a.grad, b.grad, "gradient", 1e-6)
    assert ours[-1].grad is None


def test_clipping_by_norm_takes_one_tensor_or_a_generator(rng):
    for given in (lambda leaf: leaf, lambda leaf: (one for one in [leaf])):
        (leaf, _) = with_gradients(convcore, [np.array([3.0, 4.0])])
        assert utils.clip_grad_norm_(given(leaf), 1).item() == 5
        np.testing.assert_allclose(leaf.grad, [0.6, 0.8], rtol=1e-5)


def test_clipping_nothing_gives_zero(torch):
    for lib in (convcore, torch):
        total = lib.nn.utils.clip_grad_norm_([lib.ones(1, requires_grad=True)], 1)
        assert (total.item(), total.ndim) == (0, 0)
        with pytest.warns(UserWarning, match="empty generator"):
            lib.nn.utils.clip_grad_norm_((one for one in ()), 1)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_clipping_of_no_finite_norm_raises_where_that_is_asked_for(torch, value):
    texts = []
    for lib in (convcore, torch):
        leaves = with_gradients(lib, [np.array([1.0, value])])
        with pytest.raises(RuntimeError) as raised:
            lib.nn.utils.clip_grad_norm_(leaves, 1, error_if_nonfinite=True)
        texts.append(str(raised.value))
        assert leaves[0].grad[0].item() == 1
        lib.nn.utils.clip_grad_norm_(leaves, 1)
        assert leaves[0].grad[0].item() != 1
    assert texts[0] == texts[1]


def test_norm_and_clipping_are_there_apart(torch, rng):
    arrays = drawn(rng)
    found = []
    for lib in (convcore, torch):
        leaves = with_gradients(lib, arrays)
        total = lib.nn.utils.get_total_norm([leaf.grad for leaf in leaves[:-1]])
        lib.nn.utils.clip_grads_with_norm_(leaves, 0.5, total)
        found.append([leaf.grad for leaf in leaves[:-1]])
    for ours, theirs in zip(*found, strict=True):
        same(ours, theirs, "gradient", 1e-6)


def test_clipping_by_value_agrees_with_pytorch(torch, rng):
    arrays = drawn(rng)
    ours, theirs = (with_gradients(lib, arrays) for lib in (convcore, torch))
    assert utils.clip_grad_value_(ours, 0.3) is None
    torch.nn.utils.clip_grad_value_(theirs, 0.3)
    for a, b in zip(ours[:-1], theirs[:-1], strict=True):
        same(a.grad, b.grad, "gradient")


def test_clipping_changes_the_gradients_themselves(rng):
    (leaf, _) = with_gradients(convcore, [rng.normal(size=5)])
    grad = leaf.grad
    utils.clip_grad_norm_(leaf, 0.01)
    utils.clip_grad_value_(leaf, 0.001)
    assert leaf.grad is grad
    assert grad._version == 2
    assert not grad.requires_grad


def test_vector_of_parameters_is_differentiable_as_in_pytorch(torch, rng, seed):
    arrays = rng.normal(size=(2, 3)), rng.normal(size=4), np.array(2.0)
    agree(torch, lambda lib, *x: lib.nn.utils.parameters_to_vector(x), *arrays, seed=seed, nodes=2)


def test_parameters_become_parts_of_the_vector(torch):
    for lib in (convcore, torch):
        net = lib.nn.Linear(2, 3)
        vector = lib.arange(9.0)
        lib.nn.utils.vector_to_parameters(vector, net.parameters())
        assert net.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert net.bias.tolist() == [6, 7, 8]
        assert net.weight.requires_grad
        vector[0] = 10
        assert net.weight[0, 0].item() == 10
        back = lib.nn.utils.parameters_to_vector(net.parameters())
        assert back.tolist() == vector.tolist()


def test_vector_that_does_not_fit_is_refused(torch):
    for lib in (convcore, torch):
        with pytest.raises(RuntimeError):
            lib.nn.utils.vector_to_parameters(lib.zeros(3), tensors(lib, (np.zeros(4),)))
        with pytest.raises(TypeError, match=r"expected torch\.Tensor, but got: list"):
            lib.nn.utils.vector_to_parameters([1.0], [])
        with pytest.raises((RuntimeError, ValueError)):
            lib.nn.utils.parameters_to_vector([])


def test_masks_of_several_methods_have_the_tensors_dtype(lib):
    prune = importlib.import_module(f"{lib.__name__}.nn.utils.prune")
    method = prune.L1Unstructured(amount=2)
    method._tensor_name = "weight"
    several = prune.PruningContainer()
    several._tensor_name = "weight"
    several.add_pruning_method(method)
    before = lib.tensor([[1, 1, 1, 0], [1, 1, 0, 1]])
    mask = several.compute_mask(lib.arange(1.0, 9).view(2, 4), before)
    assert mask.dtype is lib.float32
    assert mask.tolist() == [[0, 0, 1, 0], [1, 1, 0, 1]]
