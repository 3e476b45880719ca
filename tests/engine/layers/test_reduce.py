"""Sums over any axes: compiled, in every layout, beside float64."""

import itertools

import numpy as np
import pytest

import convcore
from convcore.engine.layers.reduce import reduce

ORDERS = list(itertools.permutations(range(4)))


def some_axes(rank):
    """Return every choice of axes, and at least one."""
    return [over for n in range(1, rank + 1) for over in itertools.combinations(range(rank), n)]


def wide(array):
    return array.astype("D" if array.dtype.kind == "c" else "d")


def dtype_of(name):
    return pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else np.dtype(name)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 5, 17, 9), (2, 130, 40, 3), (1, 70, 100, 1), (2, 1, 90, 90)])
def test_sums_over_any_axes_in_any_order_of_memory_are_exact(shape, dtype, rng):
    numbers = rng.standard_normal((2, *shape))
    array = numbers[0] + 1j * numbers[1] if dtype[0] == "c" else numbers[0]
    array = array.astype(dtype_of(dtype))
    # Sums of bfloat16 are made of floats.
    tolerance = 64 * np.finfo("f4" if dtype == "bfloat16" else dtype).eps
    computed = 0
    for order in ORDERS:
        laid = np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
        for over, keepdims in itertools.product(some_axes(4), (False, True)):
            found = reduce.total(laid, over, keepdims)
            if found is None:  # more runs of axes than the kernel knows
                continue
            computed += 1
            exact = wide(laid).sum(over, keepdims=keepdims)
            assert found.shape == exact.shape
            assert found.dtype == exact.dtype
            np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance * array.size)
    assert computed > 200


def test_small_arrays_gaps_and_other_dtypes_are_left_to_numpy(rng):
    array = rng.standard_normal((8, 16, 16))
    assert reduce.total(array, (0,), False) is not None
    assert reduce.total(array[:1, :1], (2,), False) is None
    assert reduce.total(array[:, ::2], (0,), False) is None
    assert reduce.total(array.astype("f2"), (0,), False) is None
    assert reduce.total(np.broadcast_to(array[:1], array.shape), (0,), False) is None


def test_long_sums_of_one_sign_keep_their_digits(rng):
    array = rng.uniform(0, 1, 3_000_000).astype("f4")
    exact = array.astype("f8").sum()
    for shape, over in [((-1,), (0,)), ((-1, 3), (0,)), ((3, -1), (1,)), ((-1, 100, 3), (0, 2))]:
        found = reduce.total(array.reshape(shape), over, False)
        np.testing.assert_allclose(found.sum(), exact, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("over", [(0, 1, 2, 3), (2, 3), (0, 2, 3), (1, 2)])
@pytest.mark.parametrize("format", [convcore.contiguous_format, convcore.channels_last])
def test_bits_of_sums_do_not_depend_on_threads(over, format, dtype, threads, rng):
    x = convcore.from_numpy(rng.standard_normal((4, 48, 60, 50)))
    x = x.to(getattr(convcore, dtype)).contiguous(memory_format=format)
    bits = set()
    for number in (1, 2, 3, 7):
        threads(number)
        found = x.sum(over), x.mean(over)
        bits.add(b"".join(one.double().numpy().tobytes() for one in found))
    assert len(bits) == 1
