"""Pools of tensors beside PyTorch's: derivatives, nodes, memory formats and errors."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from against_torch import agree
from derivatives import assert_same_derivatives, leaf
from draws import lay_out
from hypothesis import given
from hypothesis import strategies as st
from pools import Case, X, cases
from properties import examples

import convcore
from convcore.engine import reference
from convcore.engine.layers.pooling import max_pooling
from convcore.functions.windows import pooling as functions


def directions(case: Case, seed: int, outs: tuple[int, ...]) -> list[np.ndarray]:
    """Draw an input and the directions of its derivatives: of the output's shape, its, theirs."""
    shapes = [(case.n, case.c, *case.sizes), (case.n, case.c, *outs)] * 2
    rng = np.random.default_rng([seed, case.draw])
    arrays = [
        np.array(lay_out(rng.integers(-4, 5, shape).astype(case.dtype), case.layout, rng))
        for shape in shapes
    ]
    return [a[0] if case.unbatched else a for a in arrays]


def outs_of(windows: list[reference.Window]) -> tuple[int, ...]:
    return tuple(j + 1 for j in windows[-1][0])


PAIRS = examples(60)


@PAIRS
@given(case=cases(dtypes=("float32", "float64")))
def test_max_pool_functions_have_pytorchs_derivatives(case, seed, torch):
    if any(p > k // 2 for p, k in zip(case.padding, case.kernel, strict=True)):
        return
    name, steps = f"max_pool{case.rank}d", case.max_steps
    windows = case.windows(steps)
    if not case.n or not all(pixels for _, pixels, _ in windows):
        return  # PyTorch has no third derivative there, or points outside the plane
    assert_same_derivatives(
        torch,
        lambda x: getattr(functions, name)(x, case.kernel, **steps),
        lambda x: getattr(torch.nn.functional, name)(x, case.kernel, **steps),
        directions(case, seed, outs_of(windows)),
    )


@PAIRS
@given(case=cases(dtypes=("float32", "float64")))
def test_avg_pool_functions_have_pytorchs_derivatives(case, seed, torch):
    if case.rank == 3 and any(n < k for n, k in zip(case.sizes, case.kernel, strict=True)):
        return
    name, steps = f"avg_pool{case.rank}d", case.avg_steps
    outs = outs_of(case.windows(steps))
    if case.rank > 1:
        steps["divisor_override"] = case.divisor
    assert_same_derivatives(
        torch,
        lambda x: getattr(functions, name)(x, case.kernel, **steps),
        lambda x: getattr(torch.nn.functional, name)(x, case.kernel, **steps),
        directions(case, seed, outs),
        tolerance=2000 * np.finfo(case.dtype).eps,
    )


@PAIRS
@given(case=cases(dtypes=("float32", "float64")), kind=st.sampled_from(("avg", "max")))
def test_adaptive_pool_functions_have_pytorchs_derivatives(case, kind, seed, torch):
    name = f"adaptive_{kind}_pool{case.rank}d"
    assert_same_derivatives(
        torch,
        lambda x: getattr(functions, name)(x, case.outs),
        lambda x: getattr(torch.nn.functional, name)(x, case.outs),
        directions(case, seed, case.outs),
        tolerance=2000 * np.finfo(case.dtype).eps,
    )


@pytest.mark.parametrize(
    ("call", "rank"),
    [
        (lambda x: functions.max_pool1d(x, 3, 2, 1), 1),
        (lambda x: functions.max_pool2d(x, (2, 3), 1, (1, 0), ceil_mode=True), 2),
        (lambda x: functions.max_pool3d(x, 2), 3),
        (lambda x: functions.avg_pool1d(x, 3, 2, 1), 1),
        (lambda x: functions.avg_pool2d(x, (2, 3), 1, (1, 0), True, False), 2),
        (lambda x: functions.avg_pool3d(x, 2), 3),
        (lambda x: functions.adaptive_avg_pool1d(x, 2), 1),
        (lambda x: functions.adaptive_avg_pool2d(x, 1), 2),
        (lambda x: functions.adaptive_avg_pool2d(x, (3, None)), 2),
        (lambda x: functions.adaptive_avg_pool3d(x, (1, 2, 3)), 3),
        (lambda x: functions.adaptive_max_pool2d(x, (2, 3)), 2),
    ],
)
def test_pool_functions_pass_gradcheck(call, rank, rng):
    """Draws that differ by less than the step of the differences would break ties; few do."""
    order = rng.permutation(2 * 5**rank).reshape(1, 2, *(5,) * rank) / 50
    x = leaf(order)
    assert convcore.autograd.gradcheck(call, (x,))
    assert convcore.autograd.gradgradcheck(call, (x,))


def test_max_pools_of_a_long_axis_pass_gradcheck(rng, monkeypatch):
    monkeypatch.setattr(max_pooling, "MOST_BYTES", 0)
    monkeypatch.setattr(max_pooling, "_PIECE", 2)
    x = leaf(rng.permutation(2 * 11 * 4).reshape(1, 2, 11, 4) / 50)
    call = functools.partial(functions.max_pool2d, kernel_size=3, stride=2, padding=1)
    assert convcore.autograd.gradcheck(call, (x,))
    assert convcore.autograd.gradgradcheck(call, (x,))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: functions.max_pool2d(x, 2), "MaxPool2DWithIndicesBackward0"),
        (lambda x: functions.max_pool3d(x, 2), "MaxPool3DWithIndicesBackward0"),
        (lambda x: functions.avg_pool2d(x, 2), "AvgPool2DBackward0"),
        (lambda x: functions.avg_pool3d(x, 2), "AvgPool3DBackward0"),
        (lambda x: functions.adaptive_avg_pool2d(x, 2), "AdaptiveAvgPool2DBackward0"),
        (lambda x: functions.adaptive_avg_pool2d(x, 1), "MeanBackward1"),
        (lambda x: functions.adaptive_avg_pool3d(x, (1, 1, 1)), "MeanBackward1"),
        (lambda x: functions.adaptive_max_pool2d(x, 2), "AdaptiveMaxPool2DBackward0"),
    ],
)
def test_pool_nodes_are_named_as_pytorchs(call, name, rng, torch):
    shape = (2, 4, 4, 4) if "3D" in name or "1" in name[-1:] else (2, 4, 4)
    output = call(leaf(rng.standard_normal(shape)))
    assert output.grad_fn.name() == name
    assert [number for _, number in output.grad_fn.next_functions] == [0]


