"""Pads against loops over elements, their adjoints, and PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from derivatives import assert_same_derivatives, leaf
from draws import LAYOUTS, is_channels_last, is_dense, lay_out, numbers
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore import engine
from convcore.engine import reference
from convcore.functions.windows.padding import pad

SOME = examples(200)
MODES = ("constant", "reflect", "replicate", "circular")


@dataclass(frozen=True)
class Case:
    """An array and its pads, one pair for each of the last axes."""

    shape: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    mode: str
    dtype: str
    layout: str
    draw: int

    @property
    def padded(self) -> tuple[int, ...]:
        lead = len(self.shape) - len(self.pairs)
        sizes = (b + n + a for n, (b, a) in zip(self.shape[lead:], self.pairs, strict=True))
        return (*self.shape[:lead], *sizes)

    def numbers(self, seed: int, shape: tuple[int, ...]) -> np.ndarray:
        """Draw small integers, whose sums are exact."""
        rng = np.random.default_rng([seed, self.draw])
        return lay_out(numbers(rng, shape, self.dtype, integers=True), self.layout, rng)


@st.composite
def pairs(draw: st.DrawFn, size: int, mode: str) -> tuple[int, int]:
    """Draw (before, after) for an axis: at most what the mode allows, or a crop on either side."""
    before = draw(st.integers(-size, 0 if mode == "replicate" and size == 0 else 5))
    after = draw(st.integers(-min(size, size + before), 5))
    most = {"reflect": size - 1, "circular": size + min(before, after, 0)}.get(mode, 5)
    return min(before, most), min(after, most)


@st.composite
def cases(draw: st.DrawFn, dtypes=("float32", "float64", "complex64")) -> Case:
    """Draw one to three padded axes after none to two others."""
    mode = draw(st.sampled_from(MODES))
    lead = tuple(draw(st.sampled_from((1, 2, 3, 0))) for _ in range(draw(st.integers(0, 2))))
    sizes = tuple(draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 3))))
    return Case(
        shape=(*lead, *sizes),
        pairs=tuple(draw(pairs(size, mode)) for size in sizes),
        mode=mode,
        dtype=draw(st.sampled_from(dtypes)),
        layout=draw(st.sampled_from(LAYOUTS)) if len(lead) == 2 else "contiguous",
        draw=draw(st.integers(0, 2**32 - 1)),
    )


@SOME
@given(case=cases(dtypes=("float16", "float32", "float64", "complex128", "int8", "uint8")))
def test_pad_copies_what_each_mode_names(case, seed):
    x = case.numbers(seed, case.shape) if case.dtype[0] in "fc" else whole_numbers(case, seed)
    result = engine.pad(x, case.pairs, case.mode, 7)
    np.testing.assert_array_equal(result, reference.pad(x, case.pairs, case.mode, 7))
    assert result.shape == case.padded and result.dtype == x.dtype
    assert result.base is None or not np.shares_memory(result, x)
    assert is_dense(result, is_channels_last(x)) or x.ndim < 4


def whole_numbers(case: Case, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, case.draw])
    return rng.integers(0, 100, case.shape, case.dtype)


@SOME
@given(case=cases())
def test_pad_grad_adds_every_copy_back(case, seed):
    g = case.numbers(seed, case.padded)
    grad = engine.pad_grad(g, case.pairs, case.mode)
    np.testing.assert_array_equal(grad, reference.pad_grad(g, case.pairs, case.mode))
    assert grad.shape == case.shape and grad.dtype == g.dtype
    assert is_dense(grad, is_channels_last(g)) or g.ndim < 4


@SOME
@given(case=cases(dtypes=("float64",)))
def test_pad_grad_is_the_adjoint_of_pad(case, seed):
    x, g = case.numbers(seed, case.shape), case.numbers(seed, case.padded)
    there = engine.pad(x, case.pairs, case.mode)
    back = engine.pad_grad(g, case.pairs, case.mode)
    assert (there * g).sum() == (x * back).sum()


@pytest.mark.parametrize("mode", MODES)
def test_pad_of_nothing_is_a_copy(mode, rng):
    x = rng.standard_normal((2, 3))
    for padding in ([(0, 0)], [(0, 0), (0, 0)], []):
        result = engine.pad(x, padding, mode, 1.0)
        np.testing.assert_array_equal(result, x)
        assert not np.shares_memory(result, x)


def test_pad_keeps_booleans():
    assert engine.pad(np.array([True, False]), [(1, 1)], "circular").tolist() == [0, 1, 0, 1]
    assert engine.pad(np.array([False]), [(1, 0)], value=2).dtype == bool


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize(
    "value",
    [
        *(True, np.True_, np.float32(2), np.int8(-128), 1.7, -3, 300, 7e4, 2.0**100, 1e300),
        *(math.inf, -math.inf, math.nan),
    ],
    ids=repr,
)
def test_pad_by_a_value_is_pytorchs(value, dtype, torch):
    """What the dtype cannot hold is refused, also by the engine itself."""
    x = np.ones(1, dtype)
    try:
        expected = torch.nn.functional.pad(torch.from_numpy(x), (1, 0), value=value).numpy()
    except RuntimeError:
        with pytest.raises(RuntimeError, match="value cannot be converted to type"):
            pad(convcore.from_numpy(x), (1, 0), value=value)
        with pytest.raises(ValueError, match="value cannot be converted to type"):
            engine.pad(x, [(1, 0)], value=value)
    else:
        result = pad(convcore.from_numpy(x), (1, 0), value=value)
        np.testing.assert_array_equal(result.numpy(), expected)
        np.testing.assert_array_equal(engine.pad(x, [(1, 0)], value=value), expected)


def test_pad_by_a_tensor_of_one_number():
    value = convcore.tensor(2.0)
    assert pad(convcore.tensor([1, 1]), (1, 0), value=value).tolist() == [2, 1, 1]


def test_pad_reflects_what_was_cropped_away():
    """The mirror is at the array's own end, as in PyTorch; a circle is what cropping leaves."""
    x = np.arange(4)
    assert engine.pad(x, [(-3, 3)], "reflect").tolist() == [3, 2, 1, 0]
    assert engine.pad(x, [(-1, 3)], "circular").tolist() == [1, 2, 3, 1, 2, 3]
    assert engine.pad(x, [(-4, 2)], "replicate").tolist() == [3, 3]


