"""Padding with a constant or the array's own elements: NumPy's modes, and their adjoints."""

import numpy as np
import pytest
from draws import DTYPES, is_channels_last, lay_out

from convcore import engine
from convcore.engine import reference
from convcore.engine.layers import padding

NUMPY = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
PADS = [[(2, 1)], [(1, 0), (0, 3)], [(1, 2), (2, 1), (0, 3)]]


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize("pairs", PADS)
@pytest.mark.parametrize("mode", padding.MODES)
def test_borders_are_numpys(mode, pairs, layout, rng):
    shape = (2, 3, 4, 5, 6)[: 2 + max(len(pairs), 2)]
    x = lay_out(rng.standard_normal(shape), layout, rng)
    whole = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    y = engine.pad(x, pairs, mode)
    np.testing.assert_array_equal(y, np.pad(x, whole, NUMPY[mode]), strict=True)
    assert is_channels_last(y) == is_channels_last(x)
    assert not np.may_share_memory(y, x)


@pytest.mark.parametrize("mode", padding.MODES)
def test_the_format_is_kept_where_channels_are_padded_too(mode, rng):
    x = lay_out(rng.standard_normal((2, 3, 4, 5)), "channels_last", rng)
    y = engine.pad(x, PADS[2], mode)
    np.testing.assert_array_equal(y, np.pad(x, [(0, 0), *PADS[2]], NUMPY[mode]), strict=True)
    assert is_channels_last(y) and is_channels_last(engine.pad_grad(y, PADS[2], mode))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("pairs", [*PADS[1:], [(-1, 2), (3, -2)], [(-1, -1), (0, 0)]])
@pytest.mark.parametrize("mode", padding.MODES)
def test_the_gradient_is_the_adjoint(mode, pairs, channels_last, rng):
    sizes = (4, 5, 6)[: len(pairs)]
    x = rng.integers(-3, 4, (2, 3, *sizes)).astype("f8")
    y = engine.pad(x, pairs, mode)
    np.testing.assert_array_equal(y, reference.pad(x, pairs, mode))
    grad = rng.integers(-3, 4, y.shape).astype("f8")
    if channels_last:
        grad = np.moveaxis(np.ascontiguousarray(np.moveaxis(grad, 1, -1)), -1, 1)
    back = engine.pad_grad(grad, pairs, mode)
    assert back.shape == x.shape
    assert (y * grad).sum() == (x * back).sum()
    np.testing.assert_array_equal(back, reference.pad_grad(grad, pairs, mode))


@pytest.mark.parametrize("pairs", [*PADS, [(-1, 2), (3, -2)]])
@pytest.mark.parametrize("mode", padding.MODES[1:])
def test_borders_of_long_axes_are_those_of_short_ones(mode, pairs, rng, monkeypatch):
    x = rng.integers(-3, 4, (2, 3, *(4, 5, 6)[: len(pairs)])).astype("f4")
    y = engine.pad(x, pairs, mode)
    grad = rng.integers(-3, 4, y.shape).astype("f4")
    back = engine.pad_grad(grad, pairs, mode)
    monkeypatch.setattr(padding, "MOST_BYTES", 0)
    monkeypatch.delattr(padding, "_map")
    np.testing.assert_array_equal(engine.pad(x, pairs, mode), y, strict=True)
    np.testing.assert_array_equal(engine.pad_grad(grad, pairs, mode), back, strict=True)


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "int8", "uint64", "bool", "object"])
def test_a_value_is_put_around_in_any_dtype(dtype):
    y = engine.pad(np.zeros((2, 2), dtype), [(1, 0), (0, 2)], value=1)
    assert y.dtype == dtype
    assert (y[0] == 1).all() and (y[:, 2:] == 1).all() and (y[1:, :2] == 0).all()


def test_a_circle_repeats_what_a_crop_left():
    assert engine.pad(np.arange(5), [(2, -1)], "circular").tolist() == [2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("pairs", "mode", "value", "error", "words"),
    [
        ([(1, 1)] * 3, "constant", 0, ValueError, "one pair for each of 2 axes, got 3 pairs"),
        ([1, 1], "constant", 0, TypeError, r"sequence of \(before, after\) pairs"),
        ([(1, 1)], "mirror", 0, ValueError, "Unrecognised padding mode mirror"),
        ([(-3, -2)], "constant", 0, ValueError, "crop at most the 4 elements of dimension 1"),
        ([(4, 0)], "reflect", 0, ValueError, r"padding \(4, 0\) at dimension 1 of input \[3, 4\]"),
        ([(5, 0)], "circular", 0, ValueError, "wrapping around more than once"),
        ([(1, 1)], "constant", "0", TypeError, "value must be a number"),
        ([(1, 1)], "constant", 1j, TypeError, "value must be a real number for float32"),
        ([(1, 1)], "constant", 1e39, ValueError, "to type float32 without overflow"),
    ],
)
def test_errors_name_pads_modes_and_values(pairs, mode, value, error, words):
    with pytest.raises(error, match=words):
        engine.pad(np.zeros((3, 4), "f4"), pairs, mode, value)


def test_an_integer_takes_no_value_beyond_its_ends():
    x = np.zeros(2, np.int8)
    assert engine.pad(x, [(1, 0)], value=-128)[0] == -128
    with pytest.raises(ValueError, match="type int8_t without overflow, got 128"):
        engine.pad(x, [(1, 0)], value=128)


def test_a_gradient_shorter_than_its_pads_is_refused():
    with pytest.raises(ValueError, match="at least as long as its pads"):
        engine.pad_grad(np.zeros(3), [(2, 2)])
