"""The oracles agree with each other and with numbers worked out by hand."""

import numpy as np
import pytest

from convcore.engine import reference
from convcore.engine.geometry import make_geometry, transposed_geometry

# Rank 1 to 3, every parameter different on every axis: input, weight, stride, padding, dilation,
# groups.
CASES = [
    ((2, 3, 7), (4, 3, 3), 2, [(1, 2)], 2, 1),
    ((1, 4, 5), (4, 1, 2), 1, [(3, 0)], 1, 4),
    ((2, 2, 5, 6), (3, 2, 3, 2), (2, 1), [(1, 0), (2, 1)], (1, 3), 1),
    ((1, 4, 5, 4), (6, 2, 2, 3), (3, 2), [(4, 3), (0, 2)], (2, 1), 2),
    ((2, 3, 4, 4), (3, 1, 1, 1), (2, 3), 1, 1, 3),
    ((0, 2, 4, 4), (3, 2, 2, 2), 1, 0, 1, 1),
    ((1, 2, 3, 4, 5), (2, 1, 2, 3, 1), (1, 2, 3), [(1, 0), (0, 2), (1, 1)], (2, 1, 1), 2),
]


def draw(rng, shape, dtype=np.float64):
    array = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        array = array + 1j * rng.standard_normal(shape)
    return array.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("case", CASES)
def test_tap_loops_agree_with_index_loops(case, dtype, rng):
    input_shape, weight_shape, stride, padding, dilation, groups = case
    geometry = make_geometry(*case)
    steps = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, w = draw(rng, input_shape, dtype), draw(rng, weight_shape, dtype)
    y = draw(rng, geometry.output_shape, dtype)
    np.testing.assert_allclose(
        reference.conv_forward(x, w, **steps),
        reference.loop_forward(x, w, geometry),
        atol=1e-13,
        strict=True,
    )
    np.testing.assert_allclose(
        reference.conv_input_grad(y, w, input_shape[2:], **steps),
        reference.loop_input_grad(y, w, geometry),
        atol=1e-13,
        strict=True,
    )
    np.testing.assert_allclose(
        reference.conv_weight_grad(x, y, weight_shape[2:], **steps),
        reference.loop_weight_grad(x, y, geometry),
        atol=1e-13,
        strict=True,
    )


@pytest.mark.parametrize("case", CASES)
def test_unbatched_is_a_batch_of_one_without_its_axis(case, rng):
    input_shape, weight_shape, stride, padding, dilation, groups = case
    geometry = make_geometry((1, *input_shape[1:]), weight_shape, *case[2:])
    steps = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, w = draw(rng, geometry.input_shape), draw(rng, weight_shape)
    y, b = draw(rng, geometry.output_shape), draw(rng, weight_shape[0])
    for batched, unbatched in [
        (reference.conv_forward(x, w, b, **steps)[0], reference.conv_forward(x[0], w, b, **steps)),
        (
            reference.conv_input_grad(y, w, input_shape[2:], **steps)[0],
            reference.conv_input_grad(y[0], w, input_shape[2:], **steps),
        ),
        (
            reference.conv_weight_grad(x, y, weight_shape[2:], **steps),
            reference.conv_weight_grad(x[0], y[0], weight_shape[2:], **steps),
        ),
        (reference.conv_bias_grad(y), reference.conv_bias_grad(y[0], unbatched=True)),
    ]:
        np.testing.assert_array_equal(batched, unbatched, strict=True)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_im2col_times_the_weight_matrix_is_the_convolution(case, channels_last, rng):
    """NCHW: W @ columns; NHWC: patches @ W, with the weight's axes in the patches' order."""
    input_shape, weight_shape, stride, padding, dilation, _ = case
    weight_shape = (weight_shape[0], input_shape[1], *weight_shape[2:])
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    x, w = draw(rng, input_shape), draw(rng, weight_shape)
    columns = reference.im2col(x, weight_shape[2:], channels_last=channels_last, **steps)
    if channels_last:
        rows = columns @ np.moveaxis(w, 1, -1).reshape(len(w), -1).T
        product = rows.transpose(0, 2, 1)
    else:
        product = w.reshape(len(w), -1) @ columns
    exact = reference.conv_forward(x, w, **steps)
    np.testing.assert_allclose(product.reshape(exact.shape), exact, atol=1e-13)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_col2im_is_the_adjoint_of_im2col(case, channels_last, rng):
    input_shape, weight_shape, stride, padding, dilation, _ = case
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    kernel = weight_shape[2:]
    x = draw(rng, input_shape)
    columns = reference.im2col(x, kernel, channels_last=channels_last, **steps)
    c = draw(rng, columns.shape)
    back = reference.col2im(c, input_shape[2:], kernel, channels_last=channels_last, **steps)
    assert back.shape == x.shape
    np.testing.assert_allclose(np.vdot(columns, c), np.vdot(x, back), atol=1e-11)


