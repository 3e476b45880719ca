"""Separable linear maps: the product of each axis's weights, and their adjoints."""

import numpy as np
import pytest
from draws import is_dense, lay_out

from convcore.engine.layers.interpolation import separable
from convcore.engine.layers.interpolation.separable import AxisWeights, SeparableMap


def dense(weights):
    """Return an axis's weights as a matrix from inputs to outputs."""
    matrix = np.zeros((weights.out, weights.size))
    for j in range(weights.out):
        for tap in range(weights.begin[j], weights.begin[j + 1]):
            matrix[j, weights.source[tap]] += weights.weight[tap]
        if weights.divisor is not None:
            matrix[j] /= weights.divisor[j]
    return matrix


def drawn(rng, size, out):
    """Draw weights with 0 to 3 taps an output, anywhere."""
    begin = np.concatenate([[0], np.cumsum(rng.integers(0, 4, out))])
    taps = int(begin[-1])
    return AxisWeights(size, out, begin, rng.integers(0, size, taps), rng.standard_normal(taps))


def regular(size, kernel, stride):
    """Return sums of windows at a stride, which the kernels know by their repetition."""
    start = np.arange((size - kernel) // stride + 1) * stride
    return separable.window_weights(size, start, start + kernel)


AXES = {
    "any": lambda rng: [drawn(rng, 7, 5), drawn(rng, 6, 9)],
    "three": lambda rng: [drawn(rng, 3, 4), regular(20, 3, 2), drawn(rng, 6, 2)],
    "one": lambda rng: [drawn(rng, 11, 40)],
    "windows": lambda rng: [regular(40, 3, 2), regular(41, 2, 1)],
    "identity": lambda rng: [separable.identity(5), regular(30, 5, 3)],
    "adjoint": lambda rng: [regular(12, 4, 4).adjoint(), regular(30, 3, 1).adjoint()],
    "divided": lambda rng: [
        regular(9, 2, 2)._replace(divisor=np.array([1.0, 2, 3, 4])), drawn(rng, 5, 5)
    ],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize("name", AXES)
def test_a_map_is_the_product_of_its_axes_weights(name, layout, dtype, rng):
    axes = AXES[name](rng)
    x = lay_out(rng.standard_normal((2, 5, *(a.size for a in axes))).astype(dtype), layout, rng)
    expected, divisor = x.astype("f8"), 1.5
    bound = np.abs(expected)
    for number, axis in enumerate(axes, 2):
        matrix = dense(axis)
        expected = np.moveaxis(np.tensordot(matrix, expected, (1, number)), 0, number)
        bound = np.moveaxis(np.tensordot(np.abs(matrix), bound, (1, number)), 0, number)
    y = SeparableMap(axes, x.dtype, divisor)(x)
    assert y.dtype == x.dtype
    if layout != "strided" and x.ndim > 3:
        assert is_dense(y, layout == "channels_last")
    assert (np.abs(y - expected / divisor) <= 8 * np.finfo(dtype).eps * bound).all()


def test_adjoint_weights_are_the_transposed_matrix(rng):
    for weights in (drawn(rng, 7, 5), drawn(rng, 3, 20), regular(20, 3, 2), separable.identity(4)):
        np.testing.assert_array_equal(dense(weights.adjoint()), dense(weights).T)


def test_window_weights_sum_from_start_to_end_and_nothing_where_that_is_before():
    weights = separable.window_weights(5, np.array([0, 3, 4]), np.array([2, 3, 1]))
    assert dense(weights).tolist() == [[1, 1, 0, 0, 0], [0] * 5, [0] * 5]


def test_bits_do_not_depend_on_the_number_of_threads(rng, threads):
    x = rng.standard_normal((4, 30, 40, 41)).astype("f4")
    found = set()
    for n in (1, 2, 7):
        threads(n)
        found.add(
            SeparableMap([regular(40, 3, 2), drawn(np.random.default_rng(0), 41, 30)], x.dtype)(
                x
            ).tobytes()
        )
    assert len(found) == 1
