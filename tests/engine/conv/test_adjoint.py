"""The passes are each other's adjoints: an identity that needs no oracle."""

import numpy as np
import pytest
from draws import cases, lay_out, numbers
from hypothesis import given
from properties import examples

from convcore import engine

SOME = examples(300)
WIDE = ("float64", "complex128")


def inner(a, b):
    """Return the bilinear <a, b>, for nothing in the engine conjugates, and <|a|, |b|>."""
    assert a.shape == b.shape
    return (a * b).sum(), (np.abs(a) * np.abs(b)).sum()


def assert_equal_products(*pairs):
    """Compare <a, b> over pairs, relative to the largest sum of absolute values."""
    products, bounds = zip(*(inner(*pair) for pair in pairs), strict=True)
    for product in products[1:]:
        assert abs(product - products[0]) <= 1e-13 * (max(bounds) + 1)


def draw_arrays(case, seed, *shapes):
    rng = np.random.default_rng([seed, case.draw])
    return [
        lay_out(numbers(rng, shape, case.dtype), layout, rng)
        for shape, layout in zip(shapes, case.layouts, strict=False)
    ]


@pytest.mark.parametrize("channels_last", [False, True])
@SOME
@given(case=cases(dtypes=WIDE))
def test_col2im_is_the_adjoint_of_im2col(case, channels_last, seed):
    steps = {k: v for k, v in case.steps.items() if k != "groups"}
    g = case.geometry
    columns = (g.taps * g.c_in, g.pixels)
    x, c = draw_arrays(
        case, seed, g.input_shape, (g.n, *(reversed(columns) if channels_last else columns))
    )
    there = engine.im2col(x, case.kernel, channels_last=channels_last, **steps)
    back = engine.col2im(c, case.sizes, case.kernel, channels_last=channels_last, **steps)
    assert_equal_products((there, c), (x, back))


@SOME
@given(case=cases(dtypes=WIDE))
def test_conv_maps_are_adjoint_in_each_argument(case, seed):
    g = case.geometry
    x, w, y = draw_arrays(case, seed, g.input_shape, g.weight_shape, g.output_shape)
    assert_equal_products(
        (engine.conv_forward(x, w, **case.steps), y),
        (x, engine.conv_input_grad(y, w, case.sizes, **case.steps)),
        (w, engine.conv_weight_grad(x, y, case.kernel, **case.steps)),
    )


@SOME
@given(case=cases(dtypes=WIDE))
def test_conv_transpose_is_the_adjoint_of_conv(case, seed):
    """A convolution's output goes back, with output_padding for what its stride left over."""
    g = case.geometry
    left = [(a.padded - a.extent) % a.stride for a in case.axes]
    x, w, y = draw_arrays(case, seed, g.input_shape, g.weight_shape, g.output_shape)
    transpose = getattr(engine, f"conv_transpose{case.rank}d")
    assert_equal_products(
        (engine.conv_forward(x, w, **case.steps), y),
        (x, transpose(y, w, output_padding=left, **case.steps)),
    )
