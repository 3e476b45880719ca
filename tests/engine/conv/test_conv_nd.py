"""conv1d to conv_transpose3d: each takes its own rank, and gives the notebook's numbers."""

import numpy as np
import pytest
from draws import DTYPES

from convcore import engine


def test_conv_of_a_rank_takes_that_rank_alone():
    for rank in (1, 2, 3):
        for other in {1, 2, 3} - {rank}:
            x, w = np.ones((1, 1, *(3,) * other)), np.ones((1, 1, *(1,) * other))
            for name in (f"conv{rank}d", f"conv_transpose{rank}d"):
                with pytest.raises(ValueError, match=f"weight|input|conv{rank}d"):
                    getattr(engine, name)(x, w)


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
