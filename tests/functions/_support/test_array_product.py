"""Matrix products of any dtype: integers exactly, float16 rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.functions._support.array_product import product


def test_product_of_integers_is_exact_over_many_blocks(rng):
    a, b = (rng.integers(-(2**62), 2**62, s) for s in ((20, 3000), (3000, 30)))
    expected = np.zeros((20, 30), np.int64)
    for row, column in zip(a.T, b, strict=True):
        expected += row[:, np.newaxis] * column
    np.testing.assert_array_equal(
        (convcore.from_numpy(a) @ convcore.from_numpy(b))._array, expected
    )
    long = rng.integers(-5, 5, 10**6)
    assert convcore.from_numpy(long).dot(convcore.from_numpy(long)).item() == (long * long).sum()


def test_float16_products_are_float32s_rounded_once(rng):
    arrays = [rng.standard_normal(s).astype("float16") for s in ((7,), (5, 400), (400, 7))]
    half = convcore.mm(*(convcore.from_numpy(a) for a in arrays[1:]))
    single = convcore.mm(*(convcore.from_numpy(a.astype("float32")) for a in arrays[1:]))
    np.testing.assert_array_equal(half.numpy(), single.numpy().astype("float16"))
    assert convcore.addmm(*(convcore.from_numpy(a) for a in arrays)).dtype is convcore.float16


@pytest.mark.parametrize(
    "shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (4, 3, 2)), ((5, 1, 2, 3), (4, 3, 2))]
)
def test_product_of_integers_has_the_shape_of_numpys(shapes, rng):
    a, b = (rng.integers(-9, 9, shape) for shape in shapes)
    np.testing.assert_array_equal(product(a, b, "kernel"), np.matmul(a, b))


def test_product_of_bools_is_refused_by_the_name_of_the_kernel():
    a = np.ones((2, 2), bool)
    with pytest.raises(NotImplementedError, match="\"addmm_impl\" not implemented for 'Bool'"):
        product(a, a, "addmm_impl")
