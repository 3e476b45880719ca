"""Products of matrices and vectors: NumPy's shapes and numbers, for any strides."""

import itertools
import tracemalloc

import numpy as np
import pytest
from draws import DTYPES, LAYOUTS, lay_out, numbers

from convcore import engine
from convcore.engine import reference


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4, 5)),
        ((1, 1), (1, 1)),
        ((1, 7), (7, 1)),
        ((7, 1), (1, 7)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((6, 2, 3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (1, 2, 4, 5)),
        ((2, 3, 4), (1, 4, 5)),
        ((0, 3, 4), (4, 5)),
        ((3, 0), (0, 5)),
        ((0, 4), (4, 5)),
        ((3, 4), (4, 0)),
        ((0,), (0,)),
        ((130, 300), (300, 70)),
        ((600, 40), (40, 530)),
    ],
)
def test_matmul_has_numpys_shapes_and_numbers(a_shape, b_shape, dtype, rng):
    a = numbers(rng, a_shape, dtype, integers=True)
    b = numbers(rng, b_shape, dtype, integers=True)
    exact = np.matmul(a.astype("complex128"), b.astype("complex128"))
    result = engine.matmul(a, b)
    assert result.shape == exact.shape
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, exact)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layouts", list(itertools.product(LAYOUTS, LAYOUTS)))
def test_matmul_takes_any_strides(layouts, dtype, rng):
    for a_shape, b_shape in [((5, 7), (7, 4)), ((2, 5, 7), (3, 1, 7, 4)), ((7,), (7, 4))]:
        a, b = (
            lay_out(numbers(rng, shape, dtype, integers=True), layout, rng)
            if len(shape) > 1 or layout not in ("channels_last",)
            else numbers(rng, shape, dtype)
            for shape, layout in zip((a_shape, b_shape), layouts, strict=True)
        )
        exact = np.matmul(a.astype("complex128"), b.astype("complex128"))
        bound = np.matmul(np.abs(a), np.abs(b))
        assert reference.error_in_eps(engine.matmul(a, b), exact, bound, dtype) <= 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_error_stays_small_over_long_sums(dtype, rng):
    a, b = numbers(rng, (3, 20_000), dtype), numbers(rng, (20_000, 2), dtype)
    exact = np.matmul(a.astype("complex128"), b.astype("complex128"))
    bound = np.matmul(np.abs(a).astype("float64"), np.abs(b).astype("float64"))
    assert reference.error_in_eps(engine.matmul(a, b), exact, bound, dtype) <= 4


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 8, 12, 13, 17, 32, 33])
@pytest.mark.parametrize("transposed", list(itertools.product((False, True), repeat=2)))
def test_products_of_few_rows_are_exact_and_the_same_on_any_threads(rows, transposed, rng):
    for k, n in [(1, 1), (7, 3), (8, 16), (33, 21), (530, 300), (1100, 517)]:
        a = numbers(rng, (k, rows) if transposed[0] else (rows, k), "float32")
        b = numbers(rng, (n, k) if transposed[1] else (k, n), "float32")
        a, b = (one.T if turn else one for one, turn in zip((a, b), transposed, strict=True))
        exact = np.matmul(a.astype("float64"), b.astype("float64"))
        bound = np.matmul(np.abs(a).astype("float64"), np.abs(b).astype("float64"))
        before = engine.get_num_threads()
        try:
            results = []
            for threads in (1, 2, 3, 7):
                engine.set_num_threads(threads)
                results.append(engine.matmul(a, b))
        finally:
            engine.set_num_threads(before)
        assert reference.error_in_eps(results[0], exact, bound, np.dtype("float32")) <= 4
        assert len({result.tobytes() for result in results}) == 1


def test_many_products_of_many_shapes_are_not_remembered(rng):
    tracemalloc.start()
    try:
        for products in range(60_000, 60_010):
            a = rng.integers(-4, 5, (products, 1, 2)).astype("float32")
            assert (engine.matmul(a, a.mT) == (a * a).sum(-1, keepdims=True)).all()
        del a
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 60_000 * 16
