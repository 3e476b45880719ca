"""Real and imaginary parts, and complex views: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore

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
