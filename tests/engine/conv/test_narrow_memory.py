"""Convolutions whose arrays are bfloat16 in memory: float32's, rounded once at the end."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.engine import (
    conv_bias_grad,
    conv_forward,
    conv_input_grad,
    conv_transpose,
    conv_weight_grad,
)
from convcore.engine.conv.call import NARROW_DTYPE, TRANSPOSE, cached_plan
from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.conv.selection import current, selected
from convcore.engine.runtime import _isa, layout, memory
from convcore.engine.runtime._casts import widen


def rounded(array):
    """Return bfloat16's bits, nearest and ties to even, in the same memory format."""
    bits = array.view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), bits >> 16 | 0x40, nearest).astype(NARROW_DTYPE, order="K")


def widened(array):
    """Return the float32 numbers of such bits."""
    return (array.astype(np.uint32) << 16).view(np.float32)


def drawn(rng, shape):
    """Return random numbers in channels_last memory that bfloat16 has."""
    made = layout.empty(shape, np.dtype("f4"), True)
    made[...] = rng.standard_normal(shape)
    return widened(rounded(made))


def run(call_plan, x, w, bias, packed, onto=None, clamp=()):
    """Return what a plan makes of arrays in the memory that it takes."""
    narrow_x, narrow_y = call_plan.narrow
    dtype = NARROW_DTYPE if narrow_y else np.dtype("f4")
    y = layout.empty(call_plan.shape, dtype, call_plan.channels_last)
    if onto is not None:
        y[...] = rounded(onto) if narrow_y else onto
    threads = call_plan.kernel.threads()
    needs = call_plan.plan
    block = memory.Block(max(64, needs.shared_bytes + threads * needs.scratch_bytes))
    call_plan.kernel.run(
        *(rounded(x) if narrow_x else x, w, y, block, threads, bias, *(clamp or (0, 0, 0, 0))),
        **({"prepacked": packed} if packed is not None else {}),
        **({"add": True} if onto is not None else {}),
    )
    return y


# Input, output channels, kernel, other arguments; the algorithm; which of x and y can be narrow.
BOTH = True, True
LAYERS = {
    "1x1": ((2, 40, 9, 11), 70, 1, {}, "indirect", BOTH),
    "1x1 of stride 2": ((3, 33, 9, 11), 17, 1, {"stride": 2}, "indirect", BOTH),
    "3x3 of stride 2": ((2, 48, 13, 10), 65, 3, {"stride": 2, "padding": 1}, "indirect", BOTH),
    "dilated": ((1, 20, 15, 17), 24, 3, {"dilation": 3, "padding": 2}, "indirect", BOTH),
    "groups": ((2, 96, 9, 7), 64, (3, 1), {"groups": 2, "stride": (2, 1)}, "indirect", BOTH),
    "volumes": ((1, 32, 5, 6, 7), 32, (2, 3, 2), {"stride": 2}, "indirect", BOTH),
    "winograd": ((2, 64, 15, 18), 70, 3, {"padding": 1}, "winograd", BOTH),
    "few tiles": ((1, 128, 7, 7), 128, 3, {"padding": 1}, "winograd", BOTH),
    "depthwise": ((2, 37, 11, 9), 37, 3, {"padding": 1, "groups": 37}, "depthwise", BOTH),
    "depthwise, stride 2": (
        (2, 32, 11, 9), 32, 5, {"stride": 2, "padding": 2, "groups": 32}, "depthwise", BOTH,
    ),
    "depthwise, few channels": (
        (2, 3, 11, 9), 3, 3, {"padding": 1, "groups": 3}, "depthwise", (False, False),
    ),
    "a picture": (
        (2, 3, 33, 31), 32, 7, {"stride": 2, "padding": 3}, "few_channels", (False, True),
    ),
    "one channel": ((2, 1, 28, 28), 6, 5, {"padding": 2}, "few_channels", (False, False)),
}  # fmt: skip


