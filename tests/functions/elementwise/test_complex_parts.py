"""Real and imaginary parts, and complex views: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck

COMPLEX: dict[str, Callable] = {
    "real": lambda lib, z: z.real * 2,
    "imag": lambda lib, z: z.imag * z.real,
    "real-function": lambda lib, z: lib.real(z) * lib.imag(z),
    "view-as-real": lambda lib, z: lib.view_as_real(z) * 3,
    "view-as-complex": lambda lib, z: lib.view_as_complex(lib.view_as_real(z) * 2) * z,
    "of-transposed": lambda lib, z: lib.view_as_real(z.t())[..., 1] * 2,
}


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_parts_of_complex_numbers_like_torch(torch, rng, seed, name, dtype):
    z = (rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))).astype(dtype)
    agree(torch, COMPLEX[name], z, seed=seed)


def test_parts_of_complex_numbers_are_views():
    z = convcore.zeros(2, dtype=convcore.complex64)
    z.real.add_(1)
    z.imag.add_(2)
    assert z.tolist() == [1 + 2j, 1 + 2j]
    assert z._version == 2


def test_complex_view_errors_like_torch(torch):
    x = np.zeros((2, 3))
    for function in (
        lambda lib, x: x.imag,
        lambda lib, x: lib.view_as_real(x),
        lambda lib, x: lib.view_as_complex(x),
        lambda lib, x: lib.view_as_complex(x[:, :2].t()[:2].t().flip(0)[:, ::2]),
    ):
        same_error(torch, function, x)


def test_complex_numbers_of_parts_agree_with_pytorch(torch, rng, seed):
    x = rng.uniform(0.1, 1, (2, 3))
    for name in ("complex", "polar"):
        call = lambda m, x, y, name=name: getattr(m, name)(x, y)  # noqa: E731
        agree(torch, call, x, x[::-1].copy(), seed=seed)
        same_error(torch, call, x, x.astype("float32"))
        same_error(torch, call, x.astype(int), x)
    with pytest.raises(TypeError, match=r"argument 'real' .*must be Tensor"):
        convcore.complex(1, 2)
    joined = convcore.complex(convcore.tensor([1.0, 2.0]), convcore.tensor([3.0]))
    assert joined.tolist() == [1 + 3j, 2 + 3j]
    assert convcore.polar(convcore.tensor(2.0), convcore.tensor(0.0)).item() == 2


def test_gradient_of_no_complex_numbers():
    x = convcore.zeros(0, 2, dtype=convcore.complex64, requires_grad=True)
    turned = convcore.zeros(2, 2, 0).permute(2, 0, 1)  # no last stride of 1
    convcore.view_as_real(x).backward(turned)
    assert x.grad.shape == (0, 2)


def test_parts_are_assigned_as_in_pytorch(torch, rng):
    def call(m, z, x):
        z = z.clone()
        z.real = x
        z.imag = 2
        return z

    agree(torch, call, rng.normal(size=3) + 1j, rng.normal(size=3))
    x = convcore.zeros(2)
    x.real = 3
    assert x.tolist() == [3, 3]


def test_gradients_are_those_of_finite_differences(rng):
    x, y = (convcore.from_numpy(rng.normal(size=(3,))).requires_grad_() for _ in range(2))
    assert gradcheck(convcore.complex, (x, y))
    assert gradcheck(convcore.polar, (x, y))
