"""normalize, cosine_similarity and pairwise_distance beside PyTorch's; edges without PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from edges import agree_at_first_order

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F


def test_normalize_and_similarities_agree_with_pytorch(torch, rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    agree(torch, lambda m, x: m.nn.functional.normalize(x), x)
    agree(torch, lambda m, x: m.nn.functional.normalize(x, p=1, dim=0), x)
    agree(torch, lambda m, x: m.nn.functional.normalize(x, p=3.0, dim=(0, 1)), x, rtol=1e-9)
    agree(torch, lambda m, x, y: m.nn.functional.cosine_similarity(x, y), x, y)
    agree(torch, lambda m, x, y: m.nn.functional.cosine_similarity(x, y[:1], dim=-1), x, y)
    agree(torch, lambda m, x, y: m.nn.functional.cosine_similarity(x, y[0], dim=1), x, y)
    agree(torch, lambda m, x, y: m.nn.functional.cosine_similarity(x[:, None], y, dim=-1), x, y)
    agree(torch, lambda m, x, y: m.nn.functional.pairwise_distance(x, y), x, y, rtol=1e-9)
    zero = convcore.zeros(2, 3, requires_grad=True)
    F.normalize(zero).sum().backward()
    assert zero.grad.isfinite().all()


def test_a_vector_of_zeros_has_a_similarity_of_zero():
    x = convcore.tensor([[0.0, 0.0], [3.0, 4.0]])
    assert F.cosine_similarity(x, convcore.ones(1, 2)).tolist()[0] == 0
    cosine = F.cosine_similarity(x, convcore.tensor([4.0, 3.0]), dim=1)[1]
    assert cosine.item() == pytest.approx(0.96)
    assert F.normalize(x).tolist() == [[0, 0], [0.6000000238418579, 0.800000011920929]]


def test_distance_of_a_vector_to_itself_is_the_length_of_eps():
    x = convcore.arange(4.0).double()
    distance = F.pairwise_distance(x, x, eps=0.5)
    assert abs(distance.item() - (4 * 0.5**2) ** 0.5) < 1e-12


def test_distances_of_all_pairs_agree_with_pytorch(torch, rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(2, 5, 4))
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        agree(torch, lambda m, x, y, p=p: m.cdist(x.detach(), y.detach(), p), x, y, rtol=1e-9)
    many = rng.normal(size=(30, 4))
    agree(torch, lambda m, x, y: m.cdist(x.detach(), y.detach()), many, x, rtol=1e-6)
    agree(torch, lambda m, x, y: m.dist(x, y[0, :3], 3), x, y, rtol=1e-9)
    agree(torch, lambda m, x: m.renorm(x, 2, 0, 1.5), x, rtol=1e-6)
    agree(torch, lambda m, x: x.clone().renorm_(1, 1, 2.0), x, rtol=1e-6)
    same_error(torch, lambda m, x: m.cdist(x, x[0]), x)
    whole = np.array([[3, 4], [1, 2]])
    agree(torch, lambda m, x, y: m.cosine_similarity(x, y[:2, :2]), whole, x)
    same_error(torch, lambda m, x: m.cosine_similarity(x, x), whole)


def test_gradients_of_distances_are_those_of_finite_differences(rng):
    x, y = (convcore.from_numpy(rng.normal(size=(3, 2))).requires_grad_() for _ in range(2))
    for p in (1.0, 2.0, 3.0):
        assert gradcheck(lambda x, y, p=p: convcore.cdist(x, y, p), (x, y))
    by_product = "use_mm_for_euclid_dist"
    assert gradcheck(lambda x, y: convcore.cdist(x, y, 2.0, by_product), (x, y))
    assert gradcheck(lambda x: convcore.renorm(x, 2, 0, 0.5), (x,))
    same = convcore.ones(2, 2, requires_grad=True)
    convcore.cdist(same, same.detach(), 2.0, by_product).sum().backward()
    assert same.grad.tolist() == [[0, 0], [0, 0]]


def test_the_axis_of_a_similarity_may_be_one_that_broadcasts():
    one, other = convcore.ones(2, 1), convcore.tensor([[3.0, 3.0, 3.0], [1.0, 0.0, 0.0]])
    assert F.cosine_similarity(one, other, -1).tolist() == pytest.approx([1, 3**-0.5])
    assert F.cosine_similarity(one, other, -1).shape == (2,)


def test_similarities_along_broadcast_axes_agree_with_pytorch(torch, rng):
    x, y = rng.normal(size=(2, 1)), rng.normal(size=(2, 3))
    agree(torch, lambda m, x, y: m.nn.functional.cosine_similarity(x, y, -1), x, y)
    agree(torch, lambda m, x, y: m.nn.functional.cosine_similarity(y, x[0], 1), x, y)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_renorm_of_slices_of_nan_passes_their_gradient_on(torch, p):
    x = np.array([[np.nan, 1.0], [3.0, 4.0], [0.1, 0.2]])
    agree_at_first_order(torch, lambda m, x: m.renorm(x, p, 0, 1.0), x[:1])
    agree_at_first_order(torch, lambda m, x: m.renorm(x, p, 0, 1.0)[::2], x)