X = np.ones((1, 2, 4, 4))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: engine.pad([1], [(1, 1)]), TypeError, "array must be a numpy.ndarray, got list"),
        (lambda: engine.pad_grad(1, []), TypeError, "grad_output must be a numpy.ndarray"),
        (lambda: engine.pad(X, 1), TypeError, "padding must be a sequence of .* pairs, got int 1"),
        (lambda: engine.pad(X, [1]), TypeError, r"pairs, got list \[1\]"),
        (lambda: engine.pad(X, [(1.0, 1)]), TypeError, "padding must be an int"),
        (lambda: engine.pad(X, [(1, 1, 1)]), ValueError, "padding must be an int or 2 ints"),
        (lambda: engine.pad(X, [(1, 1)] * 5), ValueError, "at most one pair for each of 4 axes"),
        (lambda: engine.pad(X, [(1, 1)], "mirror"), ValueError, "Unrecognised padding mode mirror"),
        (lambda: engine.pad(X, [(-5, 6)]), ValueError, "at most the 4 elements of dimension 3"),
        (lambda: engine.pad(X, [(-3, -2)], "reflect"), ValueError, r"got \(-3, -2\) for an input"),
        (
            lambda: engine.pad(X, [(4, 0), (0, 0)], "reflect"),
            ValueError,
            "Argument #6: Padding size should be less than the corresponding input dimension, but "
            r"got: padding \(4, 0\) at dimension 2 of input \[1, 2, 4, 4\]",
        ),
        (
            lambda: engine.pad(X, [(5, 0)], "circular"),
            ValueError,
            "Padding value causes wrapping around more than once",
        ),
        (lambda: engine.pad(X, [(-1, 4)], "circular"), ValueError, "wrapping around more than"),
        (
            lambda: engine.pad(X[..., :0], [(1, 0)], "replicate"),
            ValueError,
            r"other non-zero dimensions .*, but got: \[1, 2, 4, 0\]",
        ),
        (
            lambda: engine.pad(np.arange(3), [(1, 1)], value=np.nan),
            ValueError,
            "value cannot be converted to type int64_t without overflow",
        ),
        (lambda: engine.pad(X, [(1, 1)], value=1j), TypeError, "value must be a real number for"),
        (lambda: engine.pad(X, [(1, 1)], value="1"), TypeError, "value must be a number, got str"),
        (lambda: engine.pad(X, [(1, 1)], value=X), TypeError, "value must be a number"),
        (lambda: engine.pad(X, [(1, 1)], X), ValueError, "mode must be one of"),
        (lambda: engine.pad(X, [(2**31 - 1,) * 2] * 4), MemoryError, "larger than any memory"),
        (
            lambda: engine.pad_grad(np.array(["a", "b"]), [(1, 0)]),
            TypeError,
            "grad_output must be an array of numbers, got <U1",
        ),
        (
            lambda: engine.pad_grad(X, [(3, 2)]),
            ValueError,
            "grad_output must be at least as long as its pads",
        ),
    ],
)
def test_pad_errors_say_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