def test_max_pool_returns_indices_without_gradient(rng):
    x = leaf(rng.standard_normal((2, 3, 4, 4)))
    values, indices = functions.max_pool2d(x, 2, return_indices=True)
    assert values.requires_grad and not indices.requires_grad
    assert indices.dtype is convcore.int64 and indices.shape == values.shape == (2, 3, 2, 2)
    with convcore.no_grad():
        assert not functions.max_pool2d(x, 2).requires_grad
    assert not functions.max_pool2d(convcore.from_numpy(np.arange(4)[None, None]), 1).requires_grad


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("max_pool2d", (3, 2, 1)), ("avg_pool2d", (3, 2, 1)), ("adaptive_avg_pool2d", (3,))],
)
def test_pool_functions_keep_channels_last(name, arguments, rng):
    memory = rng.standard_normal((2, 5, 6, 4)).astype("float32")
    x = leaf(memory.transpose(0, 3, 1, 2))
    output = getattr(functions, name)(x, *arguments)
    (grad,) = convcore.autograd.grad(output, x, output.detach())
    for tensor in (output, grad):
        assert tensor.is_contiguous(memory_format=convcore.channels_last)
        assert not tensor.is_contiguous()


VOLUMES = {
    "max": lambda f, x: f.max_pool3d(x, 2),
    "indices": lambda f, x: f.max_pool3d(x, (1, 2, 3), return_indices=True)[1],
    "values": lambda f, x: f.max_pool3d(x, 2, return_indices=True)[0],
    "many taps": lambda f, x: f.max_pool3d(x, 4, 1, 2),
    "adaptive": lambda f, x: f.adaptive_max_pool3d(x, 2),
    "mean": lambda f, x: f.adaptive_avg_pool3d(x, 2),
}


