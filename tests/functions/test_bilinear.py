"""The bilinear map: values, gradients and errors."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F

SIZES = [(), (2,), (2, 3), (0,)]


def numbers(rng, lead):
    return [rng.normal(size=size) for size in ((*lead, 3), (*lead, 4), (5, 3, 4), 5)]


@pytest.mark.parametrize("lead", SIZES)
def test_bilinear_is_its_formula(rng, lead):
    x, y, w, b = numbers(rng, lead)
    out = F.bilinear(*map(convcore.from_numpy, (x, y, w, b)))
    expected = np.einsum("...i,oij,...j->...o", x, w, y) + b
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("lead", SIZES[:3])
@pytest.mark.parametrize("bias", [True, False])
def test_bilinear_agrees_with_pytorch(torch, rng, lead, bias):
    given = numbers(rng, lead)[: 4 if bias else 3]
    agree(torch, lambda lib, *given: lib.nn.functional.bilinear(*given), *given, rtol=1e-11)


def test_gradcheck(rng):
    given = [convcore.from_numpy(x).requires_grad_() for x in numbers(rng, (2,))]
    assert gradcheck(F.bilinear, given)


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (3, 4), (5, 3, 4)],
        [(2, 2), (2, 4), (5, 3, 4)],
        [(2, 3), (2, 5), (5, 3, 4)],
        [(2, 3), (1, 2, 4), (5, 3, 4)],
        [(2, 3), (2, 4), (5, 3, 4), (4,)],
    ],
)
def test_errors_are_pytorchs(torch, shapes):
    same_error(
        torch,
        lambda lib, *given: lib.nn.functional.bilinear(*given),
        *(np.ones(shape) for shape in shapes),
    )


def test_the_weight_has_three_axes():
    with pytest.raises(RuntimeError, match="weight must have 3 dimensions"):
        F.bilinear(convcore.ones(2, 3), convcore.ones(2, 4), convcore.ones(5, 3))


def test_the_inputs_have_an_axis():
    with pytest.raises(RuntimeError, match="at least one dimension"):
        F.bilinear(convcore.ones(()), convcore.ones(()), convcore.ones(5, 1, 1))
