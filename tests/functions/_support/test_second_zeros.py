"""Gradients of piecewise linear functions can be differentiated again: zeros, as in PyTorch.

A gradient penalty differentiates the gradient; it must not fail for want of a path.
"""

from __future__ import annotations

import numpy as np
import pytest

import convcore


def _max_unpool(m, x):
    pooled = m.nn.functional.max_pool2d(x, 2, return_indices=True)
    return m.nn.functional.max_unpool2d(*pooled, 2)


# Where PyTorch's gradient is a function of the input, though its derivative is zero everywhere.
PIECEWISE = {
    "adaptive_avg_pool1d": lambda m, x: m.nn.functional.adaptive_avg_pool1d(x[0], 3),
    "adaptive_avg_pool2d": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda m, x: m.nn.functional.adaptive_max_pool2d(x, 2),
    "avg_pool1d": lambda m, x: m.nn.functional.avg_pool1d(x[0], 2),
    "avg_pool2d": lambda m, x: m.nn.functional.avg_pool2d(x, 2),
    "avg_pool3d": lambda m, x: m.nn.functional.avg_pool3d(x, 2),
    "copysign": lambda m, x: m.copysign(x, m.ones(())),
    "hardshrink": lambda m, x: m.nn.functional.hardshrink(x),
    "hardswish": lambda m, x: m.nn.functional.hardswish(x),
    "hardtanh": lambda m, x: m.nn.functional.hardtanh(x),
    "leaky_relu": lambda m, x: m.nn.functional.leaky_relu(x),
    "max_pool1d": lambda m, x: m.nn.functional.max_pool1d(x[0], 2),
    "max_pool2d": lambda m, x: m.nn.functional.max_pool2d(x, 2),
    "max_pool3d": lambda m, x: m.nn.functional.max_pool3d(x, 2),
    "max_unpool2d": _max_unpool,
    "nll_loss": lambda m, x: m.nn.functional.nll_loss(x[0, 0], m.tensor([0, 1, 2, 3])),
    "nll_loss of maps": lambda m, x: m.nn.functional.nll_loss(x, m.ones(2, 4, 4).long()),
    "prelu": lambda m, x: m.nn.functional.prelu(x, m.tensor([0.3])),
    "prelu's weight": lambda m, x: m.nn.functional.prelu(-m.ones(1, 4), x.flatten()[:4]),
    "reflect": lambda m, x: m.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "relu": lambda m, x: m.nn.functional.relu(x),
    "relu in place": lambda m, x: m.nn.functional.relu(x * 1, inplace=True),
    "relu6": lambda m, x: m.nn.functional.relu6(x),
    "replicate": lambda m, x: m.nn.functional.pad(x, (1, 2, 0, 1), mode="replicate"),
    "rrelu": lambda m, x: m.nn.functional.rrelu(x),
    "rrelu in training": lambda m, x: m.nn.functional.rrelu(x, training=True),
    "softshrink": lambda m, x: m.nn.functional.softshrink(x),
    "threshold": lambda m, x: m.nn.functional.threshold(x, 0.1, 0.2),
}
SMOOTH_SOMEWHERE = {"hardswish"}


def _twice(m, call, before):
    """Return the gradient, and the gradient of its sum with weights."""
    values = np.random.default_rng(3).normal(size=(2, 2, 4, 4)) * 2
    x = m.tensor(values.tolist(), dtype=m.float64, requires_grad=True)
    m.set_default_dtype(m.float64)
    try:
        y = call(m, x * 1 if before else x)
        weights = m.arange(y.numel()).reshape(y.shape) + 1.0
        (first,) = m.autograd.grad((y * weights).sum(), x, create_graph=True)
        assert first.requires_grad
        (second,) = m.autograd.grad((first * first).sum(), x)
    finally:
        m.set_default_dtype(m.float32)
    return first.detach().numpy(), second.numpy()


@pytest.mark.parametrize("before", [False, True], ids=["leaf", "result"])
@pytest.mark.parametrize("name", PIECEWISE)
def test_second_gradients_are_zeros(name, before):
    first, second = _twice(convcore, PIECEWISE[name], before)
    assert np.any(first != 0)
    assert second.shape == first.shape
    if name not in SMOOTH_SOMEWHERE:
        assert not second.any()


@pytest.mark.parametrize("name", PIECEWISE)
def test_second_gradients_agree_with_pytorch(torch, name):
    for m in (convcore, torch):
        m.manual_seed(5)
    ours, theirs = (_twice(m, PIECEWISE[name], before=False) for m in (convcore, torch))
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-9)


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d", "conv1d", "conv3d"])
@pytest.mark.parametrize("given", ["input", "weight"])
def test_a_convolution_of_one_operand_that_requires_grad_has_a_gradient_that_requires_it(
    torch, name, given
):
    """A penalty of the gradient is then zero for it, and not an error in the backward pass."""
    rank = int(name[-2])
    for m in (torch, convcore):
        x, w, b = m.ones(1, 1, *[4] * rank), m.ones(1, 1, *[2] * rank), m.ones(1)
        (x if given == "input" else w).requires_grad_()
        b.requires_grad_()
        leaf = x if given == "input" else w
        y = getattr(m.nn.functional, name)(x, w, b, stride=2)
        grads = m.autograd.grad(y.sum(), [leaf, b], create_graph=True)
        assert all(grad.requires_grad for grad in grads)
        sum((grad * grad).sum() for grad in grads).backward()
        assert leaf.grad is None or not leaf.grad.any()
