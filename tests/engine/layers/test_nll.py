"""The losses of classes: compiled, in every layout, beside float64."""

import numpy as np
import pytest

import convcore
from convcore.engine.layers.softmax import nll
from convcore.nn import functional as F


def laid_out(array, form):
    """Return the array with its memory in an order of axes of its own, or with gaps."""
    if form == "gaps":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if form == "contiguous" or array.ndim < 3:
        return np.ascontiguousarray(array)
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def exact_loss(x, classes, weight, ignore):
    """Return each loss, the sum of weights, and the gradient of the sum, by loops."""
    losses, total, gradient = np.zeros(classes.shape), 0.0, np.zeros(x.shape)
    for place in np.ndindex(classes.shape):
        k = classes[place]
        if k != ignore:
            at = (*place[:1], k, *place[1:])
            losses[place] = -float(x[at]) * weight[k]
            gradient[at] = -weight[k]
            total += weight[k]
    return losses, total, gradient


@pytest.mark.parametrize("form", ["contiguous", "channels_last", "gaps"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(64, 10), (2, 5, 70, 61), (3, 4, 7), (2, 3, 4, 5, 6)])
def test_losses_of_classes_and_their_gradient_are_exact(shape, dtype, form, rng):
    x = laid_out(rng.standard_normal(shape).astype(dtype), form)
    classes = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    classes[rng.random(classes.shape) < 0.2] = -7
    weight = rng.random(shape[1]).astype(dtype)
    losses, total, gradient = exact_loss(x, classes, weight.astype("f8"), -7)
    eps = np.finfo(dtype if dtype != "float16" else "float32").eps
    each, weights = nll.forward(x, classes, weight, -7, True)
    np.testing.assert_allclose(each, losses, rtol=4 * eps)
    found, weights_again = nll.forward(x, classes, weight, -7, False)
    assert weights == weights_again
    np.testing.assert_allclose(found, losses.sum(), rtol=8 * eps, atol=1e-12 * np.abs(losses).sum())
    np.testing.assert_allclose(weights, total, rtol=1e-12)
    like = x.shape, x.dtype, nll.is_nhwc(x)
    found = nll.backward(np.array(3.0, dtype), 2.0, like, classes, weight, -7)
    assert found.dtype == x.dtype
    if form != "gaps":
        assert found.strides == x.strides
    np.testing.assert_allclose(found, 1.5 * gradient, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("form", ["contiguous", "channels_last"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(64, 10), (2, 5, 70, 61), (3, 1, 7), (5, 200)])
def test_smoothed_losses_and_their_gradient_are_exact(shape, weighted, form, rng):
    x = laid_out(rng.standard_normal(shape), form)
    classes = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    classes[rng.random(classes.shape) < 0.2] = -7
    weight = rng.random(shape[1]) if weighted else np.ones(shape[1])
    losses, total, gradient = exact_loss(x, classes, weight, -7)
    counted = classes != -7
    column = weight.reshape(-1, *(1,) * (len(shape) - 2))
    part = 0.3 / shape[1]
    losses = 0.7 * losses - part * (x * column).sum(1) * counted
    gradient = 0.7 * gradient - part * column * counted[:, None]
    given = weight if weighted else None
    each, weights = nll.forward(x, classes, given, -7, True, 0.3)
    np.testing.assert_allclose(each, losses, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(weights, total, rtol=1e-12)
    found, _ = nll.forward(x, classes, given, -7, False, 0.3)
    np.testing.assert_allclose(found, losses.sum(), rtol=1e-11)
    like = x.shape, x.dtype, nll.is_nhwc(x)
    found = nll.backward(np.array(3.0), 2.0, like, classes, given, -7, 0.3)
    np.testing.assert_allclose(found, 1.5 * gradient, rtol=1e-12, atol=1e-15)
    grad = rng.standard_normal(classes.shape)
    found = nll.backward(grad, 1.0, like, classes, given, -7, 0.3)
    np.testing.assert_allclose(found, grad[:, None] * gradient, rtol=1e-12, atol=1e-15)


def test_gradients_of_each_loss_are_weighted(rng):
    shape = (2, 5, 70, 61)
    classes = rng.integers(0, 5, (2, 70, 61))
    grad = rng.standard_normal(classes.shape)
    like = shape, np.dtype("f8"), False
    found = nll.backward(grad, 1.0, like, classes, None, -100)
    expected = np.zeros(shape)
    np.put_along_axis(expected, classes[:, None], -grad[:, None], 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("form", ["contiguous", "channels_last"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(2000, 100), (2, 21, 130, 130)])
def test_bits_do_not_depend_on_threads(shape, smoothing, form, rng):
    array = laid_out(rng.standard_normal(shape).astype("f4"), form)
    classes = convcore.from_numpy(rng.integers(0, shape[1], (shape[0], *shape[2:])))
    before = convcore.get_num_threads()
    bits = set()
    try:
        for threads in (1, 2, 3, 7):
            convcore.set_num_threads(threads)
            x = convcore.from_numpy(array).requires_grad_()
            loss = F.cross_entropy(x, classes, label_smoothing=smoothing)
            (F.softmax(x, 1).square().sum() + loss).backward()
            bits.add(loss.detach().numpy().tobytes() + x.grad.numpy().tobytes())
    finally:
        convcore.set_num_threads(before)
    assert len(bits) == 1


def test_a_class_that_is_none_is_named_wherever_it_is(rng):
    x = convcore.from_numpy(rng.standard_normal((2, 5, 70, 61)).astype("f4"))
    classes = rng.integers(0, 5, (2, 70, 61))
    for wrong in (5, -1, 2**40):
        classes[1, 69, 60] = wrong
        with pytest.raises(IndexError, match=rf"Target {wrong} is out of bounds\."):
            F.nll_loss(x, convcore.from_numpy(classes))


def test_cross_entropy_keeps_its_logarithms_and_the_classes_alone():
    x = convcore.zeros(4, 3, requires_grad=True)
    target = convcore.tensor([0, 1, 2, 0])
    loss = F.cross_entropy(x, target)
    node = loss.grad_fn
    assert (node._saved_target.data_ptr(), node._saved_weight) == (target.data_ptr(), None)
    before = node.next_functions[0][0]
    assert before._saved_result.shape == (4, 3)
