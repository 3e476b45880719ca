"""Pools against loops over windows, their adjoints, and PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from against_torch import agree, same_error
from derivatives import assert_same_derivatives, leaf
from draws import LAYOUTS, is_channels_last, is_dense, lay_out, shortest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convcore
from convcore import engine
from convcore.engine import reference
from convcore.engine.layers import avg_pooling, max_pooling, max_pooling_numpy, windows
from convcore.functions import pooling as functions

SOME = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=120,
    suppress_health_check=list(HealthCheck),
)
FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Case:
    """A pool with everything that may differ about its arguments."""

    n: int
    c: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    outs: tuple[int, ...]
    ceil_mode: bool
    count_include_pad: bool
    divisor: int | None
    unbatched: bool
    dtype: str
    layout: str
    draw: int

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def max_steps(self) -> dict[str, Any]:
        """The keywords of max_pool, each in the shortest form that says it."""
        return {
            "stride": None if self.stride == self.kernel else shortest(list(self.stride)),
            "padding": shortest(list(self.padding)),
            "dilation": shortest(list(self.dilation)),
            "ceil_mode": self.ceil_mode,
        }

    @property
    def avg_steps(self) -> dict[str, Any]:
        """The keywords of avg_pool, which has no dilation."""
        return {
            "stride": self.stride,
            "padding": tuple(
                min(p, k // 2) for p, k in zip(self.padding, self.kernel, strict=True)
            ),
            "ceil_mode": self.ceil_mode,
            "count_include_pad": self.count_include_pad,
        }

    def windows(self, steps: dict[str, Any]) -> list[reference.Window]:
        return reference.pool_windows(self.sizes, self.kernel, **steps)

    def numbers(self, seed: int, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Draw an array of small integers, so that maxima tie and sums are exact."""
        rng = np.random.default_rng([seed, self.draw])
        shape = (self.n, self.c, *self.sizes) if shape is None else shape
        array = lay_out(rng.integers(-4, 5, shape).astype(self.dtype), self.layout, rng)
        return array[0] if self.unbatched else array

    def batch(self, array: np.ndarray) -> np.ndarray:
        return array[np.newaxis] if self.unbatched else array


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[str, ...] = FLOATS) -> Case:
    """Draw a pool of rank 1 to 3 with every parameter different from axis to axis."""
    rank = draw(st.integers(1, 3))
    axes = []
    for _ in range(rank):
        dilation = draw(st.sampled_from((1, 1, 2, 3)))
        kernel = draw(st.sampled_from((1, 2, 2, 3, 3, 4, 5)))
        extent = dilation * (kernel - 1) + 1
        padding = draw(st.integers(0, extent // 2))
        # An average has no dilation, hence less padding; both pools must fit.
        least = max(1, extent - 2 * padding, kernel - 2 * min(padding, kernel // 2))
        size = least + draw(st.integers(0, 5 if rank < 3 else 3))
        stride = draw(st.sampled_from((kernel, 1, 2, 3, 4)))
        axes.append((size, kernel, stride, padding, dilation, draw(st.integers(1, 6))))
    sizes, kernels, strides, paddings, dilations, outs = zip(*axes, strict=True)
    unbatched = draw(st.sampled_from((False, False, True)))
    return Case(
        n=1 if unbatched else draw(st.sampled_from((1, 2, 3, 0))),
        c=draw(st.integers(1, 4)),
        sizes=sizes,
        kernel=kernels,
        stride=strides,
        padding=paddings,
        dilation=dilations,
        outs=outs,
        ceil_mode=draw(st.booleans()),
        count_include_pad=draw(st.booleans()),
        divisor=draw(st.sampled_from((None, None, 3, -2))),
        unbatched=unbatched,
        dtype=draw(st.sampled_from(dtypes)),
        layout=draw(st.sampled_from(("contiguous", "channels_last", *LAYOUTS))),
        draw=draw(st.integers(0, 2**32 - 1)),
    )


def with_nonfinite(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the array with some elements NaN and some -inf, in the same memory order."""
    kinds = rng.integers(0, 12, array.shape)
    result = array.copy(order="K")
    result[kinds == 0], result[kinds <= 2] = np.nan, -np.inf
    result[kinds == 1] = np.nan
    return result


def assert_format_kept(input: np.ndarray, *results: np.ndarray) -> None:
    for result in results:
        assert is_dense(result, is_channels_last(input))


def assert_close(result: np.ndarray, exact: np.ndarray, dtype: str, terms: int = 1) -> None:
    """Compare means of small integers: their sums are exact, what is left is the division."""
    assert result.dtype == dtype and result.shape == exact.shape
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(result, exact, rtol=4 * eps, atol=32 * terms * eps)


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


X = np.ones((2, 3, 4, 4))
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


def test_what_large_pools_need_is_not_kept():
    for made in (
        avg_pooling._regular,
        avg_pooling._adaptive,
        max_pooling_numpy._tap_table,
    ):
        made.cache_clear()
    x = np.ones((1, 1, 200, 200))
    engine.max_pool(x, 3, 1, 1)
    engine.avg_pool(x, 3, 1, 1)
    engine.adaptive_avg_pool(x, 150)
    for made in (
        avg_pooling._regular,
        avg_pooling._adaptive,
        max_pooling_numpy._tap_table,
    ):
        assert made.cache_info().currsize == 0


def as_torch(torch, array):
    """Return the array as a PyTorch tensor of the same strides, which must not be negative."""
    return torch.from_numpy(array.copy(order="K")).requires_grad_()


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


PAIRS = settings(SOME, max_examples=60)


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


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda F, t: F.max_pool2d(3, 2), TypeError, r"max_pool2d\(\): argument 'input' \(pos"),
        (lambda F, t: F.max_pool2d(t(X), 2.0), TypeError, None),
        (lambda F, t: F.max_pool2d(t(X), 2, padding=None), TypeError, None),
        (
            lambda F, t: F.max_pool2d(t(X > 0), 2),
            NotImplementedError,
            '"max_pool2d" not implement',
        ),
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
        (
            lambda F, t: F.max_pool2d(t(X[0, 0]), 2),
            RuntimeError,
            r"non-empty 3D or 4D \(batch",
        ),
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
        np.testing.assert_array_equal(
            max_pooling.max_pool_taps(False, input, kernel, *steps[1:]).values, exact
        )
        by_taps = max_pooling.max_pool_taps(True, input, kernel, *steps[1:])
        g = lay_out(rng.integers(-9, 10, values.shape).astype(x.dtype), layout, rng)
        grad = by_taps.pool.gradient(g, by_taps.taps)
        np.testing.assert_array_equal(by_taps.pool.indices(by_taps.taps), indices)
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
        picked = max_pooling.max_pool_taps(True, x, (3, 3), (2, 2), (1, 1), (1, 1), False)
        mean = engine.avg_pool(x, 3, 2, 1, False, False)
        results.append(
            (
                *(picked.values, picked.taps, picked.pool.gradient(mean, picked.taps), mean),
                engine.avg_pool_grad(mean, (33, 46), 3, 2, 1, False, False),
                engine.adaptive_avg_pool(x, (5, 7)),
                engine.adaptive_avg_pool(x, 1),
                engine.adaptive_avg_pool_grad(mean, (33, 46)),
            )
        )
    for result in results[1:]:
        for found, expected in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)


# Unpooling


@SOME
@given(case=cases(dtypes=("float32", "float64")), more=st.integers(0, 1))
def test_max_unpool_is_pytorchs(case, more, seed, torch):
    if case.n == 0 or any(p > k // 2 for p, k in zip(case.padding, case.kernel, strict=True)):
        return
    x = case.numbers(seed)
    steps = {k: v for k, v in case.max_steps.items() if k != "ceil_mode"}
    _, indices = engine.max_pool(x, case.kernel, **steps)
    if indices.size == 0 or (indices < 0).any():
        return
    flat = case.batch(indices).reshape(*case.batch(indices).shape[:2], -1)
    if any(len(set(plane)) < plane.size for image in flat for plane in image):
        return  # of several elements at one place, it is chance that says which PyTorch takes
    values = np.random.default_rng(seed).standard_normal(indices.shape).astype(case.dtype)
    name = f"max_unpool{case.rank}d"
    size, stride = list(case.sizes), case.stride
    usual = zip(indices.shape[-case.rank :], stride, case.kernel, case.padding, strict=True)
    if not more and min((n - 1) * s + k - 2 * p for n, s, k, p in usual) < 1:
        return  # nothing to put the elements into
    steps = {"stride": stride, "padding": case.padding, "output_size": size if more else None}
    agree_or_fail_alike(
        torch,
        lambda lib, v: getattr(lib.nn.functional, name)(
            v, lib.from_numpy(np.array(indices)), case.kernel, **steps
        ),
        values,
    )


def agree_or_fail_alike(torch: Any, function: Any, *arrays: np.ndarray) -> None:
    """Check that both libraries give the same, or raise the same."""
    try:
        function(torch, *map(torch.from_numpy, arrays))
    except (RuntimeError, ValueError) as error:
        with pytest.raises(type(error)):
            function(convcore, *map(convcore.from_numpy, arrays))
    else:
        agree(torch, function, *arrays)


@pytest.mark.parametrize(
    "call",
    [
        lambda F, v, i: F.max_unpool2d(v, i, 2, output_size=(8, 9)),
        lambda F, v, i: F.max_unpool2d(v, i, 2, output_size=(8,)),
        lambda F, v, i: F.max_unpool2d(v, i[:1], 2, output_size=(4, 5)),
        lambda F, v, i: F.max_unpool2d(v, i.int(), 2, output_size=(4, 5)),
        lambda F, v, i: F.max_unpool2d(v[0, 0], i[0, 0], 2),
        lambda F, v, i: F.max_unpool2d(v.int(), i, 2, output_size=(4, 5)),
    ],
)
def test_max_unpool_raises_pytorchs_errors(call, torch, rng):
    x = rng.standard_normal((2, 3, 4, 5))

    def function(lib, x):
        pooled = lib.nn.functional.max_pool2d(x, 2, return_indices=True)
        return call(lib.nn.functional, *pooled)

    same_error(torch, function, x)


@pytest.mark.parametrize("shift", [100, -100])
def test_max_unpool_refuses_indices_beyond_their_planes(shift, rng):
    F = convcore.nn.functional
    x = convcore.from_numpy(rng.standard_normal((2, 3, 4, 5)))
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    with pytest.raises(RuntimeError, match=r"Found an invalid max index: .*of size 4x5"):
        F.max_unpool2d(values, indices + shift, 2, output_size=(4, 5))


def test_max_unpool_modules_are_pytorchs(torch, rng):
    x = rng.standard_normal((2, 3, 8, 8, 8))
    for rank in (1, 2, 3):
        make = lambda nn, rank=rank: getattr(nn, f"MaxUnpool{rank}d")(2)  # noqa: E731
        assert str(make(convcore.nn)) == str(make(torch.nn))
        image = x[(0,) * (3 - rank)]

        def through(lib, x, rank=rank, make=make):
            pool = getattr(lib.nn, f"MaxPool{rank}d")(2, return_indices=True)
            return make(lib.nn)(*pool(x))

        agree(torch, through, image)
