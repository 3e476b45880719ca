"""im2col, col2im and the view of all patches: the oracle's elements, moved or seen."""

import numpy as np
import pytest
from draws import DTYPES, LAYOUTS, is_dense, lay_out, numbers

from convcore import engine
from convcore.engine import reference

# input shape, kernel, stride, padding, dilation: everything different on every axis.
PATCHES = [
    ((2, 3, 8), (3,), (2,), [(1, 2)], (2,)),
    ((2, 3, 7, 6), (3, 2), (2, 1), [(1, 0), (2, 3)], (1, 2)),
    ((1, 17, 5, 9), (2, 3), (1, 3), [(0, 0), (4, 1)], (3, 1)),
    ((1, 1, 1, 1), (1, 1), (2, 3), [(0, 1), (1, 0)], (1, 1)),
    ((0, 2, 5, 5), (2, 3), (1, 2), [(0, 1), (1, 0)], (1, 1)),
    ((2, 2, 4, 5, 6), (2, 3, 1), (1, 2, 3), [(1, 0), (0, 2), (1, 1)], (2, 1, 1)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", PATCHES)
def test_im2col_moves_exactly_the_oracles_elements(case, layout, dtype, rng):
    shape, kernel, stride, padding, dilation = case
    x = lay_out(numbers(rng, shape, dtype), layout, rng)
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    for channels_last in (False, True):
        columns = engine.im2col(x, kernel, channels_last=channels_last, **steps)
        exact = reference.im2col(x, kernel, channels_last=channels_last, **steps)
        assert columns.dtype == dtype
        assert columns.flags.c_contiguous
        np.testing.assert_array_equal(columns, exact)
        if len(x):
            np.testing.assert_array_equal(
                engine.im2col(x[0], kernel, channels_last=channels_last, **steps), exact[0]
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["contiguous", "permuted", "strided", "broadcast", "field"])
@pytest.mark.parametrize("case", PATCHES)
def test_col2im_agrees_with_the_oracle(case, layout, dtype, rng):
    shape, kernel, stride, padding, dilation = case
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    for channels_last in (False, True):
        columns = reference.im2col(np.ones(shape), kernel, channels_last=channels_last, **steps)
        c = lay_out(numbers(rng, columns.shape, dtype, integers=True), layout, rng)
        image = engine.col2im(c, shape[2:], kernel, channels_last=channels_last, **steps)
        exact = reference.col2im(c, shape[2:], kernel, channels_last=channels_last, **steps)
        assert image.dtype == dtype
        assert is_dense(image, channels_last)
        np.testing.assert_array_equal(image, exact)
        if len(c):
            np.testing.assert_array_equal(
                engine.col2im(c[0], shape[2:], kernel, channels_last=channels_last, **steps),
                exact[0],
            )


def test_col2im_of_im2col_counts_how_often_each_element_is_read():
    ones = np.ones((1, 1, 5, 5))
    edge, inner = [1, 2, 2, 2, 1], [2, 4, 4, 4, 2]
    counts = engine.col2im(engine.im2col(ones, 2), (5, 5), (2, 2))
    assert counts[0, 0].tolist() == [edge, inner, inner, inner, edge]


def test_im2col_view_is_the_notebooks():
    view = engine.im2col_view(np.arange(9.0).reshape(1, 1, 3, 3), 2, stride=2, dilation=2)
    assert view.tolist() == [[[[[[0, 2], [6, 8]]]]]]


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "field"])
@pytest.mark.parametrize("case", PATCHES)
def test_im2col_view_shares_memory_and_holds_im2cols_elements(case, layout, rng):
    shape, kernel, stride, _, dilation = case
    if any(d * (k - 1) >= n for n, k, d in zip(shape[2:], kernel, dilation, strict=True)):
        pytest.skip("the kernel does not fit without padding")
    x = lay_out(numbers(rng, shape, "float32"), layout, rng)
    view = engine.im2col_view(x, kernel, stride=stride, dilation=dilation)
    rank = len(kernel)
    assert view.ndim == 2 + 2 * rank
    assert view.shape[-rank:] == kernel
    assert not view.flags.writeable
    assert x.size == 0 or np.shares_memory(view, x)
    # (N, C, *outs, *kernel) -> (N, C * taps, P)
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    columns = reference.im2col(x, kernel, stride=stride, dilation=dilation)
    np.testing.assert_array_equal(view.transpose(order).reshape(columns.shape), columns)


def test_im2col_view_sees_later_changes_of_its_input():
    x = np.zeros((1, 1, 3, 3))
    view = engine.im2col_view(x, 2)
    x[0, 0, 1, 1] = 5
    assert (view == 5).sum() == 4


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "arguments"),
    [
        ((2, 3, 6, 7), ((2, 3),)),
        ((2, 3, 6, 7), (2,)),
        ((3, 6, 7), ((3, 2), (1, 2), (2, 1), (2, 3))),
        ((1, 2, 5, 5), (3, 2, 1, 2)),
    ],
)
def test_unfold_and_fold_are_pytorchs(shape, arguments, dtype, torch, rng):
    x = numbers(rng, shape, dtype, integers=True)
    columns = engine.unfold(x, *arguments)
    expected = torch.nn.functional.unfold(torch.from_numpy(x), *arguments)
    np.testing.assert_array_equal(columns, expected.numpy(), strict=True)
    image = engine.fold(columns, shape[-2:], *arguments)
    expected = torch.nn.functional.fold(expected, shape[-2:], *arguments)
    np.testing.assert_array_equal(image, expected.numpy(), strict=True)


def test_notebook_convolution_is_the_view_times_the_weight(rng):
    x, w = rng.standard_normal((2, 3, 7, 8)), rng.standard_normal((4, 3, 2, 3))
    view = engine.im2col_view(engine.zero_pad(x, 1), (2, 3), stride=(2, 1), dilation=(1, 2))
    product = np.tensordot(view, w, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
    y = engine.conv2d(x, w, stride=(2, 1), padding=1, dilation=(1, 2))
    np.testing.assert_allclose(y, product, atol=1e-13, strict=True)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int16", "int64"])
@pytest.mark.parametrize("case", PATCHES)
def test_im2col_of_integers_keeps_their_dtype(case, dtype, rng):
    shape, kernel, stride, padding, dilation = case
    x = rng.integers(0, 2, shape).astype(dtype)
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    for channels_last in (False, True):
        columns = engine.im2col(x, kernel, **steps, channels_last=channels_last)
        wide = engine.im2col(x.astype("f8"), kernel, **steps, channels_last=channels_last)
        assert columns.dtype == dtype and columns.flags.c_contiguous
        np.testing.assert_array_equal(columns, wide)
