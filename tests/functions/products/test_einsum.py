"""Sums of products by the names of their axes, and tensordot, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import same_error
from agreement import assert_same_gradients, drawer

import convcore

FLOATS = ("float32", "float64", "complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


TENSORDOTS = {
    "tensordot": (lambda m, a, b: m.tensordot(a, b), (2, 3, 4), (3, 4, 5)),
    "tensordot, no axes": (lambda m, a, b: m.tensordot(a, b, dims=0), (2, 3), (4,)),
    "tensordot, chosen axes": (
        lambda m, a, b: m.tensordot(a, b, dims=([1, -1], [1, 0])),
        (2, 3, 4),
        (4, 3),
    ),
    "tensordot, a size of 1": (lambda m, a, b: m.tensordot(a, b, ([1], [0])), (2, 1), (3, 4)),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TENSORDOTS)
def test_tensordot_has_pytorchs_values_and_gradients(name, dtype, seed, torch):
    function, *shapes = TENSORDOTS[name]
    numbers_of = drawer(seed, len(name), dtype)
    arrays = [numbers_of(shape) for shape in shapes]
    assert_same_gradients(torch, function, arrays, numbers_of)


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    (" b i j , b j k -> b k i ", (5, 2, 3), (5, 3, 4)),
    ("ij->ji", (2, 3)),
    ("ba", (2, 3)),
    ("aB", (2, 3)),
    ("ij->", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iijj->ji", (3, 3, 2, 2)),
    ("iii->i", (2, 2, 2)),
    ("iij,kj->ik", (3, 3, 2), (4, 2)),
    ("i,j->ij", (2,), (3,)),
    ("i,i", (4,), (4,)),
    (",", (), ()),
    ("", ()),
    (",ij", (), (2, 3)),
    ("...ij,...jk", (5, 1, 2, 3), (4, 3, 2)),
    ("...j,jk->...k", (5, 2, 3), (3, 4)),
    ("...j,jk->k", (5, 2, 3), (3, 4)),
    ("i...->...i", (2, 3, 4)),
    ("ij->...ij", (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("bi,oij,bj->bo", (5, 2), (4, 2, 3), (5, 3)),
    ("ij,ik,il->jkl", (3, 2), (3, 4), (3, 2)),
    ("ij,kl->", (2, 3), (4, 2)),
    ("ij,jk", (2, 1), (4, 5)),
    ("ij,ij->i", (2, 3), (1, 3)),
    ("nchw,ncHW->nhwHW", (2, 3, 2, 2), (2, 3, 1, 2)),
]


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS])
def test_einsum_has_pytorchs_values_and_gradients(equation, shapes, dtype, seed, torch):
    numbers_of = drawer(seed, len(equation), dtype)
    arrays = [numbers_of(shape) for shape in shapes]
    assert_same_gradients(torch, lambda m, *xs: m.einsum(equation, *xs), arrays, numbers_of)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, a, b: m.einsum(a, [0, 1], b, [1, 2], [0, 2]),
        lambda m, a, b: m.einsum(a, [30, 1], b, [1, 2]),
        lambda m, a, b: m.einsum(a, [..., 1], b, [1, 2], [2, ...]),
        lambda m, a, b: m.einsum("ij,jk", [a, b]),
        lambda m, a, b: m.tensordot(a, b, m.tensor(1)),
    ],
)
def test_other_forms_of_calls_give_pytorchs_values(call, rng, torch):
    a, b = (rng.integers(-5, 5, shape) for shape in ((2, 3), (3, 4)))
    result, expected = (call(m, m.from_numpy(a), m.from_numpy(b)) for m in (convcore, torch))
    np.testing.assert_array_equal(result.numpy(), expected.numpy())


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("equation", ["ij,jk", "ij,ij->", "ij,jk->ki"])
def test_einsum_of_integers_is_pytorchs(equation, dtype, rng, torch):
    limits = np.iinfo(dtype)
    shapes = (2, 3), (2, 3) if equation == "ij,ij->" else (3, 4)
    a, b = (rng.integers(limits.min, limits.max, shape, dtype) for shape in shapes)
    result, expected = (m.einsum(equation, *map(m.from_numpy, (a, b))) for m in (convcore, torch))
    assert str(result.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(result.numpy(), expected.numpy())


def z(m, *shape, dtype="float32"):
    return m.zeros(*shape, dtype=getattr(m, dtype))


REFUSED = [
    lambda m: m.einsum("ij,jk", z(m, 2, 3)),
    lambda m: m.einsum("ij", z(m, 2, 3), z(m, 2, 3)),
    lambda m: m.einsum("ij"),
    lambda m: m.einsum("ijk", z(m, 2, 3)),
    lambda m: m.einsum("...ijk", z(m, 2, 3)),
    lambda m: m.einsum("ij,jk", z(m, 2, 3), z(m, 4, 5)),
    lambda m: m.einsum("ii", z(m, 2, 3)),
    lambda m: m.einsum("ij->ik", z(m, 2, 3)),
    lambda m: m.einsum("ij->ii", z(m, 2, 3)),
    lambda m: m.einsum("i$", z(m, 2, 3)),
    lambda m: m.einsum("ij,i$", z(m, 2, 3), z(m, 2, 3)),
    lambda m: m.einsum("ij-ik", z(m, 2, 3)),
    lambda m: m.einsum("ij->i->j", z(m, 2, 3)),
    lambda m: m.einsum("......j", z(m, 2, 3)),
    lambda m: m.einsum(".j", z(m, 2, 3)),
    lambda m: m.einsum("ij,jk", z(m, 2, 3), z(m, 3, 4, dtype="float64")),
    lambda m: m.einsum("ij,jk", z(m, 2, 3), 3),
    lambda m: m.einsum(3, z(m, 2, 3)),
    lambda m: m.einsum("ij,jk", z(m, 2, 3, dtype="bool"), z(m, 3, 4, dtype="bool")),
    lambda m: m.einsum(z(m, 2, 3), [0, 52]),
    lambda m: m.tensordot(z(m, 2, 3, 4), z(m, 4, 3), ([1], [1, 0])),
    lambda m: m.tensordot(z(m, 2, 3, 4), z(m, 4, 3), ([1], [0])),
    lambda m: m.tensordot(z(m, 2), z(m, 4, 3), 2),
    lambda m: m.tensordot(z(m, 2), z(m, 4, 3), -1),
    lambda m: m.tensordot(z(m, 2, 3), z(m, 3, 4, dtype="float64"), 1),
    lambda m: m.tensordot(z(m, 2, 3), z(m, 3, 4), ([5], [0])),
    lambda m: m.tensordot(z(m, 2, 3), z(m, 3, 4), ([1, 1], [0, 0])),
]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_errors_are_pytorchs(call, torch):
    same_error(torch, call)


@pytest.mark.parametrize(
    "equation", ["i,j->ij", "ij,ij->ij", "i,ij->ij", "ij,j->ji", "ij,jk->ijk", "i,j,k->kij", "i,ij"]
)
def test_a_product_of_elements_is_no_view_whose_hooks_a_change_would_lose(torch, equation):
    found = []
    for lib in (torch, convcore):
        terms = equation.split("->")[0].split(",")
        leaves = [
            (lib.arange(3.0 ** len(term)).reshape([3] * len(term)) + n).requires_grad_()
            for n, term in enumerate(terms)
        ]
        product = lib.einsum(equation, *leaves)
        has_base = product._base is not None
        product.register_hook(lambda grad: 3 * grad)
        product.div_(2)
        product.sum().backward()
        found.append((product.tolist(), [leaf.grad.tolist() for leaf in leaves]))
        assert has_base == (equation == "i,ij")  # which sums: a product of matrices, reshaped
    assert found[0] == found[1]


def test_an_operand_as_it_is_comes_back_as_a_view(torch):
    for lib in (torch, convcore):
        x = lib.ones(2, 3)
        y = lib.einsum("ij->ij", x)
        assert y is not x and y._base is x
