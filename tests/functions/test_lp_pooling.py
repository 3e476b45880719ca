"""L_p pooling and pooling with indices, beside PyTorch's and by their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F

SHAPES = {1: (2, 3, 7), 2: (2, 3, 7, 5), 3: (3, 5, 4, 5)}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("p", [1, 2, 3.0])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_norms_of_windows_agree_with_pytorch(torch, rng, rank, p, ceil_mode):
    x = rng.uniform(0.5, 2, SHAPES[rank])
    call = lambda m, x: getattr(m.nn.functional, f"lp_pool{rank}d")(  # noqa: E731
        x, p, 2, 1 if ceil_mode else None, ceil_mode
    )
    agree(torch, call, x, rtol=1e-9)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_poolings_with_indices_agree_with_pytorch(torch, rng, rank):
    x = rng.normal(size=SHAPES[rank])
    f = lambda m, name: getattr(m.nn.functional, f"{name}{rank}d_with_indices")  # noqa: E731
    agree(torch, lambda m, x: f(m, "max_pool")(x.detach(), 2), x)
    agree(torch, lambda m, x: f(m, "max_pool")(x.detach(), 3, 1, 1, 1, True, False), x)
    agree(torch, lambda m, x: f(m, "adaptive_max_pool")(x.detach(), 2), x)


def test_a_norm_by_hand():
    x = convcore.tensor([[[3.0, 4.0, 5.0, 12.0]]])
    assert F.lp_pool1d(x, 2, 2).tolist() == [[pytest.approx([5, 13])]]
    np.testing.assert_allclose(F.lp_pool1d(x, 1, 4).numpy(), [[[24]]])


def test_gradients_are_those_of_finite_differences(rng):
    x = convcore.from_numpy(rng.uniform(0.5, 2, (1, 2, 4, 4))).requires_grad_()
    assert gradcheck(lambda x: F.lp_pool2d(x, 3, (2, 3), 1), (x,))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("p", [np.inf, -np.inf])
def test_infinite_norms_are_the_largest_and_smallest_magnitudes(torch, rng, rank, p):
    call = lambda m, x: getattr(m.nn.functional, f"lp_pool{rank}d")(x, p, 2, None, True)  # noqa: E731
    agree(torch, call, rng.normal(size=SHAPES[rank]))
