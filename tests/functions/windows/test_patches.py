"""unfold, fold and the pixel shuffles on tensors, beside PyTorch's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from against_torch import agree, same_error
from derivatives import assert_same_derivatives, leaf
from draws import LAYOUTS, lay_out, numbers
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.functions.windows.patches import fold, pixel_shuffle, pixel_unshuffle, unfold

SOME = examples(80)


@dataclass(frozen=True)
class Case:
    """An image, or its columns, and where the kernel goes."""

    n: int
    c: int
    sizes: tuple[int, int]
    steps: dict[str, tuple[int, int]]
    outs: tuple[int, int]
    unbatched: bool
    dtype: str
    layout: str
    draw: int

    @property
    def image(self) -> tuple[int, ...]:
        return (self.n, self.c, *self.sizes)

    @property
    def columns(self) -> tuple[int, ...]:
        height, width = self.steps["kernel_size"]
        return (self.n, self.c * height * width, self.outs[0] * self.outs[1])

    def numbers(self, seed: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
        """Draw small integers, whose sums are exact."""
        rng = np.random.default_rng([seed, self.draw])
        arrays = [numbers(rng, shape, self.dtype, integers=True) for shape in shapes]
        arrays = [np.array(lay_out(array, self.layout, rng)) for array in arrays]
        return [array[0] if self.unbatched else array for array in arrays]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    axes = []
    for _ in range(2):
        dilation, kernel = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        stride, padding = draw(st.integers(1, 3)), draw(st.integers(0, 3))
        extent = dilation * (kernel - 1) + 1
        size = max(1, extent - 2 * padding) + draw(st.integers(0, 4))
        axes.append((size, kernel, dilation, padding, stride, extent))
    sizes, kernel, dilation, padding, stride, extents = zip(*axes, strict=True)
    unbatched = draw(st.booleans())
    return Case(
        n=1 if unbatched else draw(st.sampled_from((1, 2, 3, 0))),
        c=draw(st.integers(1, 3)),
        sizes=sizes,
        steps={"kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride},
        outs=tuple(
            (n + 2 * p - e) // s + 1
            for n, p, e, s in zip(sizes, padding, extents, stride, strict=True)
        ),
        unbatched=unbatched,
        dtype=draw(st.sampled_from(("float16", "float32", "float64", "complex64"))),
        layout=draw(st.sampled_from(LAYOUTS)),
        draw=draw(st.integers(0, 2**32 - 1)),
    )


@SOME
@given(case=cases())
def test_unfold_has_pytorchs_derivatives(case, seed, torch):
    assert_same_derivatives(
        torch,
        lambda x: unfold(x, **case.steps),
        lambda x: torch.nn.functional.unfold(x, **case.steps),
        case.numbers(seed, case.image, case.columns, case.image, case.columns),
    )


@SOME
@given(case=cases())
def test_fold_has_pytorchs_derivatives(case, seed, torch):
    assert_same_derivatives(
        torch,
        lambda x: fold(x, case.sizes, **case.steps),
        lambda x: torch.nn.functional.fold(x, case.sizes, **case.steps),
        case.numbers(seed, case.columns, case.image, case.columns, case.image),
    )


@SOME
@given(
    lead=st.lists(st.integers(1, 2), max_size=2),
    sizes=st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3)),
    r=st.integers(1, 3),
    channels_last=st.booleans(),
)
def test_pixel_shuffles_have_pytorchs_derivatives(lead, sizes, r, channels_last, seed, torch):
    c, h, w = sizes
    rng = np.random.default_rng(seed)
    deep, wide = (*lead, c * r * r, h, w), (*lead, c, h * r, w * r)
    layout = "channels_last" if channels_last and len(lead) == 1 else "contiguous"
    arrays = [lay_out(rng.standard_normal(s), layout, rng).copy("K") for s in (deep, wide) * 2]
    assert_same_derivatives(
        torch,
        lambda x: pixel_shuffle(x, r),
        lambda x: torch.nn.functional.pixel_shuffle(x, r),
        arrays,
    )
    assert_same_derivatives(
        torch,
        lambda x: pixel_unshuffle(x, r),
        lambda x: torch.nn.functional.pixel_unshuffle(x, r),
        [*arrays[1:], arrays[0]],
    )


def test_pixel_shuffles_of_nothing_have_a_shape(rng):
    x = leaf(np.zeros((0, 4, 3, 2)))
    wide = pixel_shuffle(x, 2)
    (grad,) = convcore.autograd.grad(wide, x, convcore.from_numpy(np.zeros((0, 1, 6, 4))))
    assert wide.shape == (0, 1, 6, 4) and grad.shape == x.shape


def test_patches_functions_pass_gradcheck(rng):
    image, columns = rng.standard_normal((2, 1, 4, 4)), rng.standard_normal((2, 4, 9))
    for call, array in (
        (lambda x: unfold(x, 2), image),
        (lambda x: fold(x, 4, 2), columns),
        (lambda x: pixel_unshuffle(x, 2), image),
        (lambda x: pixel_shuffle(x, 2), columns.reshape(2, 4, 3, 3)),
    ):
        assert convcore.autograd.gradcheck(call, (leaf(array),))
        assert convcore.autograd.gradgradcheck(call, (leaf(array),))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: unfold(x, 2), "Im2ColBackward0"),
        (lambda x: fold(x, 3, (2, 2)), "Col2ImBackward0"),
        (lambda x: pixel_shuffle(x, 2), "PixelShuffleBackward0"),
        (lambda x: pixel_unshuffle(x, 2), "PixelUnshuffleBackward0"),
    ],
)
def test_patches_nodes_are_named_as_pytorchs(call, name, rng):
    assert call(leaf(rng.standard_normal((4, 4, 4)))).grad_fn.name() == name


def test_pixel_shuffle_keeps_channels_last(rng):
    x = convcore.from_numpy(rng.standard_normal((2, 3, 5, 8)).transpose(0, 3, 1, 2))
    wide = pixel_shuffle(x, 2)
    for tensor in (wide, pixel_unshuffle(wide, 2)):
        assert tensor.is_contiguous(memory_format=convcore.channels_last)
    np.testing.assert_array_equal(pixel_unshuffle(wide, 2).numpy(), x.numpy())


X = np.ones((1, 4, 4, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda F, t: F.unfold(t(X), 2.0), TypeError, None),
        (
            lambda F, t: F.unfold(t(X), (2, 2, 2)),
            RuntimeError,
            "It is expected kernel_size equals to 2, but got size 3",
        ),
        (
            lambda F, t: F.unfold(t(X), 2, stride=0),
            RuntimeError,
            "stride should be greater than zero, but got stride_height: 0 stride_width: 0",
        ),
        (
            lambda F, t: F.unfold(t(X), (0, 1)),
            RuntimeError,
            "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 1",
        ),
        (
            lambda F, t: F.unfold(t(X), 2, dilation=0),
            RuntimeError,
            "dilation should be greater than zero, but got dilation_height: 0 dilation_width: 0",
        ),
        (
            lambda F, t: F.unfold(t(X), 2, padding=-1),
            RuntimeError,
            "padding should be non-negative, but got pad_height: -1 pad_width: -1",
        ),
        (
            lambda F, t: F.unfold(t(X), 5),
            RuntimeError,
            r"Given input with spatial size \(4, 4\), kernel_size=\(5, 5\), dilation=\(1, 1\), "
            r"padding=\(0, 0\), calculated shape of the array of sliding blocks as \(0, 0\), but "
            "its components must be at least one.",
        ),
        (
            lambda F, t: F.unfold(t(X[:, :0]), 2),
            RuntimeError,
            r"Expected 3D or 4D \(batch mode\) tensor with possibly 0 batch size and other "
            r"non-zero dimensions for input, but got: \[1, 0, 4, 4\]",
        ),
        (
            lambda F, t: F.unfold(t(X.astype(int)), 2),
            NotImplementedError,
            "\"im2col_out_cpu\" not implemented for 'Long'",
        ),
        (
            lambda F, t: F.fold(t(X[0].astype(int)), 3, 2),
            NotImplementedError,
            "\"col2im_out_cpu\" not implemented for 'Long'",
        ),
        (
            lambda F, t: F.fold(t(X), 3, 2),
            RuntimeError,
            r"Expected 2D or 3D \(batch mode\) tensor for input with possibly 0 batch size and "
            r"non-zero dimensions for input, but got: \[1, 4, 4, 4\]",
        ),
        (
            lambda F, t: F.fold(t(np.ones((1, 4, 5))), 3, 2),
            RuntimeError,
            r"Given output_size=\(3, 3\), kernel_size=\(2, 2\), dilation=\(1, 1\), "
            r"padding=\(0, 0\), stride=\(1, 1\), expected size of input's dimension 2 to match the "
            r"calculated number of sliding blocks 2 \* 2 = 4, but got input.size\(2\)=5.",
        ),
        (
            lambda F, t: F.fold(t(X[0]), 3, (3, 2)),
            RuntimeError,
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            r"but got input.size\(1\)=4 and kernel_size=\(3, 2\).",
        ),
        (lambda F, t: F.fold(t(X[0]), 3, 2, stride=0), RuntimeError, "stride should be greater"),
        (
            lambda F, t: F.fold(t(X[0]), (3, 3, 3), 2),
            RuntimeError,
            "It is expected output_size equals to 2, but got size 3",
        ),
        (
            lambda F, t: F.pixel_shuffle(t(X), 3),
            RuntimeError,
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            r"of upscale_factor, but input.size\(-3\)=4 is not divisible by 9",
        ),
        (
            lambda F, t: F.pixel_unshuffle(t(X), 3),
            RuntimeError,
            "pixel_unshuffle expects height to be divisible by downscale_factor, but "
            r"input.size\(-2\)=4 is not divisible by 3",
        ),
        (
            lambda F, t: F.pixel_shuffle(t(X), 0),
            RuntimeError,
            "pixel_shuffle expects a positive upscale_factor, but got 0",
        ),
        (
            lambda F, t: F.pixel_unshuffle(t(X[0, 0]), 2),
            RuntimeError,
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with 2 "
            r"dimension\(s\)",
        ),
        (lambda F, t: F.pixel_shuffle(t(X), 2.0), TypeError, "must be int, not float"),
        (lambda F, t: F.pixel_shuffle(t(X), (2, 2)), TypeError, "must be int, not tuple"),
        (lambda F, t: F.pixel_shuffle(X, 2), TypeError, r"argument 'input' \(position 1\) must be"),
    ],
)
@pytest.mark.parametrize("library", ["convcore", "torch"])
def test_patches_functions_raise_pytorchs_errors(library, call, error, text, request):
    if library == "torch":
        torch = request.getfixturevalue("torch")
        module, tensor = torch.nn.functional, torch.from_numpy
    else:
        module, tensor = convcore.functions.windows.patches, convcore.from_numpy
    with pytest.raises(error, match=text):
        call(module, tensor)


@pytest.mark.parametrize("shape", [(2, 6, 3), (1, 6, 2, 3), (1, 6, 2, 2, 2)])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_shuffled_channels_agree_with_pytorch(torch, rng, shape, groups):
    agree(torch, lambda m, x: m.nn.functional.channel_shuffle(x, groups), rng.normal(size=shape))
    x = np.arange(6).reshape(1, 6, 1)
    found = convcore.channel_shuffle(convcore.from_numpy(x), groups).flatten().tolist()
    assert found == x.reshape(groups, -1).T.flatten().tolist()


def test_channels_that_cannot_be_shuffled_are_pytorchs_errors(torch):
    same_error(torch, lambda m, x: m.channel_shuffle(x, 4), np.ones((1, 6, 2)))
    same_error(torch, lambda m, x: m.channel_shuffle(x, 0), np.ones((1, 6, 2)))
    same_error(torch, lambda m, x: m.channel_shuffle(x, 2), np.ones((1, 6)))