@pytest.mark.parametrize("clamp", [(), (1, 0.0, 6.0, 0.0), (2, 0.0, 0.0, 0.1)])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_float32s_rounded_once(rng, name, clamp):
    shape, channels, kernel, steps, algorithm, able = LAYERS[name]
    x = drawn(rng, shape)
    size = (kernel,) * (len(shape) - 2) if isinstance(kernel, int) else kernel
    w = rng.standard_normal((channels, shape[1] // steps.get("groups", 1), *size)).astype("f4")
    bias = rng.standard_normal(channels).astype("f4")
    conv = PrepackedConvolution(w, bias, **steps)
    strides = rounded(x).strides
    with selected(algorithm=algorithm):
        exact, packed = conv.prepared(shape, x.strides, x.dtype)
        assert exact.plan.algorithm == algorithm
        onto = drawn(rng, exact.shape)
        for narrow in [(True, True), (False, True), (True, False)]:
            given = (shape, strides, NARROW_DTYPE) if narrow[0] else (shape, x.strides, x.dtype)
            call_plan, own = conv.prepared(*given, narrow)
            assert call_plan.plan.algorithm == algorithm
            if narrow == (True, True):
                assert call_plan.narrow == able
            for base in (None, onto) if call_plan.plan.supports_accumulate else (None,):
                wanted = run(exact, x, w, bias, packed, base, clamp)
                made = run(call_plan, x, w, bias, own, base, clamp)
                if call_plan.narrow[1]:
                    made = widened(made)
                    # Half a unit of bfloat16, and the last bits of sums in another order.
                    slack = np.abs(wanted) * 2**-8 + 1e-4 * np.abs(wanted).max()
                else:
                    slack = 1e-5 * np.abs(wanted).max()
                assert np.all(np.abs(made - wanted) <= slack)
                assert np.abs(made).max() > 1


def test_transposed_convolutions(rng):
    x, w = drawn(rng, (2, 48, 7, 9)), rng.standard_normal((48, 24, 2, 2)).astype("f4")
    bias = rng.standard_normal(24).astype("f4")
    arrays = (x.shape, rounded(x).strides, NARROW_DTYPE, w.shape, w.strides, w.dtype)
    call_plan = cached_plan(TRANSPOSE, *arrays, current(), 2, 0, 1, 1, 0, (True, True))
    assert call_plan.narrow == (True, True) and call_plan.plan.supports_epilogue
    made = widened(run(call_plan, x, w, bias, None))
    exact = conv_input_grad(x, w, (14, 18), stride=2) + bias.reshape(-1, 1, 1)
    assert np.all(np.abs(made - exact) <= np.abs(exact) * 2**-8 + 1e-5)


# Layers whose products are in pairs: with whole blocks of channels, which are read where they lie.
PAIRED = {
    "1x1": ((2, 40, 9, 11), 70, 1, {}),
    "whole blocks": ((2, 64, 9, 11), 96, 1, {}),
    "whole blocks, 3x3 of stride 2": ((2, 64, 13, 10), 65, 3, {"stride": 2, "padding": 1}),
    "whole blocks, dilated": ((1, 32, 15, 17), 32, 3, {"dilation": 3, "padding": 2}),
    "whole blocks, groups": ((2, 64, 9, 7), 64, (3, 1), {"groups": 2, "stride": (2, 1)}),
    "whole blocks, in parts": ((1, 1024, 5, 4), 64, 3, {"padding": 1}),
    "few pixels": ((1, 256, 5, 4), 320, 1, {}),
    "volumes": ((1, 32, 5, 6, 7), 32, (2, 3, 2), {"stride": 2}),
}


@pytest.mark.parametrize("among", [0, 3])
@pytest.mark.parametrize("name", PAIRED)
def test_products_in_pairs_have_the_bits_of_float32_memory(rng, name, among):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    shape, channels, kernel, steps = PAIRED[name]
    size = (kernel,) * (len(shape) - 2) if isinstance(kernel, int) else kernel
    w = drawn(rng, (channels, shape[1] // steps.get("groups", 1), *size))
    # Alone in memory, or the middle one of a few more channels, at an odd place.
    x = drawn(rng, (shape[0], shape[1] + among, *shape[2:]))
    grad = drawn(rng, conv_forward(x[:, : shape[1]], w, **steps).shape)
    bias = widened(rounded(rng.standard_normal(channels).astype("f4")))
    middle = slice(among // 2, among // 2 + shape[1])
    with selected(algorithm="bfloat16"):
        wanted = passes(x[:, middle], w, bias, grad, steps)
        narrow = x.astype(dtype, order="K")[:, middle], grad.astype(dtype, order="K")
        found = passes(narrow[0], w, bias, narrow[1], steps)
        conv = PrepackedConvolution(w, bias, **steps)
        given = shape, narrow[0].strides, NARROW_DTYPE
        call_plan, _ = conv.prepared(*given, (True, True))
    assert call_plan.plan.algorithm == "bfloat16" and call_plan.narrow == (True, True)
    # Nothing is packed where a word is a pair, and there are whole blocks of them.
    in_place = name.startswith("whole") and 2 * _isa.bfloat16_words() == _isa.BFLOAT16_TERMS
    if name not in ("few pixels", "volumes"):
        assert ("where they lie" in call_plan.plan.reason) == in_place
    for made, exact in zip(found[:2], wanted[:2], strict=True):
        assert made.dtype == dtype and np.abs(exact).max() > 1
        assert made.tobytes("A") == rounded(exact).tobytes("A")
    np.testing.assert_array_equal(found[2], wanted[2])


@pytest.mark.parametrize("name", LAYERS)
def test_bits_do_not_depend_on_threads(rng, name):
    shape, channels, kernel, steps, algorithm, _ = LAYERS[name]
    shape = (3 * shape[0], *shape[1:])
    x = drawn(rng, shape)
    size = (kernel,) * (len(shape) - 2) if isinstance(kernel, int) else kernel
    w = rng.standard_normal((channels, shape[1] // steps.get("groups", 1), *size)).astype("f4")
    before, results = convcore.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 7):
            convcore.set_num_threads(threads)
            conv = PrepackedConvolution(w, **steps)
            with selected(algorithm=algorithm):
                given = (shape, rounded(x).strides, NARROW_DTYPE)
                call_plan, packed = conv.prepared(*given, (True, True))
            results.append(run(call_plan, x, w, None, packed))
    finally:
        convcore.set_num_threads(before)
    assert all(np.array_equal(results[0], other) for other in results)


def test_rounding_is_to_nearest_and_ties_to_even():
    # Numbers on and beside ties, subnormal ones, the largest.
    bits = np.arange(1 << 16, dtype=np.uint32)
    numbers = np.concatenate(
        [(bits << 16 | low).view("f4") for low in (0, 1, 0x7FFF, 0x8000, 0x8001)]
    )
    numbers = numbers[np.isfinite(numbers)]
    numbers = numbers[: numbers.size // 64 * 64].reshape(1, -1, 2, 32)
    x = layout.empty((1, 32, numbers.shape[1], 2), np.dtype("f4"), True)
    x[...] = numbers.transpose(0, 3, 1, 2)
    w = np.zeros((32, 1, 3, 3), "f4")
    w[:, :, 1, 1] = 1
    conv = PrepackedConvolution(w, padding=1, groups=32)
    # Depthwise reads and writes bfloat16 or neither: its bits come back as they are.
    narrow = rounded(x)
    call_plan, packed = conv.prepared(x.shape, narrow.strides, NARROW_DTYPE, (True, True))
    finite = np.isfinite(widened(narrow))
    y = run(call_plan, np.where(finite, widened(narrow), 0), w, None, packed)
    assert call_plan.narrow == BOTH
    assert np.array_equal(widened(y), np.where(finite, widened(narrow), 0))
    # Rounded at the end of a product with one.
    one = PrepackedConvolution(np.eye(32, dtype="f4")[:, :, np.newaxis, np.newaxis])
    with selected(algorithm="indirect"):
        call_plan, packed = one.prepared(x.shape, x.strides, x.dtype, (False, True))
    y = run(call_plan, x, one.weight, None, packed)
    assert call_plan.narrow == (False, True)
    # Zeros of either sign are one: sums begin at zero.
    assert np.array_equal(widened(y), widened(rounded(x)))


def test_nan_and_infinity_stay(rng):
    x = drawn(rng, (1, 32, 6, 6))
    x[0, 3, 2, 2], x[0, 4, 4, 4] = np.nan, np.inf
    w = rng.standard_normal((32, 1, 3, 3)).astype("f4")
    conv = PrepackedConvolution(w, padding=1, groups=32)
    call_plan, packed = conv.prepared(x.shape, rounded(x).strides, NARROW_DTYPE, (True, True))
    made = widened(run(call_plan, x, w, None, packed))
    exact = conv_forward(x, w, padding=1, groups=32)
    assert np.array_equal(np.isnan(made), np.isnan(exact))
    assert np.array_equal(np.isinf(made), np.isinf(exact)) and np.isinf(made).any()


@examples(50)
@given(st.integers(0, 100_000))
def test_widening_keeps_every_bit(count):
    x = np.arange(count, dtype=NARROW_DTYPE)
    y = np.full(count + 1, 7, "f4")
    widen(x, y, count)
    assert np.array_equal(y[:count].view(np.uint32), x.astype(np.uint32) << 16) and y[count] == 7


# The passes of arrays of bfloat16, as a net in mixed precision makes them.


def operands(rng, name, channels_last):
    """Return a layer's input, weight and bias in float32 that bfloat16 has, and its steps."""
    shape, channels, kernel, steps, _, _ = LAYERS[name]
    size = (kernel,) * (len(shape) - 2) if isinstance(kernel, int) else kernel
    x = drawn(rng, shape)
    w = drawn(rng, (channels, shape[1] // steps.get("groups", 1), *size))
    x, w = (a if channels_last else np.ascontiguousarray(a) for a in (x, w))
    return x, w, widened(rounded(rng.standard_normal(channels).astype("f4"))), steps


def passes(x, w, bias, grad, steps):
    """Return the results of the passes."""
    sizes, kernel = x.shape[2:], w.shape[2:]
    return (
        conv_forward(x, w, bias, **steps),
        conv_input_grad(grad, w, sizes, **steps),
        conv_weight_grad(x, grad, kernel, **steps),
    )


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_passes_of_bfloat16_are_rounded_once(name, channels_last, rng, threads):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    x, w, bias, steps = operands(rng, name, channels_last)
    grad = drawn(rng, conv_forward(x, w, **steps).shape)
    grad = grad if channels_last else np.ascontiguousarray(grad)
    exact = passes(*(a.astype("f8", order="K") for a in (x, w, bias, grad)), steps)
    results = []
    for count in (1, 2, 3):
        threads(count)
        for kind in (dtype, "f4"):  # of the weights
            pixels = [a.astype(dtype, order="K") for a in (x, grad)]
            weights = [a.astype(kind, order="K") for a in (w, bias)]
            found = passes(pixels[0], *weights, pixels[1], steps)
            assert [a.dtype for a in found] == [dtype, dtype, np.float32]
            for one, right in zip(found, exact, strict=True):
                # Half a unit of bfloat16, and what Winograd's method loses.
                slack = np.abs(right) * 2**-8 * (one.dtype == dtype) + 1e-4 * np.abs(right).max()
                assert np.all(np.abs(one.astype("f8") - right) <= slack)
            results.append([a.tobytes() for a in found])
    assert all(result == results[0] for result in results)


def test_transposed_convolution_of_bfloat16_has_a_bias(rng):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    for channels, groups in ((48, 1), (3, 3)):
        x, w = drawn(rng, (2, channels, 7, 9)), drawn(rng, (channels, 24, 2, 2))
        bias = widened(rounded(rng.standard_normal(24 * groups).astype("f4")))
        exact = conv_transpose(*(a.astype("f8") for a in (x, w, bias)), stride=2, groups=groups)
        given = (a.astype(dtype, order="K") for a in (x, w, bias))
        made = conv_transpose(*given, stride=2, groups=groups)
        assert made.dtype == dtype
        assert np.all(np.abs(made.astype("f8") - exact) <= np.abs(exact) * 2**-8 + 1e-5)


def test_arrays_of_bfloat16_may_have_gaps_and_activations(rng):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    x, w, bias, steps = operands(rng, "1x1", True)
    given = [np.repeat(a, 2, axis=0)[::2].astype(dtype, order="K") for a in (x, w)]
    spread = np.zeros((*x.shape[:3], 2 * x.shape[3]), dtype)[..., ::2]
    spread[...] = given[0]
    wanted = conv_forward(*given, bias.astype(dtype), activation="relu", **steps)
    found = conv_forward(spread, given[1], bias.astype(dtype), activation="relu", **steps)
    np.testing.assert_allclose(found.astype("f4"), wanted.astype("f4"), rtol=2**-7)
    assert (wanted.astype("f4") >= 0).all() and wanted.astype("f4").max() > 1


@pytest.mark.parametrize("channels", [1, 3, 64, 130])
def test_bias_gradients_are_float32_sums(channels, rng):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    for channels_last, rest in itertools.product((True, False), (0, 3)):
        grad = drawn(rng, (3, channels + rest, 40, 70))
        grad = (grad if channels_last else np.ascontiguousarray(grad)).astype(dtype, order="K")
        grad = grad[:, rest // 2 : rest // 2 + channels]
        found = conv_bias_grad(grad)
        assert found.dtype == np.float32
        exact = grad.astype("f8").sum((0, 2, 3))
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-3)


def test_too_few_axes_with_gaps_are_refused():
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    with pytest.raises(ValueError, match="input"):
        conv_forward(np.ones(8, dtype)[::2], np.ones((1, 1, 3, 3), dtype))


@pytest.mark.parametrize("kind", ["f8", "f2", "i4"])
def test_other_dtypes_beside_bfloat16_are_refused(kind):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    x, w, grad = np.ones((1, 2, 3, 3), dtype), np.ones((4, 2, 1, 1)), np.ones((1, 4, 3, 3))
    with pytest.raises(TypeError, match="weight must be"):
        conv_forward(x, w.astype(kind))
    with pytest.raises(TypeError, match="grad_output must be bfloat16 as input is, got"):
        conv_weight_grad(x, grad.astype("f4"), (1, 1))
    with pytest.raises(TypeError, match="bias must"):
        conv_forward(x, w.astype("f4"), np.ones(4, kind))