def test_transposed_is_the_adjoint_of_its_convolution_by_index_loops(rng):
    for extra, stride, dilation in [(0, 1, 1), (1, 2, 1), (1, 1, 2), (2, 3, 2), (2, 2, 3)]:
        x, w = draw(rng, (2, 4, 3)), draw(rng, (4, 3, 2))
        geometry = transposed_geometry(x.shape, w.shape, stride, [(1, 0)], extra, dilation, 2)
        np.testing.assert_allclose(
            reference.conv_transpose(x, w, None, stride, [(1, 0)], extra, 2, dilation),
            reference.loop_input_grad(x, w, geometry),
            atol=1e-13,
            strict=True,
        )


def test_results_are_float64_or_complex128():
    one = np.ones((1, 1, 1))
    for dtype, wide in [
        (np.float32, np.float64),
        (np.int32, np.float64),
        (np.complex64, np.complex128),
    ]:
        assert reference.conv_forward(one.astype(dtype), one).dtype == wide
        assert reference.conv_input_grad(one, one.astype(dtype), 1).dtype == wide
        assert reference.conv_weight_grad(one.astype(dtype), one, 1).dtype == wide
        assert reference.im2col(one.astype(dtype), 1).dtype == wide


def test_arguments_are_left_as_they_are(rng):
    x, w, y = draw(rng, (1, 2, 5)), draw(rng, (3, 2, 2)), draw(rng, (1, 3, 4))
    b = draw(rng, 3)
    for array in (x, w, y, b):
        array.flags.writeable = False
    reference.conv_forward(x, w, b)
    reference.conv_input_grad(y, w, 5)
    reference.conv_weight_grad(x, y, 2)
    reference.conv_transpose(y, w, draw(rng, 2))


# The notebook's numbers, worked out by hand


def test_reference_padding_larger_than_the_kernel():
    x, w = np.arange(25.0).reshape(1, 1, 5, 5), np.ones((1, 1, 2, 2))
    y = reference.conv_forward(x, w, stride=2, padding=3)
    assert y[0, 0].tolist() == [
        [0, 0, 0, 0, 0],
        [0, 0, 3, 7, 0],
        [0, 15, 36, 44, 0],
        [0, 35, 76, 84, 0],
        [0, 0, 0, 0, 0],
    ]
    ones = np.ones_like(y)
    assert (reference.conv_input_grad(ones, w, (5, 5), stride=2, padding=3) == 1).all()
    grad_weight = reference.conv_weight_grad(x, ones, (2, 2), stride=2, padding=3)
    assert grad_weight[0, 0].tolist() == [[48, 72], [72, 108]]


def test_reference_kernel_arange():
    x, w = np.arange(9.0).reshape(1, 1, 3, 3), np.arange(4.0).reshape(1, 1, 2, 2)
    y = reference.conv_forward(x, w, padding=1)
    assert y[0, 0].tolist() == [[0, 3, 8, 4], [9, 19, 25, 10], [21, 37, 43, 16], [6, 7, 8, 0]]
    ones = np.ones_like(y)
    assert (reference.conv_input_grad(ones, w, 3, padding=1) == 6).all()
    assert (reference.conv_weight_grad(x, ones, 2, padding=1) == 36).all()


def test_reference_three_channels():
    x, w = np.arange(150.0).reshape(2, 3, 5, 5), np.ones((1, 3, 2, 2))
    ones = np.ones((2, 1, 4, 4))
    edge, inner = [1, 2, 2, 2, 1], [2, 4, 4, 4, 2]
    grad_input = reference.conv_input_grad(ones, w, 5)
    assert grad_input.tolist() == [[[edge, inner, inner, inner, edge]] * 3] * 2
    assert reference.conv_weight_grad(x, ones, 2)[0].tolist() == [
        [[1488, 1520], [1648, 1680]],
        [[2288, 2320], [2448, 2480]],
        [[3088, 3120], [3248, 3280]],
    ]


# The measure of error


def test_error_is_measured_in_eps_of_the_largest_bound():
    exact = np.array([1.0, 4.0])
    result = exact + np.array([0, 3 * np.finfo(np.float32).eps])
    assert reference.error_in_eps(result, exact, np.array([2.0, 6.0]), np.float32) == 0.5
    assert reference.error_in_eps(result, exact, np.array([2.0, 6.0]), np.complex64) == 0.5


def test_error_of_nothing_is_zero_and_of_a_wrong_zero_infinite():
    empty, zero, one = np.empty((0, 2)), np.zeros(1), np.ones(1)
    assert reference.error_in_eps(empty, empty, empty, np.float32) == 0
    assert reference.error_in_eps(zero, zero, zero, np.float32) == 0
    assert reference.error_in_eps(one, zero, zero, np.float32) == np.inf


def test_error_is_nan_if_the_result_is():
    assert np.isnan(reference.error_in_eps([np.nan], [0.0], [1.0], np.float64))


def test_error_refuses_to_broadcast():
    with pytest.raises(ValueError, match=r"\(2,\).*\(1,\)"):
        reference.error_in_eps(np.ones(2), np.ones(1), np.ones(1), np.float32)