@SOME
@given(case=cases())
def test_pad_and_its_gradient_are_pytorchs(case, seed, torch):
    if len(case.shape) - len(case.pairs) not in (1, 2) and case.mode != "constant":
        return
    if 0 in case.padded or 0 in case.shape:
        return  # PyTorch refuses most of these, each in its own words
    x = case.numbers(seed, case.shape)
    theirs = torch.from_numpy(x.copy(order="K")).requires_grad_()
    flat = [n for pair in reversed(case.pairs) for n in pair]
    value = 2.0 if case.mode == "constant" else None
    their_result = torch.nn.functional.pad(theirs, flat, case.mode, value)
    result = engine.pad(x, case.pairs, case.mode, 2.0)
    np.testing.assert_array_equal(result, their_result.detach().numpy())
    g = case.numbers(seed, case.padded)
    (their_grad,) = torch.autograd.grad(their_result, theirs, torch.from_numpy(g.copy()))
    np.testing.assert_array_equal(engine.pad_grad(g, case.pairs, case.mode), their_grad.numpy())


@SOME
@given(case=cases(dtypes=("float32", "float64", "complex128")))
def test_pad_functions_have_pytorchs_derivatives(case, seed, torch):
    if len(case.shape) - len(case.pairs) not in (1, 2) and case.mode != "constant":
        return
    if 0 in case.padded or 0 in case.shape:
        return
    flat = [n for pair in reversed(case.pairs) for n in pair]
    value = 2.0 if case.mode == "constant" else None
    shapes = [case.shape, case.padded] * 2
    assert_same_derivatives(
        torch,
        lambda x: pad(x, flat, case.mode, value),
        lambda x: torch.nn.functional.pad(x, flat, case.mode, value),
        [np.array(case.numbers(seed, shape)) for shape in shapes],
    )


@pytest.mark.parametrize("mode", MODES)
def test_pad_functions_pass_gradcheck(mode, rng):
    x = leaf(rng.standard_normal((2, 3, 4)))
    for pads in ((2, 1), (-1, 2), (0, 0)):
        assert convcore.autograd.gradcheck(lambda t, p=pads: pad(t, p, mode), (x,))
        assert convcore.autograd.gradgradcheck(lambda t, p=pads: pad(t, p, mode), (x,))


