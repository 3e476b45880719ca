"""Pools of arrays against loops over windows, their adjoints, and PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from draws import lay_out
from hypothesis import given
from hypothesis import strategies as st
from pools import SOME, X, as_torch, assert_close, assert_format_kept, cases, with_nonfinite

from convcore import engine
from convcore.engine import reference
from convcore.engine.layers import windows
from convcore.engine.layers.pooling import max_pooling
from convcore.engine.runtime import tables


def assert_adjoint(output: np.ndarray, grad_output, input: np.ndarray, grad_input) -> None:
    """<map(input), grad_output> = <input, adjoint(grad_output)>."""
    assert output.shape == grad_output.shape and input.shape == grad_input.shape
    left, right = (output * grad_output).sum(), (input * grad_input).sum()
    assert left == pytest.approx(right, rel=1e-12, abs=1e-9)


@SOME
@given(case=cases(), nonfinite=st.booleans())
def test_max_pool_is_the_largest_under_each_window(case, nonfinite, seed):
    x = case.numbers(seed)
    if nonfinite:
        x = with_nonfinite(x, np.random.default_rng(case.draw))
    values, indices = engine.max_pool(x, case.kernel, **case.max_steps)
    exact, places = reference.max_over(case.batch(x), case.windows(case.max_steps))
    np.testing.assert_array_equal(case.batch(values), exact)
    np.testing.assert_array_equal(case.batch(indices), places)
    assert values.dtype == x.dtype and indices.dtype == np.int64
    if not case.unbatched:
        assert_format_kept(x, values, indices)


@SOME
@given(case=cases(), nonfinite=st.booleans())
def test_adaptive_max_pool_is_the_largest_of_each_window(case, nonfinite, seed):
    x = case.numbers(seed)
    if nonfinite:
        x = with_nonfinite(x, np.random.default_rng(case.draw))
    values, indices = engine.adaptive_max_pool(x, case.outs)
    exact, places = reference.max_over(
        case.batch(x), reference.adaptive_windows(case.sizes, case.outs)
    )
    np.testing.assert_array_equal(case.batch(values), exact)
    np.testing.assert_array_equal(case.batch(indices), places)
    if not case.unbatched:
        assert_format_kept(x, values, indices)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
@pytest.mark.parametrize(("kernel", "padding"), [((3, 2), (1, 1)), ((4, 5), (0, 0))])
def test_max_pool_of_integers_is_exact(dtype, kernel, padding, rng):
    extremes = np.iinfo(dtype)
    x = rng.integers(extremes.min, extremes.max, (2, 3, 5, 6), dtype, endpoint=True)
    x[0, 0] = extremes.min
    values, indices = engine.max_pool(x, kernel, 1, padding)
    taken = np.take_along_axis(x.reshape(2, 3, 30), indices.reshape(2, 3, -1), axis=-1)
    assert values.dtype == dtype
    np.testing.assert_array_equal(values.reshape(taken.shape), taken)
    for output, pixels, _ in reference.pool_windows((5, 6), kernel, 1, padding):
        under = np.stack([x[(..., *pixel)] for pixel in pixels])
        np.testing.assert_array_equal(values[(..., *output)], under.max(axis=0))


def test_max_pool_marks_windows_of_nothing_but_padding():
    x = np.array([[[5.0]]])
    values, indices = engine.max_pool(x, 2, 1, padding=1, dilation=2)
    assert values.tolist() == [[[-math.inf]]] and indices.tolist() == [[[-1]]]
    assert engine.scatter_pixels(np.ones((1, 1, 1)), indices, (1,)).tolist() == [[[0]]]
    assert engine.gather_pixels(x, indices).tolist() == [[[0]]]
    assert engine.max_pool(np.array([[[5]]]), 2, 1, 1, 2)[0] == np.iinfo(np.int64).min


def test_max_pool_counts_taps_beyond_a_byte(rng):
    """Taps are numbered in the smallest integers that hold them all: 17*16 need two bytes."""
    x = rng.standard_normal((1, 2, 36, 36))
    values, indices = engine.max_pool(x, (17, 16), 1)
    exact, places = reference.max_over(x, reference.pool_windows((36, 36), (17, 16), 1))
    np.testing.assert_array_equal(values, exact)
    np.testing.assert_array_equal(indices, places)


@SOME
@given(case=cases())
def test_avg_pool_is_the_mean_under_each_window(case, seed):
    x = case.numbers(seed)
    steps, override = case.avg_steps, case.divisor
    means = engine.avg_pool(x, case.kernel, **steps, divisor_override=override)
    exact = reference.mean_over(case.batch(x), case.windows(steps), override)
    assert_close(case.batch(means), exact, case.dtype)
    if not case.unbatched:
        assert_format_kept(x, means)


@SOME
@given(case=cases())
def test_avg_pool_grad_spreads_each_mean_over_its_window(case, seed):
    steps, override = case.avg_steps, case.divisor
    pool = case.windows(steps)
    outs = [j + 1 for j in pool[-1][0]]
    g = case.numbers(seed, (case.n, case.c, *outs))
    grad = engine.avg_pool_grad(g, case.sizes, case.kernel, **steps, divisor_override=override)
    exact = reference.mean_over_grad(case.batch(g), pool, case.sizes, override)
    assert_close(case.batch(grad), exact, case.dtype, math.prod(case.kernel))
    if not case.unbatched:
        assert_format_kept(g, grad)


@SOME
@given(case=cases())
def test_adaptive_avg_pool_is_the_mean_of_each_window(case, seed):
    x, g = case.numbers(seed), case.numbers(seed, (case.n, case.c, *case.outs))
    pool = reference.adaptive_windows(case.sizes, case.outs)
    means, grad = (
        engine.adaptive_avg_pool(x, case.outs),
        engine.adaptive_avg_pool_grad(g, case.sizes),
    )
    assert_close(case.batch(means), reference.mean_over(case.batch(x), pool), case.dtype)
    exact = reference.mean_over_grad(case.batch(g), pool, case.sizes)
    assert_close(case.batch(grad), exact, case.dtype, math.prod(case.outs))
    if not case.unbatched:
        assert_format_kept(x, means)
        assert_format_kept(g, grad)


@SOME
@given(case=cases(dtypes=("float64",)))
def test_scatter_pixels_is_the_adjoint_of_gather_pixels(case, seed):
    x = case.numbers(seed)
    indices = engine.max_pool(x, case.kernel, **case.max_steps)[1]
    shape = case.batch(indices).shape
    g = case.numbers(seed, shape)
    there = engine.gather_pixels(x, indices, rank=case.rank)
    back = engine.scatter_pixels(g, indices, case.sizes)
    assert_adjoint(there, g, x, back)
    # A second level: where windows overlap, their gradients add.
    exact = np.zeros((*shape[:2], math.prod(case.sizes)))
    for (n, c, *_), i, value in zip(
        np.ndindex(shape), case.batch(indices).flat, case.batch(g).flat, strict=True
    ):
        exact[n, c, i] += value if i >= 0 else 0
    np.testing.assert_array_equal(case.batch(back), exact.reshape(-1, case.c, *case.sizes))
    if not case.unbatched:
        assert_format_kept(x, there)
        assert_format_kept(g, back)


@SOME
@given(case=cases(dtypes=("float64",)))
def test_avg_pools_and_their_gradients_are_adjoint(case, seed):
    x = case.numbers(seed)
    means = engine.avg_pool(x, case.kernel, **case.avg_steps)
    g = case.numbers(seed, case.batch(means).shape)
    assert_adjoint(means, g, x, engine.avg_pool_grad(g, case.sizes, case.kernel, **case.avg_steps))
    means = engine.adaptive_avg_pool(x, case.outs)
    g = case.numbers(seed, case.batch(means).shape)
    assert_adjoint(means, g, x, engine.adaptive_avg_pool_grad(g, case.sizes))


@pytest.mark.parametrize("channels_last", [False, True])
def test_pools_do_not_depend_on_their_blocks(channels_last, rng, monkeypatch):
    x = rng.standard_normal((3, 5, 9, 8)).astype("float32")
    if channels_last:
        x = lay_out(x, "channels_last", rng)

    def results() -> list[np.ndarray]:
        values, indices = engine.max_pool(x, 3, 2, 1)
        mean = engine.avg_pool(x, (3, 2), 2, 1)
        return [
            values,
            indices,
            mean,
            engine.scatter_pixels(values, indices, (9, 8)),
            engine.gather_pixels(x, indices),
            engine.avg_pool_grad(mean, (9, 8), (3, 2), 2, 1),
            engine.adaptive_avg_pool(x, (4, 3)),
            engine.adaptive_avg_pool_grad(mean, (9, 8)),
            *engine.max_pool(x, (6, 7)),
            engine.avg_pool(x, (6, 7)),
        ]

    whole = results()
    for n_bytes in (1, 2 * 9 * 8 * 4, 7 * 9 * 8 * 4):
        monkeypatch.setattr(windows, "BLOCK_BYTES", n_bytes)
        for result, expected in zip(results(), whole, strict=True):
            np.testing.assert_array_equal(result, expected)


def test_avg_pool_sums_halves_wider():
    """4096 + 1 is no float16; summed there, the ones would vanish."""
    x = np.array([[[4096.0, *[1.0] * 7]]], np.float16)
    assert engine.avg_pool(x, (8,)).item() == np.float16(4103 / 8)
    assert engine.adaptive_avg_pool(x, (1,)).item() == np.float16(4103 / 8)


def test_an_int_stands_for_every_spatial_axis(rng):
    x = rng.standard_normal((2, 3, 6, 6))
    np.testing.assert_array_equal(engine.max_pool(x, 2)[0], engine.max_pool(x, (2, 2), 2)[0])
    np.testing.assert_array_equal(engine.avg_pool(x, 3, []), engine.avg_pool(x, (3, 3), 3))
    np.testing.assert_array_equal(
        engine.adaptive_avg_pool(x, 2), engine.adaptive_avg_pool(x, [2, 2])
    )


INTS = X.astype("int32")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: engine.max_pool([[1.0]], 1), TypeError, "input must be a numpy.ndarray, got list"),
        (lambda: engine.max_pool(X > 0, 1), TypeError, "input must be an array of float16, .*bool"),
        (lambda: engine.max_pool(X * 1j, 1), TypeError, "complex128"),
        (lambda: engine.max_pool(X.astype(">f8"), 1), TypeError, ">f8"),
        (lambda: engine.avg_pool(X.astype(int), 1), TypeError, "got int64"),
        (lambda: engine.max_pool(X, 2.0), TypeError, "kernel_size must be an int"),
        (lambda: engine.max_pool(X, 2, "2"), TypeError, "stride must be an int"),
        (lambda: engine.max_pool(X[0, 0], (2, 2)), ValueError, r"non-empty 3D or 4D .*\[4, 4\]"),
        (lambda: engine.max_pool(X, (2,)), ValueError, "non-empty 2D or 3D"),
        (lambda: engine.max_pool(X, (2,) * 4), ValueError, "one to three spatial axes"),
        (lambda: engine.max_pool(X[:, :0], 2), ValueError, r"but got:\[2, 0, 4, 4\]"),
        (lambda: engine.max_pool(X[0, :, :0], (1, 1)), ValueError, r"but got:\[3, 0, 4\]"),
        (lambda: engine.avg_pool(X[..., :0], 1), ValueError, r"but got:\[2, 3, 4, 0\]"),
        (lambda: engine.max_pool(X, 0), ValueError, "kernel size should be greater than zero"),
        (lambda: engine.max_pool(X, 2, 0), ValueError, "stride should not be zero$"),
        (lambda: engine.max_pool(X, 2, (1, -1)), ValueError, r"or less, got \[1, -1\]"),
        (lambda: engine.max_pool(X, 2, (1, 1, 1)), ValueError, "stride must be an int or 2 ints"),
        (lambda: engine.max_pool(X, 2, dilation=0), ValueError, "dilation should be greater than"),
        (lambda: engine.max_pool(X, 2, padding=-1), ValueError, "pad must be non-negative, .*-1"),
        (
            lambda: engine.max_pool(X, 2, padding=2),
            ValueError,
            "pad should be at most half of effective kernel size, "
            "but got pad=2, kernel_size=2 and dilation=1",
        ),
        (
            lambda: engine.max_pool(X, 5),
            ValueError,
            r"Given input size: \(3x4x4\)\. Calculated output size: \(3x0x0\)\. Output size",
        ),
        (lambda: engine.avg_pool(X, 2, divisor_override=0), ValueError, "divisor must be not zero"),
        (lambda: engine.avg_pool(X, 2, divisor_override=0.5), TypeError, "divisor_override"),
        (lambda: engine.avg_pool(X, 2, divisor_override=2**63), ValueError, "divisor_override"),
        (
            lambda: engine.avg_pool(X, 2, ceil_mode=1),
            TypeError,
            "ceil_mode must be a bool, got int",
        ),
        (lambda: engine.max_pool(X, 2, ceil_mode=X), TypeError, "ceil_mode must be a bool"),
        (lambda: engine.avg_pool(X, 2, count_include_pad="no"), TypeError, "count_include_pad"),
        (lambda: engine.adaptive_avg_pool(X, (2, -1)), ValueError, "received {2, -1}"),
        (
            lambda: engine.adaptive_avg_pool(X[:, :, :0], 2),
            ValueError,
            r"input has sizes \[2, 3, 0, 4\] with dimension 2 being empty",
        ),
        (
            lambda: engine.avg_pool_grad(X, (9, 11), 2),
            ValueError,
            r"grad_output must have the sizes of the pool's output, \[4, 5\], got \[4, 4\]",
        ),
        (
            lambda: engine.scatter_pixels(X, np.full(X.shape, 16), (4, 4)),
            ValueError,
            r"Found an invalid max index: 16 \(output volumes are of size 4x4\)",
        ),
        (
            lambda: engine.scatter_pixels(X, np.zeros(X.shape, int), range(2**31)),
            ValueError,
            r"input_size must be one to three ints, one a spatial axis, got range",
        ),
        (
            lambda: engine.adaptive_avg_pool_grad(X, 4),
            TypeError,
            "input_size must be a sequence of ints, got int 4",
        ),
        (lambda: engine.gather_pixels(X, X, 2**31), ValueError, "rank must be 1, 2 or 3"),
        (lambda: engine.gather_pixels(X, X, "2"), TypeError, "rank must be an int"),
        (lambda: engine.gather_pixels(X, np.full(X.shape, -2)), ValueError, "max index: -2"),
        (lambda: engine.gather_pixels(X, X), TypeError, "indices must be an array of integers"),
        (lambda: engine.gather_pixels(X, [0]), TypeError, "indices must be a numpy.ndarray"),
        (lambda: engine.gather_pixels(X, np.zeros((1, 3, 4, 4), int)), ValueError, "planes as"),
        (
            lambda: engine.scatter_pixels(X, np.zeros((2, 3, 4, 3), int), (4, 4)),
            ValueError,
            "indices must have the shape of values",
        ),
    ],
)
def test_pool_errors_say_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_indices_may_be_any_integers(dtype, layout, rng):
    """Where an index points in a block of planes is more than a small dtype holds."""
    x = lay_out(rng.standard_normal((2, 300, 4, 4)), layout, rng)
    values, indices = engine.max_pool(x, 2)
    np.testing.assert_array_equal(engine.gather_pixels(x, indices.astype(dtype)), values)
    np.testing.assert_array_equal(
        engine.scatter_pixels(values, indices.astype(dtype), (4, 4)),
        engine.scatter_pixels(values, indices, (4, 4)),
    )


def test_a_huge_kernel_costs_what_it_covers():
    """Half of the kernel may lie on padding, so that it fits however short the axis is."""
    most = 2**31 - 1
    steps = {"kernel_size": most, "padding": most // 2}
    x = np.arange(1.0, 6).reshape(1, 1, 5)
    assert engine.max_pool(x, **steps, stride=2)[1].tolist() == [[[4, 4, 4]]]
    assert engine.avg_pool(x, **steps).item() == 15 / most
    assert engine.avg_pool(x, **steps, count_include_pad=False).item() == 3
    grad = engine.avg_pool_grad(np.ones((1, 1, 1)), (5,), **steps)
    assert grad.tolist() == [[[1 / most] * 5]]
    # The product of three such kernels is no int64.
    cube = engine.avg_pool(np.ones((1, 1, 5, 5, 5)), **steps)
    np.testing.assert_allclose(cube, 125 / most**3)


def test_pools_of_empty_batches_make_no_windows():
    x = np.ones((0, 3, 5))
    for result in (engine.adaptive_avg_pool(x, 2**31 - 1), *engine.adaptive_max_pool(x, 2**31 - 1)):
        assert result.shape == (0, 3, 2**31 - 1)


def test_what_pools_of_long_lines_need_is_bounded_in_bytes():
    tables.clear()
    for size in range(300_000, 300_080, 2):
        x = np.ones((1, 1, size), "f4")
        engine.max_pool(x, 3, 1, 1)
        engine.avg_pool(x, 3, 1, 1)
        engine.adaptive_avg_pool(x, 2)
        engine.adaptive_avg_pool_grad(np.ones((1, 1, 1)), (size,))
        assert tables.kept_bytes() <= tables.MOST_BYTES
    assert tables.kept_bytes() > tables.MOST_BYTES / 2
    tables.clear()


@SOME
@given(case=cases(dtypes=("float32", "float64")), nonfinite=st.booleans())
def test_max_pool_and_its_gradient_are_pytorchs(case, nonfinite, seed, torch):
    if any(p > k // 2 for p, k in zip(case.padding, case.kernel, strict=True)):
        return  # PyTorch allows half of what a dilated kernel spans, but not if asked for indices
    x = case.numbers(seed)
    if nonfinite:
        x = with_nonfinite(x, np.random.default_rng(case.draw))
    values, indices = engine.max_pool(x, case.kernel, **case.max_steps)
    if (indices < 0).any():  # PyTorch points outside the plane there
        return
    theirs = as_torch(torch, x)
    function = getattr(torch.nn.functional, f"max_pool{case.rank}d")
    steps = {**case.max_steps, "return_indices": True}
    their_values, their_indices = function(theirs, case.kernel, **steps)
    np.testing.assert_array_equal(values, their_values.detach().numpy())
    np.testing.assert_array_equal(indices, their_indices.numpy())
    g = case.numbers(seed, case.batch(values).shape)
    (their_grad,) = torch.autograd.grad(their_values, theirs, torch.from_numpy(g.copy()))
    np.testing.assert_array_equal(engine.scatter_pixels(g, indices, case.sizes), their_grad)


@SOME
@given(case=cases(dtypes=("float32", "float64")))
def test_avg_pool_and_its_gradient_are_pytorchs(case, seed, torch):
    if case.rank == 3 and any(n < k for n, k in zip(case.sizes, case.kernel, strict=True)):
        return  # PyTorch wants this of three axes alone
    x, steps = case.numbers(seed), case.avg_steps
    if case.rank > 1:
        steps["divisor_override"] = case.divisor
    theirs = as_torch(torch, x)
    function = getattr(torch.nn.functional, f"avg_pool{case.rank}d")
    their_means = function(theirs, case.kernel, **steps)
    means = engine.avg_pool(x, case.kernel, **steps)
    assert_close(means, their_means.detach().numpy(), case.dtype)
    g = case.numbers(seed, case.batch(means).shape)
    (their_grad,) = torch.autograd.grad(their_means, theirs, torch.from_numpy(g.copy()))
    grad = engine.avg_pool_grad(g, case.sizes, case.kernel, **steps)
    assert_close(grad, their_grad.numpy(), case.dtype, math.prod(case.kernel))


@SOME
@given(case=cases(dtypes=("float32", "float64")))
def test_adaptive_pools_and_their_gradients_are_pytorchs(case, seed, torch):
    x = case.numbers(seed)
    theirs = as_torch(torch, x)
    mean, largest = (
        getattr(torch.nn.functional, f"adaptive_{kind}_pool{case.rank}d") for kind in ("avg", "max")
    )
    their_means = mean(theirs, case.outs)
    means = engine.adaptive_avg_pool(x, case.outs)
    assert_close(means, their_means.detach().numpy(), case.dtype)
    g = case.numbers(seed, case.batch(means).shape)
    (their_grad,) = torch.autograd.grad(their_means, theirs, torch.from_numpy(g.copy()))
    grad = engine.adaptive_avg_pool_grad(g, case.sizes)
    assert_close(grad, their_grad.numpy(), case.dtype, math.prod(case.outs))
    for ours, other in zip(
        engine.adaptive_max_pool(x, case.outs),
        largest(theirs, case.outs, return_indices=True),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, other.detach().numpy())


# Rows long enough for kernels that go by vectors, and more channels than they hold at a time


def large(layout: str, rng: np.random.Generator, dtype: str = "float32") -> np.ndarray:
    """Draw images of which maxima tie and sums are exact, with some NaN and infinities of late."""
    shape = (2, 70, 9, 6) if layout == "channels_last" else (2, 3, 12, 75)
    return lay_out(rng.integers(-9, 10, shape).astype(dtype), layout, rng)


STEPS = [
    (2, 2, 0, 1, False),
    (3, 2, 1, 1, False),
    (3, 1, 1, 1, True),
    ((2, 5), (1, 3), (1, 2), 1, True),
    (2, (1, 4), 0, (1, 3), False),
    ((1, 5), (1, 5), 0, 1, True),
    ((4, 3), 1, (2, 1), (1, 2), False),
]


def assert_max_pool_is_the_references(x: np.ndarray, layout: str, steps, rng) -> None:
    for input in (x, with_nonfinite(x, rng)):
        kernel = steps[0] if isinstance(steps[0], tuple) else (steps[0],) * 2
        values, indices = engine.max_pool(input, *steps)
        pool = reference.pool_windows(input.shape[2:], kernel, *steps[1:])
        exact, places = reference.max_over(input, pool)
        np.testing.assert_array_equal(values, exact)
        np.testing.assert_array_equal(indices, places)
        assert_format_kept(input, values, indices)
        made = max_pooling.max_pool_of(input, kernel, *steps[1:])
        np.testing.assert_array_equal(made.forward(input, False)[0], exact)
        taps = made.forward(input, True)[1]
        g = lay_out(rng.integers(-9, 10, values.shape).astype(x.dtype), layout, rng)
        grad = made.gradient(g, taps)
        np.testing.assert_array_equal(made.indices(taps), indices)
        np.testing.assert_array_equal(grad, engine.scatter_pixels(g, indices, x.shape[2:]))
        assert_format_kept(g, grad)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_max_pools_are_the_references(steps, layout, dtype, rng):
    assert_max_pool_is_the_references(large(layout, rng, dtype), layout, steps, rng)


@pytest.mark.parametrize("steps", [(2, 2), (3, 2, 1), (3, 1, 1), (3, 3), (5, 1, 2)])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("channels, width", [(2, 67), (3, 34), (10, 24), (16, 9), (20, 8), (33, 5)])
def test_max_pools_of_few_channels_and_short_lines(channels, width, steps, layout, rng):
    # Neither the channels of a pixel nor the windows of a line are whole vectors.
    steps = (*steps, *(0, 1, False)[len(steps) - 2 :])
    x = lay_out(rng.integers(-9, 10, (2, channels, 7, width)).astype("f4"), layout, rng)
    assert_max_pool_is_the_references(x, layout, steps, rng)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("outs", [(1, 1), (4, 25), (5, 8), (12, 1), (3, 75)])
def test_large_adaptive_pools_are_the_references(layout, outs, rng):
    x = large(layout, rng)
    pool = reference.adaptive_windows(x.shape[2:], outs)
    means, (values, indices) = engine.adaptive_avg_pool(x, outs), engine.adaptive_max_pool(x, outs)
    assert_close(means, reference.mean_over(x, pool), "float32")
    exact, places = reference.max_over(x, pool)
    np.testing.assert_array_equal(values, exact)
    np.testing.assert_array_equal(indices, places)
    g = lay_out(rng.integers(-9, 10, means.shape).astype("f4"), layout, rng)
    grad = engine.adaptive_avg_pool_grad(g, x.shape[2:])
    assert_close(grad, reference.mean_over_grad(g, pool, x.shape[2:]), "float32", 4)
    assert_format_kept(g, grad)


@pytest.mark.parametrize("steps", [s for s in STEPS if s[3] == 1])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("include", [True, False])
def test_large_avg_pools_are_the_references(steps, layout, include, rng):
    kernel = steps[0] if isinstance(steps[0], tuple) else (steps[0],) * 2
    steps = (*steps[1:3], steps[4], include)
    x = large(layout, rng)
    means = engine.avg_pool(x, kernel, *steps)
    keywords = dict(
        zip(("stride", "padding", "ceil_mode", "count_include_pad"), steps, strict=True)
    )
    pool = reference.pool_windows(x.shape[2:], kernel, **keywords)
    assert_close(means, reference.mean_over(x, pool), "float32", 2)
    g = lay_out(rng.integers(-9, 10, means.shape).astype("f4"), layout, rng)
    grad = engine.avg_pool_grad(g, x.shape[2:], kernel, *steps)
    exact = reference.mean_over_grad(g, pool, x.shape[2:])
    assert_close(grad, exact, "float32", math.prod(kernel))
    assert_format_kept(g, grad)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_pools_have_the_same_bits_for_any_number_of_threads(layout, rng, threads):
    x = lay_out(rng.standard_normal((3, 40, 33, 46)).astype("f4"), layout, rng)
    results = []
    for n in (1, 2, 3, 7):
        threads(n)
        pool = max_pooling.max_pool_of(x, (3, 3), (2, 2), (1, 1), (1, 1), False)
        values, taps = pool.forward(x, True)
        mean = engine.avg_pool(x, 3, 2, 1, False, False)
        results.append(
            (
                *(values, taps, pool.gradient(mean, taps), mean),
                engine.avg_pool_grad(mean, (33, 46), 3, 2, 1, False, False),
                engine.adaptive_avg_pool(x, (5, 7)),
                engine.adaptive_avg_pool(x, 1),
                engine.adaptive_avg_pool_grad(mean, (33, 46)),
            )
        )
    for result in results[1:]:
        for found, expected in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)
