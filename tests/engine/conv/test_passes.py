"""The passes against the oracle, and against PyTorch if installed, over everything at once."""

from __future__ import annotations

import dataclasses

import hypothesis
import numpy as np
import pytest
from draws import Case, cases, is_channels_last, is_dense, lay_out, numbers, transposed_size
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

from convcore import engine
from convcore.engine import reference

try:
    import torch

    # Its OpenMP threads and the engine's would spin against each other: ten times slower on a busy
    # machine.
    torch.set_num_threads(1)
except ImportError:
    torch = None

CASES = 2000
EVERYTHING = examples(CASES)

# Direct summation stays near 1.1 eps for any number of terms; 4 is the promise.  float32 with so
# many channels a group may be computed by Winograd's method, which is promised 12.
MOST_EPS = 4
WINOGRAD_EPS, WINOGRAD_CHANNELS = 12, 16
# PyTorch is no oracle for the last bits of its own precision: it computes a complex convolution as
# three real ones (Gauss's trick), which cancel.
TORCH_EPS = {"float64": 8, "complex128": 16}


@EVERYTHING
@given(case=cases())
def test_conv_maps_agree_with_the_oracles(case, seed):
    check_maps(case, seed)


@EVERYTHING
@given(case=cases(), data=st.data())
def test_conv_transpose_agrees_with_the_oracles(case, data, seed):
    extras = [data.draw(st.integers(0, max(a.stride, a.dilation) - 1)) for a in case.axes]
    check_transposed(case, extras, seed)


@pytest.mark.slow
@pytest.mark.long
def test_conv_maps_agree_with_the_oracles_at_length(request, seed):
    long_form(given(case=cases())(lambda case: check_maps(case, seed)), request, seed)


@pytest.mark.slow
@pytest.mark.long
def test_conv_transpose_agrees_with_the_oracles_at_length(request, seed):
    def check(case, data):
        extras = [data.draw(st.integers(0, max(a.stride, a.dilation) - 1)) for a in case.axes]
        check_transposed(case, extras, seed)

    long_form(given(case=cases(), data=st.data())(check), request, seed)


def long_form(test, request, seed) -> None:
    """Run a property over --long-cases cases drawn from --seed."""
    count = request.config.getoption("--long-cases")
    test = settings(EVERYTHING, derandomize=False, max_examples=count)(test)
    hypothesis.seed(seed)(test)()


class Arguments:
    """A case's arrays: drawn, laid out, without their batch axis if unbatched."""

    def __init__(self, case: Case, shapes, channels: int, seed: int):
        rng = np.random.default_rng([seed, case.draw])
        self.batched = [
            lay_out(numbers(rng, shape, case.dtype, integers=case.integers), layout, rng)
            for shape, layout in zip(shapes, case.layouts, strict=True)
        ]
        self.bias = (
            numbers(rng, channels, case.dtype, integers=case.integers) if case.bias else None
        )
        x, w, y = self.batched
        self.arrays = [x[0], w, y[0]] if case.unbatched else self.batched
        self.copies = [a.copy() for a in self.batched]

    def assert_unchanged(self) -> None:
        for array, copy in zip(self.batched, self.copies, strict=True):
            np.testing.assert_array_equal(array, copy)


def check_maps(case: Case, seed: int) -> None:
    g = case.geometry
    arguments = Arguments(case, (g.input_shape, g.weight_shape, g.output_shape), g.c_out, seed)
    x, w, y = arguments.arrays
    b = arguments.bias
    check(
        case,
        engine.conv_forward(x, w, b, **case.steps),
        lambda o, x, w, b: o.conv_forward(x, w, b, **case.steps),
        (x, w, b),
    )
    check(
        case,
        engine.conv_input_grad(y, w, case.sizes, **case.steps),
        lambda o, y, w: o.conv_input_grad(y, w, case.sizes, **case.steps),
        (y, w),
    )
    check(
        case,
        engine.conv_weight_grad(x, y, case.kernel, **case.steps),
        lambda o, x, y: o.conv_weight_grad(x, y, case.kernel, **case.steps),
        (x, y),
    )
    check(
        case,
        engine.conv_bias_grad(y, unbatched=case.unbatched),
        lambda o, y: o.conv_bias_grad(y, unbatched=case.unbatched),
        (y,),
    )
    by_rank = getattr(engine, f"conv{case.rank}d")
    np.testing.assert_array_equal(
        by_rank(x, w, b, **case.steps), engine.conv_forward(x, w, b, **case.steps)
    )
    arguments.assert_unchanged()


