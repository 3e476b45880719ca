"""normalize, cosine_similarity and pairwise_distance beside PyTorch's; edges without PyTorch."""

from __future__ import annotations

from against_torch import agree

import convcore
from convcore.nn import functional as F


def test_normalize_and_similarities_agree_with_pytorch(torch, rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    agree(torch, lambda m, x: m.nn.functional.normalize(x), x)
    agree(torch, lambda m, x: m.nn.functional.normalize(x, p=1, dim=0), x)
    agree(torch, lambda m, x: m.nn.functional.normalize(x, p=3.0, dim=(0, 1)), x, rtol=1e-9)
    agree(torch, lambda m, x, y: m.nn.functional.cosine_similarity(x, y), x, y)
    agree(torch, lambda m, x, y: m.nn.functional.cosine_similarity(x, y[:1], dim=-1), x, y)
    agree(torch, lambda m, x, y: m.nn.functional.pairwise_distance(x, y), x, y, rtol=1e-9)
    zero = convcore.zeros(2, 3, requires_grad=True)
    F.normalize(zero).sum().backward()
    assert zero.grad.isfinite().all()


def test_a_vector_of_zeros_has_a_similarity_of_zero():
    x = convcore.tensor([[0.0, 0.0], [3.0, 4.0]])
    assert F.cosine_similarity(x, convcore.ones(1, 2)).tolist()[0] == 0
    assert F.normalize(x).tolist() == [[0, 0], [0.6000000238418579, 0.800000011920929]]


def test_distance_of_a_vector_to_itself_is_the_length_of_eps():
    x = convcore.arange(4.0).double()
    distance = F.pairwise_distance(x, x, eps=0.5)
    assert abs(distance.item() - (4 * 0.5**2) ** 0.5) < 1e-12
