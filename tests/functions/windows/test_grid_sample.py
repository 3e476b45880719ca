"""grid_sample and affine_grid beside PyTorch's: values, both gradients, errors."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F

PADDINGS = ("zeros", "border", "reflection")


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("corners", [False, True])
def test_samples_and_gradients_agree_with_pytorch(torch, rng, rank, mode, padding, corners):
    if rank == 3 and mode == "bicubic":
        pytest.skip("there is no bicubic of volumes")
    x = rng.normal(size=(2, 3, *(5, 4, 6)[:rank]))
    weight = rng.normal(size=(2, 3, *(3, 4, 2)[:rank]))
    for reach in (0.9, 1.7, 4.0):
        grid = rng.uniform(-reach, reach, (2, *(3, 4, 2)[:rank], rank))
        found = []
        for m in (convcore, torch):
            image, places = (m.from_numpy(a.copy()).requires_grad_() for a in (x, grid))
            out = m.nn.functional.grid_sample(image, places, mode, padding, corners)
            (out * m.from_numpy(weight)).sum().backward()
            found.append((out.detach().numpy(), image.grad.numpy(), places.grad.numpy()))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("corners", [False, True])
def test_affine_grids_agree_with_pytorch(torch, rng, corners):
    def call(m, theta, size):
        return m.nn.functional.affine_grid(theta, size, align_corners=corners)

    agree(torch, call, rng.normal(size=(2, 2, 3)), (2, 3, 4, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch and we warn of a single row
        agree(torch, call, rng.normal(size=(2, 2, 3)), (2, 3, 1, 5))
    agree(torch, call, rng.normal(size=(1, 3, 4)), (1, 1, 2, 3, 4))
    agree(torch, call, rng.normal(size=(2, 2, 3)), (2, 3, 2, 1 + corners), nodes=1)
    theta = convcore.from_numpy(rng.normal(size=(2, 3, 4))).requires_grad_()
    grid = F.affine_grid(theta, (2, 1, 2, 3, 4), align_corners=corners)
    passes = [convcore.autograd.grad(grid.sum(), theta)[0] for _ in range(2)]  # nothing is freed
    assert passes[0].equal(passes[1])


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("corners", [False, True])
def test_the_identity_gives_the_image(rng, padding, corners):
    x = convcore.from_numpy(rng.normal(size=(1, 2, 4, 5)))
    theta = convcore.eye(2, 3, dtype=convcore.float64)[None]
    grid = F.affine_grid(theta, x.shape, corners)
    for mode in ("bilinear", "nearest", "bicubic"):
        assert F.grid_sample(x, grid, mode, padding, corners).allclose(x)


def test_float16_empty_batches_and_unread_nan():
    x = convcore.arange(4.0).reshape(1, 1, 2, 2)
    grid = convcore.tensor([[[[-1.0, -1.0], [9.0, 9.0]]]])
    half = F.grid_sample(x.half(), grid.half(), align_corners=True)
    assert half.dtype is convcore.float16 and half.tolist() == [[[[0, 0]]]]
    x[0, 0] = float("nan")
    assert F.grid_sample(x, grid[:, :, 1:], align_corners=True).tolist() == [[[[0]]]]
    assert F.grid_sample(x[:0], grid[:0], align_corners=True).shape == (0, 1, 1, 2)
    assert F.grid_sample(x[:, :0], grid, align_corners=True).shape == (1, 0, 1, 2)


def test_errors_are_pytorchs(torch):
    x, grid = np.ones((1, 1, 2, 2)), np.zeros((1, 1, 1, 2))

    def call(*args, **options):
        return lambda m, x, g: m.nn.functional.grid_sample(
            x, g, *args, align_corners=False, **options
        )

    same_error(torch, call("cubic"), x, grid)
    same_error(torch, call(padding_mode="same"), x, grid)
    same_error(torch, call(), x, np.zeros((2, 1, 1, 2)))
    same_error(torch, call(), x, np.zeros((1, 1, 1, 3)))
    same_error(torch, call(), x[:, :, :0], grid)
    same_error(torch, call(), x, grid.astype("float32"))
    same_error(torch, call("bicubic"), np.ones((1, 1, 2, 2, 2)), np.zeros((1, 1, 1, 1, 3)))
    affine = lambda m, t, size: m.nn.functional.affine_grid(t, size, align_corners=False)  # noqa: E731
    same_error(torch, affine, np.ones((1, 2, 3)), (1, 1, 2))
    same_error(torch, affine, np.ones((1, 2, 2)), (1, 1, 2, 2))
    same_error(torch, affine, np.ones((1, 2, 3)), (1, 1, 0, 2))
    same_error(torch, affine, np.ones((2, 2, 3)), (1, 1, 2, 2))
    same_error(torch, affine, np.ones((1, 3, 4)), (2, 1, 2, 2, 2))
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid"):
        F.affine_grid(convcore.ones(1, 2, 3), (1, 1, 1, 1))
    with pytest.warns(UserWarning, match="unit-size grids"):
        F.affine_grid(convcore.ones(1, 2, 3), (1, 1, 1, 1), True)
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid"):
        F.grid_sample(convcore.ones(1, 1, 1, 1), convcore.ones(1, 1, 1, 2))


def test_gradients_are_those_of_finite_differences_and_have_no_further_ones(rng):
    x = convcore.from_numpy(rng.normal(size=(1, 2, 4, 3))).requires_grad_()
    grid = convcore.from_numpy(rng.uniform(-1.2, 1.2, (1, 2, 3, 2))).requires_grad_()
    for mode in ("bilinear", "bicubic"):
        for padding in PADDINGS:
            sample = lambda x, g, how=(mode, padding): F.grid_sample(x, g, *how, False)  # noqa: E731
            assert gradcheck(sample, (x, grid))
    (grad,) = convcore.autograd.grad(
        F.grid_sample(x, grid, align_corners=False).sum(), grid, create_graph=True
    )
    with pytest.raises(RuntimeError, match="is not implemented"):
        grad.sum().backward()


def test_samples_of_one_channel_are_contiguous():
    grid = F.affine_grid(convcore.eye(2, 3).expand(2, 2, 3), (2, 1, 4, 5), align_corners=False)
    found = F.grid_sample(convcore.ones(2, 1, 4, 5), grid, align_corners=False)
    assert found.stride() == (20, 20, 5, 1)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("dtype", [convcore.float32, convcore.float64])
@pytest.mark.parametrize("align", [True, False])
def test_places_far_outside_see_the_border(mode, dtype, align):
    image = convcore.tensor([[[[1.0, 2.0, 3.0, 4.0]]]], dtype=dtype)
    for far in (1e4, 2.0**31, 1e13, 1e30, math.inf):
        grid = convcore.tensor([[[[far, 0.0], [-far, 0.0]]]], dtype=dtype)
        for padding, expected in (("border", [4, 1]), ("zeros", [0, 0])):
            found = F.grid_sample(image, grid, mode, padding, align)
            assert found.flatten().tolist() == expected, (padding, far)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_reflections_far_outside_are_those_of_their_period(mode):
    """A place a whole number of periods away, which float64 holds exactly, is the same place."""
    image = convcore.tensor([[[[1.0, 2.0, 3.0, 4.0]]]], dtype=convcore.float64)
    near = convcore.tensor([[[[x, 0.0] for x in (-0.75, 0.25, 1.5)]]], dtype=convcore.float64)
    far = near + convcore.tensor([4 * 2.0**40, 0.0], dtype=convcore.float64)
    same = [F.grid_sample(image, grid, mode, "reflection", False) for grid in (near, far)]
    assert same[0].tolist() == same[1].tolist()


@pytest.mark.parametrize("rank", [2, 3])
def test_nearest_pixels_have_no_slope_even_if_infinite(rank):
    x = convcore.full((1, 1, *(2,) * rank), np.inf)
    grid = convcore.zeros(1, *(1,) * rank, rank, requires_grad=True)
    F.grid_sample(x, grid, "nearest", "border", align_corners=False).backward()
    assert not grid.grad.any()