@pytest.mark.parametrize(
    ("mode", "rank", "name"),
    [
        ("constant", 2, "ConstantPadNdBackward0"),
        ("reflect", 1, "ReflectionPad1DBackward0"),
        ("reflect", 2, "ReflectionPad2DBackward0"),
        ("replicate", 2, "ReplicationPad2DBackward0"),
        ("replicate", 3, "ReplicationPad3DBackward0"),
        ("circular", 2, "CircularPad2DBackward0"),
    ],
)
def test_pad_nodes_are_named_as_pytorchs(mode, rank, name, rng):
    x = leaf(rng.standard_normal((1, 2, *(4,) * rank)))
    assert pad(x, (1, 0) * rank, mode).grad_fn.name() == name


def test_pad_keeps_channels_last(rng):
    x = convcore.from_numpy(rng.standard_normal((2, 5, 6, 4)).transpose(0, 3, 1, 2))
    for mode in MODES:
        output = pad(x, (1, 1, 1, 1), mode)
        assert output.is_contiguous(memory_format=convcore.channels_last)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda p, t: p([1], (1, 1)), TypeError, r"argument 'input' \(position 1\) must be"),
        (lambda p, t: p(t(X), 1), TypeError, r"argument 'pad' \(position 2\) must be tuple"),
        (lambda p, t: p(t(X), (1.0, 1.0)), TypeError, None),
        (lambda p, t: p(t(X), (1, 1), value=1j), TypeError, "must be float, not complex"),
        (lambda p, t: p(t(X), (1, 1), value="1"), TypeError, "must be float, not str"),
        (lambda p, t: p(t(X), (1, 1), value=X[0, 0, 0, 0:1]), TypeError, "must be float, not"),
        (lambda p, t: p(t(X), (1, 1), value=10**400), OverflowError, "int too large to convert"),
        (lambda p, t: p(t(X), (1,) * 3), RuntimeError, "Padding length must be divisible by 2"),
        (
            lambda p, t: p(t(X), (1,) * 10),
            RuntimeError,
            "Padding length should be less than or equal to two times the input dimension but got "
            "padding length 10 and input of dimension 4",
        ),
        (
            lambda p, t: p(t(X), (1, 1), "mirror"),
            NotImplementedError,
            "Unrecognised padding mode mirror",
        ),
        (
            lambda p, t: p(t(X), (1, 1), "reflect"),
            NotImplementedError,
            "Padding size 2 is not supported for 4D input tensor.",
        ),
        (
            lambda p, t: p(t(X), (1, 1), "reflect", 1.0),
            RuntimeError,
            'Padding mode "reflect" doesn\'t take in value argument',
        ),
        (
            lambda p, t: p(t(X), (4, 0, 0, 0), "reflect"),
            RuntimeError,
            "Argument #4: Padding size should be less than the corresponding input dimension, but "
            r"got: padding \(4, 0\) at dimension 3 of input \[1, 2, 4, 4\]",
        ),
        (
            lambda p, t: p(t(X), (5, 0, 0, 0), "circular"),
            RuntimeError,
            "Padding value causes wrapping around more than once",
        ),
        (lambda p, t: p(t(X), (-3, -2)), RuntimeError, None),
        (
            lambda p, t: p(t(np.arange(4)), (1, 1), value=float("nan")),
            RuntimeError,
            "value cannot be converted to type int64_t without overflow",
        ),
    ],
)
@pytest.mark.parametrize("library", ["convcore", "torch"])
def test_pad_functions_raise_pytorchs_errors(library, call, error, text, request):
    if library == "torch":
        torch = request.getfixturevalue("torch")
        function, tensor = torch.nn.functional.pad, torch.from_numpy
    else:
        function, tensor = pad, convcore.from_numpy
    with pytest.raises(error, match=text):
        call(function, tensor)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_images_without_channels_are_not_padded(lib, mode):
    pad = lib.nn.functional.pad
    assert pad(lib.ones(0, 2, 4), (1, 1), mode=mode).shape == (0, 2, 6)
    with pytest.raises(RuntimeError, match="with possibly 0 batch size and other non-zero dim"):
        pad(lib.ones(3, 0, 4), (1, 1), mode=mode)
