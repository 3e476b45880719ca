"""The compiled functions of each element: large arrays of any layout, beside NumPy's own path."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.engine import elementwise

# A rest behind any vector and any chunk; the second array's axes lie in another order.
SHAPE = (3, 7, 61, 53)
LAYOUTS = {
    "contiguous": lambda array: array,
    "channels_last": lambda array: np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(
        0, 3, 1, 2
    ),
    "batch last": lambda array: np.ascontiguousarray(array.transpose(1, 2, 3, 0)).transpose(
        3, 0, 1, 2
    ),
}

# (name, function of a Tensor)
FUNCTIONS = {
    "relu": convcore.relu,
}


@pytest.fixture
def numbers(rng):
    """Return numbers on both sides of every corner, with all that is not a common number."""
    array = rng.uniform(-8, 8, SHAPE)
    array.flat[::1001] = 0.0
    array.flat[5::2003] = -0.0
    array.flat[7::3001] = np.inf
    array.flat[9::3001] = -np.inf
    array.flat[11::3001] = np.nan
    return array


def results(function, array, grad):
    """Return a function of an array, and the gradient of that array."""
    x = convcore.from_numpy(array).requires_grad_()
    y = function(x)
    y.backward(convcore.from_numpy(grad))
    return y.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernel_gives_what_numpy_gives(numbers, rng, name, dtype, layout, monkeypatch):
    array = LAYOUTS[layout](numbers.astype(dtype))
    grad = LAYOUTS[layout](rng.standard_normal(SHAPE).astype(dtype))
    assert elementwise.suits(array, grad)
    found = results(FUNCTIONS[name], array, grad)
    monkeypatch.setattr(elementwise, "LEAST", array.size + 1)
    expected = results(FUNCTIONS[name], array, grad)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.strides == theirs.strides
        np.testing.assert_allclose(ours, theirs, rtol=4 * np.finfo(dtype).eps, atol=1e-30)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_do_not_depend_on_threads(numbers, rng, name):
    array = np.tile(numbers.astype("float32"), (8, 1, 1, 1))
    grad = rng.standard_normal(array.shape).astype("float32")
    before = convcore.get_num_threads()
    bits = set()
    try:
        for threads in (1, 2, 3, 7):
            convcore.set_num_threads(threads)
            found = results(FUNCTIONS[name], array, grad)
            bits.add(b"".join(a.tobytes() for a in found))
    finally:
        convcore.set_num_threads(before)
    assert len(bits) == 1


def test_arrays_with_gaps_or_of_other_layouts_do_not_suit():
    array = np.zeros((4, 64, 64, 8), "f4")
    assert elementwise.suits(array, array.copy())
    assert not elementwise.suits(array[:, ::2])
    assert not elementwise.suits(array[::-1])
    assert not elementwise.suits(np.broadcast_to(array[:1], array.shape))
    assert not elementwise.suits(array, array.astype("f8"))
    assert not elementwise.suits(array, np.asfortranarray(array))
    assert not elementwise.suits(array.astype("f2"))
    assert not elementwise.suits(array[0, :2])


def test_in_place_relu_writes_the_array(numbers):
    array = numbers.astype("float32")
    expected = np.where(array < 0, np.float32(0), array)
    convcore.relu_(convcore.from_numpy(array))
    np.testing.assert_array_equal(array, expected)
