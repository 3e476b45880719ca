"""nn.grad: the gradients of a convolution by themselves, beside PyTorch's and the graph's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore import engine, nn

# input, channels out, kernel, stride, padding, dilation, groups
CASES = [
    ((2, 3, 8), 4, (3,), 2, 1, 1, 1),
    ((1, 4, 9), 6, (2,), (3,), (2,), (2,), 2),
    ((2, 3, 7, 6), 4, (3, 2), (2, 1), (1, 0), (1, 2), 1),
    ((1, 4, 5, 9), 4, (2, 3), 3, 1, 1, 4),
    ((3, 2, 1, 1), 2, (1, 1), 1, 0, 1, 1),
    ((1, 2, 4, 5, 6), 4, (2, 3, 1), (1, 2, 3), (1, 0, 1), 1, 2),
]


def drawn(rng, case):
    """Return input, weight and gradient of the output, and the steps."""
    shape, channels, kernel, *steps = case
    stride, padding, dilation, groups = steps
    x = rng.standard_normal(shape)
    w = rng.standard_normal((channels, shape[1] // groups, *kernel))
    named = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = rng.standard_normal(engine.conv_forward(x, w, **named).shape)
    return x, w, y, named


@pytest.mark.parametrize("case", CASES)
def test_input_gradient_agrees_with_pytorch(torch, rng, seed, case):
    x, w, y, steps = drawn(rng, case)

    def function(lib, w, y):
        by_input = getattr(lib.nn.grad, f"conv{x.ndim - 2}d_input")
        return by_input(x.shape, w, y, **steps)

    agree(torch, function, w, y, seed=seed, nodes=1)


@pytest.mark.parametrize("case", CASES)
def test_weight_gradient_agrees_with_pytorch(torch, rng, seed, case):
    x, w, y, steps = drawn(rng, case)

    def function(lib, x, y):
        by_weight = getattr(lib.nn.grad, f"conv{x.ndim - 2}d_weight")
        return by_weight(x, w.shape, y, *steps.values())

    agree(torch, function, x, y, seed=seed, nodes=1)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_that_the_graph_computes(rng, case):
    x, w, y, steps = drawn(rng, case)
    rank = x.ndim - 2
    x, w, y = (convcore.from_numpy(array) for array in (x, w, y))
    forward = getattr(nn.functional, f"conv{rank}d")
    x.requires_grad_()
    w.requires_grad_()
    forward(x, w, None, **steps).backward(y)
    by_input = getattr(nn.grad, f"conv{rank}d_input")
    by_weight = getattr(nn.grad, f"conv{rank}d_weight")
    np.testing.assert_array_equal(by_input(x.shape, w.detach(), y, **steps), x.grad)
    np.testing.assert_array_equal(by_weight(x.detach(), w.shape, y, **steps), w.grad)


@pytest.mark.parametrize(
    ("shape", "groups"),
    [((2, 4, 4), 1), ((4, 4), 1), ((1, 5, 4, 4), 1), ((1, 2, 4, 4), 2)],
    ids=["unbatched", "sizes alone", "channels", "groups"],
)
def test_input_gradient_refuses_shapes_with_the_words_of_pytorch(torch, shape, groups):
    w, y = np.ones((3, 2, 2, 2)), np.ones((1, 3, 3, 3))
    same_error(torch, lambda lib, w, y: lib.nn.grad.conv2d_input(shape, w, y, groups=groups), w, y)


@pytest.mark.parametrize("steps", [{"stride": (1, 1, 1)}, {"stride": 0}, {"padding": -1}])
def test_gradients_refuse_parameters_out_of_their_ranges(torch, steps):
    x, w, y = np.ones((1, 2, 4, 4)), np.ones((3, 2, 2, 2)), np.ones((1, 3, 3, 3))
    same_error(torch, lambda lib, w, y: lib.nn.grad.conv2d_input((1, 2, 4, 4), w, y, **steps), w, y)
    with pytest.raises(RuntimeError):
        nn.grad.conv2d_weight(
            *map(convcore.from_numpy, (x,)), w.shape, convcore.ones(y.shape), **steps
        )


@pytest.mark.parametrize("shape", [(1, 3, 4, 3), (2, 3, 3, 3), (1, 4, 3, 3), (3, 3, 3)])
def test_gradients_refuse_a_gradient_of_another_output(shape):
    y = convcore.ones(shape)
    with pytest.raises(RuntimeError):
        nn.grad.conv2d_input((1, 2, 4, 4), convcore.ones(3, 2, 2, 2), y)
    with pytest.raises(RuntimeError):
        nn.grad.conv2d_weight(convcore.ones(1, 2, 4, 4), (3, 2, 2, 2), y)


def test_gradients_refuse_what_is_no_tensor():
    with pytest.raises(TypeError):
        nn.grad.conv2d_input((1, 2, 4, 4), np.ones((3, 2, 2, 2)), convcore.ones(1, 3, 3, 3))
    with pytest.raises(TypeError):
        nn.grad.conv2d_weight(convcore.ones(1, 2, 4, 4), (3, 2, 2, 2), None)