def check_transposed(case: Case, extras: list[int], seed: int) -> None:
    """As `check_maps`; the case's sizes are those of the transposed convolution's input."""
    # Pads that would eat the whole output are dropped instead of the case.
    axes = tuple(
        a if transposed_size(a, e) >= 1 else a._replace(before=0, after=0)
        for a, e in zip(case.axes, extras, strict=True)
    )
    case = dataclasses.replace(case, axes=axes)
    g = case.geometry
    sizes = [transposed_size(a, e) for a, e in zip(axes, extras, strict=True)]
    weight_shape = (g.c_in, g.c_out // g.groups, *case.kernel)
    shapes = (g.input_shape, weight_shape, (g.n, g.c_out, *sizes))
    arguments = Arguments(case, shapes, g.c_out, seed)
    x, w, y = arguments.arrays
    steps = case.steps | {"output_padding": extras}
    result = getattr(engine, f"conv_transpose{case.rank}d")(x, w, arguments.bias, **steps)
    assert result.shape == y.shape
    check(
        case, result, lambda o, x, w, b: o.conv_transpose(x, w, b, **steps), (x, w, arguments.bias)
    )
    arguments.assert_unchanged()


def check(case: Case, result: np.ndarray, compute, arrays) -> None:
    """Compare a result with every oracle's, and its memory with the rule of formats."""
    assert isinstance(result, np.ndarray)
    assert result.dtype == case.dtype
    assert result.flags.writeable
    exact = compute(reference, *arrays)
    # The same map of absolute values bounds the sum of products behind each element.
    bound = compute(reference, *(None if a is None else np.abs(a) for a in arrays))
    error = reference.error_in_eps(result, exact, bound, case.dtype)
    assert error <= most_eps(case)
    if torch is not None:
        error = reference.error_in_eps(result, compute(Torch, *arrays), bound, case.dtype)
        assert error <= most_eps(case, TORCH_EPS.get(case.dtype, MOST_EPS))
    if not case.unbatched and case.rank > 1 and result.ndim == case.rank + 2:
        channels_last = any(a is not None and is_channels_last(a) for a in arrays)
        assert is_dense(result, channels_last)
    assert not any(a is not None and np.may_share_memory(result, a) for a in arrays)


def most_eps(case: Case, direct: float = MOST_EPS) -> float:
    """Return the bound of the error: `direct` where products are added up, 0 where none rounds."""
    channels = min(case.c_in, case.c_out) // case.groups
    if case.dtype == "float32" and channels >= WINOGRAD_CHANNELS:
        return WINOGRAD_EPS
    return 0 if case.integers else direct


class Torch:
    """PyTorch under the oracle's names: float64 or complex128, bilinear (its own conjugates)."""

    @staticmethod
    def tensor(array):
        if array is None:
            return None
        return torch.from_numpy(array.astype(np.result_type(array, np.float64)).copy(order="C"))

    @staticmethod
    def convolve(x, w, b, stride, padding, dilation, groups):
        rank = w.ndim - 2
        if isinstance(padding, list) and isinstance(padding[0], tuple):
            pads = [side for pair in reversed(padding) for side in pair]
            x, padding = torch.nn.functional.pad(x, pads), 0
        convolution = getattr(torch.nn.functional, f"conv{rank}d")
        return convolution(x, w, b, stride, padding, dilation, groups)

    @classmethod
    def conv_forward(cls, x, w, b, **steps):
        return cls.convolve(cls.tensor(x), cls.tensor(w), cls.tensor(b), **steps).numpy()

    @classmethod
    def conv_input_grad(cls, y, w, sizes, *, groups, **steps):
        y, w = cls.tensor(y), cls.tensor(w)
        shape = (*y.shape[: y.ndim - len(sizes) - 1], w.shape[1] * groups, *sizes)
        x = torch.zeros(shape, dtype=w.dtype, requires_grad=True)
        return cls.gradient(cls.convolve(x, w, None, groups=groups, **steps), x, y)

    @classmethod
    def conv_weight_grad(cls, x, y, kernel, *, groups, **steps):
        x, y = cls.tensor(x), cls.tensor(y)
        channel = x.ndim - len(kernel) - 1
        shape = (y.shape[channel], x.shape[channel] // groups, *kernel)
        w = torch.zeros(shape, dtype=x.dtype, requires_grad=True)
        return cls.gradient(cls.convolve(x, w, None, groups=groups, **steps), w, y)

    @classmethod
    def conv_bias_grad(cls, y, *, unbatched):
        y = cls.tensor(y)
        return y.sum([a for a in range(y.ndim) if a != (0 if unbatched else 1)]).numpy()

    @classmethod
    def conv_transpose(cls, x, w, b, *, stride, padding, dilation, groups, output_padding):
        x, w, b = cls.tensor(x), cls.tensor(w), cls.tensor(b)
        convolution = getattr(torch.nn.functional, f"conv_transpose{w.ndim - 2}d")
        asymmetric = isinstance(padding, list) and isinstance(padding[0], tuple)
        if not asymmetric:
            return convolution(x, w, b, stride, padding, output_padding, groups, dilation).numpy()
        y = convolution(x, w, b, stride, 0, output_padding, groups, dilation).numpy()
        inner = (
            slice(before, size - after)
            for size, (before, after) in zip(y.shape[2 - w.ndim :], padding, strict=True)
        )
        return y[(..., *inner)]

    @staticmethod
    def gradient(y, of, grad_output):
        """PyTorch conjugates the other argument of a bilinear map; take that back."""
        (gradient,) = torch.autograd.grad(y, of, grad_output.conj())
        return gradient.conj().resolve_conj().numpy()
