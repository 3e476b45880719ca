"""The pieces for people who want no tensors, and the programs that they came for."""

from __future__ import annotations

import itertools

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


# im2col and col2im


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


# The zero-copy view


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


# Under PyTorch's names


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


# Padding, dilation, rotation


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


# matmul


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


# The notebook's programs, with its numbers


def gradients(x, w, **steps):
    """Return output, and the gradients of its sum."""
    y = engine.conv2d(x, w, **steps)
    ones = np.ones_like(y)
    grad_input = engine.conv_input_grad(ones, w, x.shape[2:], **steps)
    return y, grad_input, engine.conv_weight_grad(x, ones, w.shape[2:], **steps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_notebook_padding_larger_than_the_kernel(dtype):
    x, w = np.arange(25).astype(dtype).reshape(1, 1, 5, 5), np.ones((1, 1, 2, 2), dtype)
    y, grad_input, grad_weight = gradients(x, w, stride=2, padding=3)
    assert y[0, 0].tolist() == [
        [0, 0, 0, 0, 0],
        [0, 0, 3, 7, 0],
        [0, 15, 36, 44, 0],
        [0, 35, 76, 84, 0],
        [0, 0, 0, 0, 0],
    ]
    assert y.sum() == 300
    assert (grad_input == 1).all()
    assert grad_weight[0, 0].tolist() == [[48, 72], [72, 108]]


def test_notebook_one_step_of_gradient_descent():
    x, w = np.arange(64.0, dtype="float32").reshape(1, 1, 8, 8), np.ones((1, 1, 2, 2), "float32")
    y, grad_input, grad_weight = gradients(x, w, stride=2)
    assert y[0, 0].tolist() == [
        [18, 26, 34, 42],
        [82, 90, 98, 106],
        [146, 154, 162, 170],
        [210, 218, 226, 234],
    ]
    assert y.sum() == 2016
    assert (grad_input == 1).all()
    assert grad_weight[0, 0].tolist() == [[432, 448], [560, 576]]
    assert (w - grad_weight)[0, 0].tolist() == [[-431, -447], [-559, -575]]


def test_notebook_the_same_with_stride_one():
    x, w = np.arange(64.0).reshape(1, 1, 8, 8), np.ones((1, 1, 2, 2))
    y, _, grad_weight = gradients(x, w)
    assert y.shape == (1, 1, 7, 7)
    assert y.sum() == 6174
    assert grad_weight[0, 0].tolist() == [[1323, 1372], [1715, 1764]]


def test_notebook_kernel_that_counts():
    x, w = np.arange(9.0).reshape(1, 1, 3, 3), np.arange(4.0).reshape(1, 1, 2, 2)
    y, grad_input, grad_weight = gradients(x, w, padding=1)
    assert y[0, 0].tolist() == [[0, 3, 8, 4], [9, 19, 25, 10], [21, 37, 43, 16], [6, 7, 8, 0]]
    assert y.sum() == 216
    assert (grad_input == 6).all()
    assert (grad_weight == 36).all()


def test_notebook_two_images_of_three_channels():
    x, w = np.arange(150.0).reshape(2, 3, 5, 5), np.ones((1, 3, 2, 2))
    _, grad_input, grad_weight = gradients(x, w)
    edge, inner = [1, 2, 2, 2, 1], [2, 4, 4, 4, 2]
    assert grad_input.tolist() == [[[edge, inner, inner, inner, edge]] * 3] * 2
    assert grad_weight[0].tolist() == [
        [[1488, 1520], [1648, 1680]],
        [[2288, 2320], [2448, 2480]],
        [[3088, 3120], [3248, 3280]],
    ]


def test_notebook_convolution_is_the_view_times_the_weight(rng):
    x, w = rng.standard_normal((2, 3, 7, 8)), rng.standard_normal((4, 3, 2, 3))
    view = engine.im2col_view(engine.zero_pad(x, 1), (2, 3), stride=(2, 1), dilation=(1, 2))
    product = np.tensordot(view, w, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
    y = engine.conv2d(x, w, stride=(2, 1), padding=1, dilation=(1, 2))
    np.testing.assert_allclose(y, product, atol=1e-13, strict=True)


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
