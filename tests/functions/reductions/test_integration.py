"""Trapezoids and slopes beside PyTorch's, and of functions that are known."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck


@pytest.mark.parametrize("dim", [0, -1])
def test_integrals_agree_with_pytorch(torch, rng, dim):
    y = rng.normal(size=(5, 5))
    x = np.sort(rng.normal(size=5))
    agree(torch, lambda m, y: m.trapezoid(y, dim=dim), y)
    agree(torch, lambda m, y: m.trapezoid(y, dx=0.5, dim=dim), y)
    agree(torch, lambda m, y, x: m.trapezoid(y, x, dim=dim), y, x)
    agree(torch, lambda m, y, x: m.trapezoid(y, x, dim=dim), y, np.sort(y, axis=dim))


def test_integrals_of_a_number_are_refused(torch):
    same_error(torch, lambda m, y: m.trapezoid(y), np.array(1.0))


def test_known_integrals_and_slopes():
    x = convcore.linspace(0, 1, 11, dtype=convcore.float64)
    assert convcore.trapezoid(2 * x, x).item() == pytest.approx(1)
    assert convcore.gradient(x**2, spacing=(x,), edge_order=2)[0].allclose(2 * x)


def test_integrals_over_nothing_are_zeros_of_the_values_dtype(torch):
    for m in (convcore, torch):
        found = m.trapezoid(m.ones(2, 0, requires_grad=True))
        assert found.tolist() == [0, 0] and not found.requires_grad
        assert m.trapezoid(m.ones(0, 3, dtype=m.int8), dim=0).dtype == m.int8


@pytest.mark.parametrize("dim", [0, -1])
def test_places_of_more_or_fewer_axes_are_taken_as_by_pytorch(torch, rng, dim):
    sizes = [((2,), (0, 2)), ((2,), (2, 0, 2)), ((1,), (3, 1)), ((3,), (2, 3)), ((2, 3), (4, 2, 3))]
    sizes += [((4, 2, 3), (2, 3)), ((2, 3), (0, 3)), ((0,), (1, 4)), ((3,), ()), ((3,), (5,))]
    for values, places in sizes:
        y, x = rng.normal(size=values), rng.normal(size=places)
        try:
            torch.trapezoid(torch.tensor(y), torch.tensor(x), dim=dim)
        except RuntimeError:
            same_error(torch, lambda m, y, x: m.trapezoid(y, x, dim=dim), y, x)
        else:
            agree(torch, lambda m, y, x: m.trapezoid(y, x, dim=dim), y, x)


def test_slopes_agree_with_pytorch(torch, rng):
    x = rng.normal(size=(4, 6))
    coordinates = np.array([0.0, 1, 1.5, 3, 4, 7])
    for order in (1, 2):
        agree(torch, lambda m, x, o=order: m.gradient(x, edge_order=o), x)
        agree(torch, lambda m, x, o=order: m.gradient(x, spacing=0.5, dim=1, edge_order=o), x)
        agree(
            torch,
            lambda m, x, c, o=order: m.gradient(x, spacing=(c.detach(),), dim=1, edge_order=o),
            *(x, coordinates),
        )
    agree(torch, lambda m, x: m.gradient(x, spacing=[2.0, 3.0]), x)
    same_error(torch, lambda m, x: m.gradient(x, edge_order=3), x)


@pytest.mark.parametrize("order", [1, 2])
def test_slopes_have_a_gradient_for_the_places(torch, rng, order):
    x, places = rng.normal(size=(4, 6)), np.array([0.0, 1, 1.5, 3, 4, 7])
    even = np.arange(6.0)
    for where in (places, even):
        agree(
            torch,
            lambda m, x, c: m.gradient(x, spacing=(c,), dim=1, edge_order=order),
            *(x, where),
            rtol=1e-9,
        )
    x, places = (convcore.from_numpy(one).requires_grad_() for one in (x, places))
    slopes = lambda x, c: convcore.gradient(x, spacing=(c,), dim=1, edge_order=order)[0]  # noqa: E731
    assert gradcheck(slopes, (x, places))


@pytest.mark.parametrize("of_places", ["int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("of_values", ["int64", "float16", "bfloat16", "float32", "float64"])
def test_slopes_have_pytorchs_common_dtype(torch, of_values, of_places):
    pytest.importorskip("ml_dtypes")
    found = []
    for lib in (convcore, torch):
        x = lib.arange(12.0).reshape(3, 4).to(getattr(lib, of_values))
        places = lib.tensor([1, 2, 4, 7]).to(getattr(lib, of_places))
        slopes = lib.gradient(x, spacing=(places,), dim=1)[0]
        found.append((str(slopes.dtype).removeprefix("torch."), slopes.double()[0].tolist()))
    (ours, values), (theirs, right) = found
    assert ours == theirs and values == pytest.approx(right, rel=1e-2)


def test_slopes_at_distances_of_any_kind(torch):
    x = np.array([1.0, 2.0, 4.0, 4.0, np.inf, 1.0, 0.0])
    for spacing in (0.0, 2, 0.5 + 1j):
        found, expected = (
            lib.gradient(lib.tensor(x), spacing=spacing)[0].numpy() for lib in (convcore, torch)
        )
        np.testing.assert_array_equal(found, expected)
    places = np.array([0, 1, 3, 4, 5, 7, 8.5])
    for dtype in ("float64", "int64", "complex64"):
        kinds = [
            str(
                lib.gradient(lib.tensor(x).float(), spacing=(lib.tensor(places.astype(dtype)),))[
                    0
                ].dtype
            )
            for lib in (convcore, torch)
        ]
        assert kinds[0] == kinds[1]
    numbers = np.array([1, 2, 4])
    assert convcore.gradient(convcore.tensor(numbers), spacing=2)[0].tolist() == [0.5, 0.75, 1.0]


def test_slopes_of_two_values(torch):
    agree(torch, lambda lib, x: lib.gradient(x)[0], np.array([1.0, 3.0]))
