"""Fractional max pooling beside PyTorch's, with the same random windows; errors."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "options", [{"output_size": (3, 5)}, {"output_ratio": (0.5, 0.7)}, {"output_size": 1}]
)
def test_drawn_windows_agree_with_pytorch(torch, rng, dtype, options):
    def call(m, x, kernel):
        m.manual_seed(7)
        f = m.nn.functional
        plain = f.fractional_max_pool2d(x, kernel, **options)
        values, indices = f.fractional_max_pool2d(x, kernel, **options, return_indices=True)
        assert f.fractional_max_pool2d_with_indices(x, kernel, **options)[1].shape == indices.shape
        return plain, values, indices

    x = rng.normal(size=(2, 3, 9, 11)).astype(dtype)
    for kernel in (2, (3, 1)):
        agree(torch, call, x, kernel)
    agree(torch, call, x[0].copy(), 2)


def test_drawn_windows_of_volumes_agree_with_pytorch(torch, rng):
    def call(m, x):
        m.manual_seed(7)
        return m.nn.functional.fractional_max_pool3d(x, 2, output_size=(2, 3, 4))

    agree(torch, call, rng.normal(size=(2, 2, 5, 6, 8)))


def test_the_maxima_are_those_at_the_indices(rng):
    x = convcore.from_numpy(rng.normal(size=(1, 2, 6, 7)))
    values, indices = F.fractional_max_pool2d(x, 2, 3, return_indices=True)
    taken = x.flatten(2).gather(2, indices.flatten(2)).view_as(values)
    assert taken.equal(values)


def test_given_samples_agree_with_pytorch(torch, rng):
    samples = rng.uniform(size=(1, 2, 2))
    agree(
        torch,
        lambda m, x, s: m.nn.functional.fractional_max_pool2d(
            x, 2, output_size=3, _random_samples=s.detach()
        ),
        *(rng.normal(size=(1, 2, 7, 9)), samples),
    )


def test_errors_are_pytorchs(torch):
    x = np.ones((1, 1, 5, 5))
    f = lambda m: m.nn.functional  # noqa: E731
    same_error(torch, lambda m, x: f(m).fractional_max_pool2d(x, 2), x)
    same_error(torch, lambda m, x: f(m).fractional_max_pool2d(x, 2, output_size=5), x)
    same_error(torch, lambda m, x: f(m).fractional_max_pool3d(x, 2, output_size=4), x)
    same_error(torch, lambda m, x: f(m).fractional_max_pool2d(x, (2,), output_size=3), x)
    same_error(torch, lambda m, x: f(m).fractional_max_pool3d(x, 2, output_size=(3, 3)), x)
    same_error(torch, lambda m, x: f(m).fractional_max_pool2d(x, 2, None, (0.5,) * 3), x)
    same_error(torch, lambda m, x: m.nn.FractionalMaxPool3d((2, 0, 2), 3), x)
    empty = np.ones((1, 0, 5, 5))
    same_error(torch, lambda m, x: f(m).fractional_max_pool2d(x, 2, output_size=3), empty)


@pytest.mark.parametrize("shape", [(1, 1), (0, 1, 2), (1, 2, 2), (1, 1, 3)])
def test_samples_that_do_not_fit_are_refused(lib, shape):
    pool = lib.nn.functional.fractional_max_pool2d
    with pytest.raises(RuntimeError, match="Expect _random_samples"):
        pool(lib.ones(1, 1, 5, 5), 2, 3, _random_samples=lib.ones(shape))


def test_gradients_are_those_of_finite_differences(rng):
    x = convcore.from_numpy(rng.permutation(42).reshape(1, 1, 6, 7).astype(float))
    samples = convcore.tensor([[[0.3, 0.6]]], dtype=convcore.float64)
    pool = lambda x: F.fractional_max_pool2d(x, 2, 4, _random_samples=samples)  # noqa: E731
    assert gradcheck(pool, (x.requires_grad_(),))
