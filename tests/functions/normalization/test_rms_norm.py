"""Root mean square normalisation: values, gradients and errors."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F


def test_the_mean_square_becomes_one(rng):
    x = rng.normal(size=(4, 3, 5))
    out = F.rms_norm(convcore.from_numpy(x), (3, 5), eps=0.0).numpy()
    expected = x / np.sqrt((x**2).mean((1, 2), keepdims=True))
    np.testing.assert_allclose(out, expected, rtol=1e-13)


@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize("sizes", [(5,), (3, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rms_norm_agrees_with_pytorch(torch, rng, eps, sizes, dtype):
    x, w = (rng.normal(size=shape).astype(dtype) for shape in ((4, 3, 5), sizes))

    def function(lib, x, *w):
        return lib.nn.functional.rms_norm(x, sizes, *w, eps=eps)

    agree(torch, function, x, w, rtol=1e-10 if dtype == "float64" else 1e-4)
    agree(torch, function, x, rtol=1e-10 if dtype == "float64" else 1e-4)


def test_half_is_computed_in_float32(torch):
    x = np.array([[1e-4, 2e-4, 3e2]], "f2")
    ours, theirs = (
        lib.nn.functional.rms_norm(lib.from_numpy(x), (3,)) for lib in (convcore, torch)
    )
    assert ours.dtype == convcore.float16
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3)


def test_gradcheck(rng):
    x, w = (convcore.from_numpy(rng.normal(size=n)).requires_grad_() for n in ((2, 4), 4))
    assert gradcheck(lambda x, w: F.rms_norm(x, (4,), w), (x, w))


@pytest.mark.parametrize(
    "function",
    [
        lambda F, x: F.rms_norm(x, 4),
        lambda F, x: F.rms_norm(x, ()),
        lambda F, x: F.rms_norm(x, (4,), x[0, 0, :3]),
        lambda F, x: F.rms_norm(x.long(), (4,)),
    ],
)
def test_errors_are_pytorchs(torch, function, rng):
    x = rng.normal(size=(2, 3, 4))
    same_error(torch, lambda lib, x: function(lib.nn.functional, x.detach()), x)


def test_the_last_axes_must_have_the_sizes():
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[3\], expected input with"):
        F.rms_norm(convcore.ones(2, 4), (3,))