@pytest.mark.parametrize("function", VOLUMES.values(), ids=VOLUMES)
def test_max_pooling_of_a_volume_alone_keeps_channels_last(torch, rng, function):
    array = rng.standard_normal((4, 6, 5, 3)).astype(np.float32)
    for order in (array.transpose(3, 0, 1, 2), array):  # channels_last, contiguous
        agree(torch, lambda m, x: function(m.nn.functional, x), order, strides=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda F, t: F.max_pool2d(3, 2), TypeError, r"max_pool2d\(\): argument 'input' \(pos"),
        (lambda F, t: F.max_pool2d(t(X), 2.0), TypeError, None),
        (lambda F, t: F.max_pool2d(t(X), 2, padding=None), TypeError, None),
        (lambda F, t: F.max_pool2d(t(X > 0), 2), NotImplementedError, '"max_pool2d" not implement'),
        (
            lambda F, t: F.avg_pool2d(t(X.astype("int32")), 2),
            NotImplementedError,
            "not implemented for 'Int'",
        ),
        (
            lambda F, t: F.max_pool2d(t(X), (2, 2, 2)),
            RuntimeError,
            "max_pool2d: kernel_size must either be a single int, or a tuple of two ints",
        ),
        (
            lambda F, t: F.avg_pool2d(t(X), 2, (2, 2, 2)),
            RuntimeError,
            "avg_pool2d: stride must either be omitted, a single int, or a tuple of two ints",
        ),
        (
            lambda F, t: F.max_pool2d(t(X), 2, padding=2),
            RuntimeError,
            "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and",
        ),
        (lambda F, t: F.avg_pool2d(t(X), 2, padding=-1), RuntimeError, "pad must be non-negative"),
        (lambda F, t: F.max_pool2d(t(X), 2, 0), RuntimeError, "stride should not be zero"),
        (
            lambda F, t: F.max_pool2d(t(X), 5),
            RuntimeError,
            r"Given input size: \(3x4x4\)\. Calculated output size: \(3x0x0\)\. Output size is too",
        ),
        (lambda F, t: F.max_pool2d(t(X[0, 0]), 2), RuntimeError, r"non-empty 3D or 4D \(batch"),
        (
            lambda F, t: F.max_pool2d(t(X[:, :0]), 2),
            RuntimeError,
            r"Expected 3D or 4D \(batch mode\) tensor with optional 0 dim batch size for input, "
            r"but got:\[2, 0, 4, 4\]",
        ),
        (
            lambda F, t: F.avg_pool2d(t(X), 2, divisor_override=0),
            RuntimeError,
            "divisor must be not",
        ),
        (
            lambda F, t: F.adaptive_avg_pool2d(t(X), (-1, 2)),
            RuntimeError,
            "elements of output_size must be greater than or equal to 0 but received {-1, 2}",
        ),
        (
            lambda F, t: F.adaptive_avg_pool2d(t(X), (2, 2, 2)),
            RuntimeError,
            "output_size must be 2",
        ),
        (
            lambda F, t: F.adaptive_avg_pool2d(t(X[0, 0]), 2),
            RuntimeError,
            r"adaptive_avg_pool2d\(\): Expected 3D or 4D tensor, but got \[4, 4\]",
        ),
        (
            lambda F, t: F.adaptive_avg_pool2d(t(X[:, :, :0]), 2),
            RuntimeError,
            r"Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            r"\[2, 3, 0, 4\] with dimension 2 being empty",
        ),
    ],
)
@pytest.mark.parametrize("library", ["convcore", "torch"])
def test_pool_functions_raise_pytorchs_errors(library, call, error, text, request):
    if library == "torch":
        torch = request.getfixturevalue("torch")
        module, tensor = torch.nn.functional, torch.from_numpy
    else:
        module, tensor = functions, convcore.from_numpy
    with pytest.raises(error, match=text):
        call(module, tensor)


def test_adaptive_pooling_of_nothing_is_refused(lib):
    F = lib.nn.functional
    for name in ("adaptive_max_pool2d", "adaptive_avg_pool2d"):
        pool = getattr(F, name)
        with pytest.raises(
            RuntimeError, match="Expected input to have non-zero size for non-batch"
        ):
            pool(lib.ones(1, 2, 0, 5), 2)
        assert pool(lib.ones(0, 2, 4, 5), 2).shape == (0, 2, 2, 2)
        x = lib.ones(1, 2, 4, 5, requires_grad=True)
        with pytest.raises(RuntimeError, match="Expected grad_output to have non-zero size"):
            pool(x, (0, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="Expected input to have non-zero size for non-batch"):
        F.adaptive_max_pool2d(lib.ones(1, 0, 4, 5), 2)


def test_adaptive_pools_of_one_image_and_with_indices(rng):
    array = rng.standard_normal((2, 3, 8, 6))
    x = convcore.from_numpy(array)
    means = functions.adaptive_avg_pool2d(x[0], 1)
    np.testing.assert_allclose(means.numpy(), array[0].mean((1, 2), keepdims=True))
    np.testing.assert_allclose(
        functions.adaptive_avg_pool2d(x, 1).numpy(), array.mean((2, 3), keepdims=True)
    )
    blocks = array.reshape(2, 3, 2, 4, 2, 3).max((3, 5))
    values, indices = functions.adaptive_max_pool2d(x, 2, return_indices=True)
    assert np.array_equal(values.numpy(), blocks)
    assert np.array_equal(functions.adaptive_max_pool2d(x, 2).numpy(), blocks)
    flat = array.reshape(2, 3, -1)
    taken = np.take_along_axis(flat, indices.numpy().reshape(2, 3, -1), 2)
    assert np.array_equal(taken.reshape(blocks.shape), blocks)
