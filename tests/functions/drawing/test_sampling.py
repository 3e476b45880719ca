"""Random numbers drawn into a tensor in place, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import same_error

import convcore


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.uniform_(-1, 3),
        lambda x: x.normal_(2, 3),
        lambda x: x.random_(10),
        lambda x: x.random_(-5, 5),
        lambda x: x.bernoulli_(x.detach().clone().fill_(0.3)),
        lambda x: x.exponential_(2),
        lambda x: x.cauchy_(1, 0.5),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sampling_in_place_draws_pytorchs_numbers(torch, call, dtype):
    drawn = []
    for lib in (convcore, torch):
        lib.manual_seed(5)
        x = lib.zeros(4, 5, dtype=getattr(lib, dtype))
        assert call(x) is x
        drawn.append(x.numpy())
    np.testing.assert_allclose(*drawn, rtol=1e-5, atol=1e-6)


def test_sampling_in_place_follows_its_distribution():
    x = convcore.empty(20_000, dtype=convcore.float64)
    generator = convcore.Generator().manual_seed(1)
    assert abs(x.exponential_(2.0, generator=generator).mean().item() - 0.5) < 0.02
    assert abs(x.std().item() - 0.5) < 0.03
    assert x.min() >= 0
    assert abs(x.cauchy_(3.0, generator=generator).median().item() - 3) < 0.05
    assert abs(x.bernoulli_(0.3, generator=generator).mean().item() - 0.3) < 0.02
    with pytest.raises(RuntimeError, match="lambda > 0"):
        x.exponential_(0.0)


def test_bad_parameters_and_dtypes_are_refused_with_pytorchs_words(torch):
    same_error(torch, lambda m: m.zeros(2).long().exponential_())
    same_error(torch, lambda m: m.zeros(2).cauchy_(0, -1))


def test_sampling_in_place_cuts_the_gradient():
    x = convcore.ones(3, requires_grad=True)
    y = x * 2
    version = y._version
    y.uniform_()
    assert y._version == version + 1
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="leaf"):
        x.normal_()
