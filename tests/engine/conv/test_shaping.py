"""Padding, dilation and rotation of arrays, and the input gradient spelt out by them."""

import numpy as np
import pytest

from convcore import engine


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3, 4), (1, 2, 3, 4, 5), (2, 0, 3, 3)])
@pytest.mark.parametrize("pads", [[(0, 0)], [(2, 1)], [(0, 3)]])
def test_unpad_undoes_zero_pad(shape, pads, rng):
    for padding in (0, 2, pads, [(1, 0), *pads]):
        if not isinstance(padding, int) and len(padding) > len(shape):
            continue
        x = rng.standard_normal(shape)
        padded = engine.zero_pad(x, padding)
        np.testing.assert_array_equal(engine.unpad(padded, padding), x, strict=True)
        assert np.count_nonzero(padded) == np.count_nonzero(x)
        assert not np.may_share_memory(padded, x)


def test_zero_pad_agrees_with_numpys_pad(rng):
    x = rng.standard_normal((2, 3, 4, 5))
    pairs = [(1, 2), (3, 0)]
    np.testing.assert_array_equal(
        engine.zero_pad(x, pairs), np.pad(x, [(0, 0), (0, 0), *pairs]), strict=True
    )
    np.testing.assert_array_equal(
        engine.zero_pad(x, 2), np.pad(x, [(0, 0), (0, 0), (2, 2), (2, 2)]), strict=True
    )


def test_unpad_by_zero_keeps_the_axis():
    """A slice of [0:-0] is empty; that fault is the notebook's."""
    x = np.arange(6).reshape(2, 3)
    assert engine.unpad(x, 0).tolist() == x.tolist()
    assert engine.unpad(x, [(0, 0), (1, 0)]).tolist() == [[1, 2], [4, 5]]
    assert engine.unpad(x, [(0, 2)]).tolist() == [[0], [3]]


def test_unpad_is_a_view_and_may_leave_nothing():
    x = np.zeros((4, 4))
    engine.unpad(x, 1)[...] = 1
    assert x.sum() == 4
    assert engine.unpad(x, 2).shape == (0, 0)
    with pytest.raises(ValueError, match="padding"):
        engine.unpad(x, 3)


@pytest.mark.parametrize("dilation", [1, 2, 3, (2, 3), (1, 4)])
def test_dilate_puts_zeros_between(dilation, rng):
    x = 1 + rng.random((2, 3, 4, 5))
    steps = (dilation, dilation) if isinstance(dilation, int) else dilation
    dilated = engine.dilate(x, dilation)
    assert dilated.shape == (2, 3, 3 * steps[0] + 1, 4 * steps[1] + 1)
    np.testing.assert_array_equal(dilated[..., :: steps[0], :: steps[1]], x)
    assert np.count_nonzero(dilated) == x.size


def test_dilate_keeps_one_element_and_none():
    assert engine.dilate(np.array([7]), 5).tolist() == [7]
    assert engine.dilate(np.empty((2, 0)), 3).shape[1] == 0


def test_rotate180_turns_the_spatial_axes_alone(rng):
    for rank in (1, 2, 3):
        w = rng.standard_normal((2, 3, *(2, 3, 4)[:rank]))
        rotated = engine.rotate180(w)
        np.testing.assert_array_equal(rotated, np.flip(w, tuple(range(2, 2 + rank))))
        np.testing.assert_array_equal(engine.rotate180(rotated), w)
        assert np.shares_memory(rotated, w)
    assert engine.rotate180(np.arange(4).reshape(2, 2)).tolist() == [[3, 2], [1, 0]]


@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.float16, object])
def test_shaping_takes_any_dtype(dtype):
    x = np.ones((2, 2), dtype)
    for result in (engine.zero_pad(x, 1), engine.dilate(x, 2), engine.rotate180(x)):
        assert result.dtype == dtype
        assert result.sum() == 4


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_input_gradient_is_a_correlation_with_the_rotated_kernel(rank, rng):
    """Dilate grad_output by the stride, pad by d(k-1), correlate with the kernel turned round.

    That gives (oh-1)s + 1 + d(k-1) elements an axis; an unaligned stride left the rest unread.
    """
    stride, dilation, kernel = (2, 3, 1)[:rank], (3, 1, 2)[:rank], (2, 3, 2)[:rank]
    sizes = (9, 8, 5)[:rank]
    w = rng.standard_normal((4, 3, *kernel))
    x = rng.standard_normal((2, 3, *sizes))
    steps = {"stride": stride, "dilation": dilation}
    grad_output = rng.standard_normal(engine.conv_forward(x, w, **steps).shape)
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    spread = engine.zero_pad(engine.dilate(grad_output, stride), [(r, r) for r in reach])
    read = engine.conv_forward(spread, engine.rotate180(w).swapaxes(0, 1), dilation=dilation)
    rest = [(0, n - m) for n, m in zip(sizes, read.shape[2:], strict=True)]
    grad_input = engine.conv_input_grad(grad_output, w, sizes, **steps)
    assert max(after for _, after in rest) > 0
    np.testing.assert_allclose(engine.zero_pad(read, rest), grad_input, atol=1e-13, strict=True)
