"""Interpolation against PyTorch, its adjoint, and what cannot be interpolated."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same, same_error
from draws import is_channels_last, is_dense, lay_out
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore import engine
from convcore.autograd import gradcheck

SOME = examples(120)
MODES = {
    1: ("nearest", "nearest-exact", "linear", "area"),
    2: ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
    3: ("nearest", "nearest-exact", "trilinear", "area"),
}
INTERPOLATING = ("linear", "bilinear", "bicubic", "trilinear")


@st.composite
def arguments(draw: st.DrawFn) -> tuple[tuple[int, ...], dict]:
    """Draw a shape and the keywords of an interpolation; long rows too, which repeat themselves."""
    rank = draw(st.integers(1, 3))
    most = {1: 40, 2: 24, 3: 9}[rank]
    sizes = draw(st.tuples(*[st.integers(1, most)] * rank))
    kwargs: dict = {"mode": draw(st.sampled_from(MODES[rank]))}
    factors = st.sampled_from((0.5, 2.0, 2.0, 3.0, 1.5, 0.4, 1.0, 2.7))
    if draw(st.booleans()):
        kwargs["size"] = draw(st.integers(1, most) | st.tuples(*[st.integers(1, most)] * rank))
    else:
        factor = draw(factors | st.tuples(*[factors] * rank))
        least = np.multiply(sizes, factor).min()
        kwargs["scale_factor"] = factor if least >= 1 else 2
        kwargs["recompute_scale_factor"] = draw(st.sampled_from((None, True, False)))
    if kwargs["mode"] in INTERPOLATING:
        kwargs["align_corners"] = draw(st.sampled_from((None, True, False)))
    if kwargs["mode"] in ("bilinear", "bicubic") and draw(st.booleans()):
        kwargs["antialias"] = True
    shape = (draw(st.integers(1, 2)), draw(st.sampled_from((1, 2, 3, 5))), *sizes)
    return shape, kwargs


@SOME
@given(
    case=arguments(),
    dtype=st.sampled_from(("float32", "float64")),
    layout=st.sampled_from(("contiguous", "channels_last")),
)
def test_interpolate_is_pytorchs_up_to_second_order(case, dtype, layout, seed, torch):
    shape, kwargs = case
    rng = np.random.default_rng(seed)
    x = np.array(lay_out(rng.standard_normal(shape).astype(dtype), layout, rng), order="K")
    # Places between pixels are rounded in other orders by the two: slopes show it.
    agree(
        torch,
        lambda lib, x: lib.nn.functional.interpolate(x, **kwargs),
        x,
        rtol=2e-4 if dtype == "float32" else 1e-9,
    )


@pytest.mark.parametrize(
    ("mode", "rank"), [(m, r) for r, modes in MODES.items() for m in modes if m != "area"]
)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_interpolate_and_its_gradient_are_adjoint_and_keep_the_format(mode, rank, layout, rng):
    line = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    x = lay_out(rng.integers(-4, 5, (2, 3, *(11, 18, 5)[:rank])).astype("f8"), layout, rng)
    for outs, align in (((22, 36, 10)[:rank], False), ((7, 31, 6)[:rank], True)):
        y = engine.interpolate(x, outs, line, align)
        g = lay_out(rng.standard_normal(y.shape), layout, rng)
        gx = engine.interpolate_grad(g, x.shape[2:], line, align)
        assert (y * g).sum() == pytest.approx((x * gx).sum(), rel=1e-12, abs=1e-9)
        assert is_dense(y, is_channels_last(x)) and is_dense(gx, is_channels_last(g))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_interpolate_has_the_same_bits_for_any_number_of_threads(mode, layout, rng, threads):
    x = lay_out(rng.standard_normal((3, 20, 30, 41)).astype("f4"), layout, rng)
    line = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    results = []
    for n in (1, 2, 3, 7):
        threads(n)
        y = engine.interpolate(x, (60, 82), line)
        results.append((y, engine.interpolate_grad(y, (30, 41), line)))
    for result in results[1:]:
        for found, expected in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_halves_are_interpolated_wider(rng):
    x = rng.standard_normal((1, 2, 5, 6)).astype("f2")
    y = engine.interpolate(x, (10, 12), "linear")
    assert y.dtype == np.float16
    np.testing.assert_array_equal(
        y, engine.interpolate(x.astype("f4"), (10, 12), "linear").astype("f2")
    )


X = np.arange(120.0).reshape(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("name", "rank", "kwargs"),
    [
        ("UpsampleNearest1DBackward0", 1, {"mode": "nearest"}),
        ("UpsampleNearestExact2DBackward0", 2, {"mode": "nearest-exact"}),
        ("UpsampleLinear1DBackward0", 1, {"mode": "linear"}),
        ("UpsampleBilinear2DBackward0", 2, {"mode": "bilinear"}),
        ("UpsampleBicubic2DBackward0", 2, {"mode": "bicubic"}),
        ("UpsampleBilinear2DAaBackward0", 2, {"mode": "bilinear", "antialias": True}),
        ("UpsampleLanczos2DAaBackward0", 2, {"mode": "lanczos", "antialias": True}),
        ("UpsampleTrilinear3DBackward0", 3, {"mode": "trilinear"}),
        ("AdaptiveAvgPool2DBackward0", 2, {"mode": "area"}),
    ],
)
def test_nodes_and_values_are_pytorchs(name, rank, kwargs, torch, rng):
    x = rng.standard_normal((1, 2, *(9, 10, 4)[:rank]))
    for size in (5, 13):
        agree(
            torch,
            lambda lib, x, size=size: lib.nn.functional.interpolate(x, size, **kwargs),
            x,
            nodes=1,
            rtol=1e-6,
        )
    y = convcore.nn.functional.interpolate(convcore.from_numpy(x).requires_grad_(), 5, **kwargs)
    assert type(y.grad_fn).__name__ == name


@pytest.mark.parametrize(
    "call",
    [
        lambda F, x: F.interpolate(x),
        lambda F, x: F.interpolate(x, size=2, scale_factor=2),
        lambda F, x: F.interpolate(x, size=(2,)),
        lambda F, x: F.interpolate(x, scale_factor=(2.0, 3.0, 4.0)),
        lambda F, x: F.interpolate(x, 2, mode="linear"),
        lambda F, x: F.interpolate(x, 2, mode="trilinear"),
        lambda F, x: F.interpolate(x[0], 2, mode="bicubic"),
        lambda F, x: F.interpolate(x, 2, mode="cubic"),
        lambda F, x: F.interpolate(x[0, 0], 2),
        lambda F, x: F.interpolate(x, 2, align_corners=True),
        lambda F, x: F.interpolate(x, 2, recompute_scale_factor=True),
        lambda F, x: F.interpolate(x, 2, antialias=True),
        lambda F, x: F.interpolate(x, 2, mode="lanczos"),
        lambda F, x: F.interpolate(x, 2, None, "lanczos", align_corners=True, antialias=True),
        lambda F, x: F.interpolate(x, (0, 2)),
        lambda F, x: F.interpolate(x[0], 0),
        lambda F, x: F.interpolate(x, scale_factor=0.1),
        lambda F, x: F.interpolate(x, scale_factor=float("inf")),
        lambda F, x: F.interpolate(x[:, :0], 2),
        lambda F, x: F.interpolate(x[:, :, :0], 2),
        lambda F, x: F.interpolate(x.int(), 2),
        lambda F, x: F.interpolate(x.int(), 2, mode="bilinear"),
        lambda F, x: F.interpolate(x[0].int(), 2, mode="linear"),
        lambda F, x: F.interpolate(x.int(), 2, mode="bicubic"),
        lambda F, x: F.interpolate(x.bool(), 2),
    ],
)
def test_interpolate_raises_pytorchs_errors(call, torch):
    same_error(torch, lambda lib, x: call(lib.nn.functional, x), X)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda F, x: F.interpolate(X, 2), TypeError, "'input' .position 1. must be Tensor"),
        (lambda F, x: F.interpolate(x, 2.5), TypeError, "expected size to be one of int"),
        (lambda F, x: F.interpolate(x, True), TypeError, "expected size to be one of int"),
        (lambda F, x: F.interpolate(x, scale_factor="2"), TypeError, "'scale_factor'"),
        (lambda F, x: engine.interpolate(X, (2, 2), "cube"), ValueError, "mode must be one of"),
        (lambda F, x: engine.interpolate(X, (2, 0)), ValueError, "greater than 0"),
        (lambda F, x: engine.interpolate(X.astype(int), (2, 2)), TypeError, "got int64"),
    ],
)
def test_other_errors_say_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call(convcore.nn.functional, convcore.from_numpy(X))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_masks_of_bytes_are_resized_as_pytorchs(mode, rank, torch, rng):
    mask = rng.integers(0, 256, (2, 3, *(7, 5, 4)[:rank]), dtype=np.uint8)
    results = [
        lib.nn.functional.interpolate(lib.from_numpy(mask), scale_factor=1.7, mode=mode)
        for lib in (convcore, torch)
    ]
    assert results[0].dtype is convcore.uint8
    np.testing.assert_array_equal(*(result.numpy() for result in results))


def test_empty_batches_and_infinities():
    assert convcore.nn.functional.interpolate(convcore.zeros(0, 3, 4, 5), 2).shape == (0, 3, 2, 2)
    x = np.array([[[np.inf, 1.0, np.nan]]])
    assert engine.interpolate(x, (6,)).tolist()[0][0][:4] == [np.inf, np.inf, 1.0, 1.0]


def test_older_names_warn(torch):
    F = convcore.nn.functional
    x = convcore.from_numpy(X)
    for name, args in (("upsample", (2,)), ("upsample_nearest", (2,)), ("upsample_bilinear", (3,))):
        with pytest.warns(UserWarning, match="Use `nn.functional.interpolate` instead"):
            result = getattr(F, name)(x, *args)
        with pytest.warns(UserWarning):
            expected = getattr(torch.nn.functional, name)(torch.from_numpy(X), *args)
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.Upsample(scale_factor=2),
        lambda nn: nn.Upsample((3, 7), mode="bilinear", align_corners=True),
        lambda nn: nn.Upsample(scale_factor=(1, 2.5), mode="nearest-exact"),
        lambda nn: nn.Upsample(scale_factor=1.7, mode="bicubic", recompute_scale_factor=True),
        lambda nn: nn.UpsamplingNearest2d(scale_factor=2),
        lambda nn: nn.UpsamplingBilinear2d(6),
    ],
)
def test_modules_are_pytorchs(make, torch, rng):
    ours, theirs = make(convcore.nn), make(torch.nn)
    assert str(ours) == str(theirs)
    assert (ours.name, ours.size, ours.scale_factor) == (
        theirs.name,
        theirs.size,
        theirs.scale_factor,
    )
    agree(torch, lambda lib, x: make(lib.nn)(x), rng.standard_normal((2, 3, 8, 9)), rtol=1e-9)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
def test_images_of_bytes_are_pytorchs(torch, rng, mode, antialias, align, channels_last):
    for channels in (1, 3, 5):
        image = rng.integers(0, 256, (2, channels, 13, 11), dtype=np.uint8)
        for size in ((7, 9), (8, 30), (20, 11)):
            options = {"mode": mode, "antialias": antialias, "align_corners": align}

            def call(m, x, size=size, options=options):
                if channels_last:
                    x = x.contiguous(memory_format=m.channels_last)
                return m.nn.functional.interpolate(x, size, **options)

            agree(torch, call, image, strides=True)


@pytest.mark.parametrize(
    ("mode", "rank"),
    [
        *((mode, rank) for mode in ("nearest", "nearest-exact") for rank in (1, 2, 3)),
        *(("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)),
    ],
)
@pytest.mark.parametrize("factor", [1.2, 2.15, 1 / 3, 0.7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_that_leave_or_double_sizes_are_pytorchs(mode, rank, factor, dtype, torch, rng):
    """Forward alone: of lines and volumes, PyTorch's nearest gradient is of other pixels."""
    factors = (factor, 2.0, 1.0)[:rank]
    for size in (3, 4, 9):
        x = rng.standard_normal((1, 2, *(size,) * rank)).astype(dtype)
        ours, theirs = (
            lib.nn.functional.interpolate(lib.from_numpy(x), scale_factor=factors, mode=mode)
            for lib in (convcore, torch)
        )
        same(ours, theirs, f"{size} by {factors}")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("factors", [(1.1, 1.1), (1.1, 2.0), (2.0, 1.1)])
def test_antialiasing_copies_axes_whose_size_stays(torch, rng, mode, factors):
    call = lambda m, x: m.nn.functional.interpolate(  # noqa: E731
        x, scale_factor=factors, mode=mode, antialias=True
    )
    x = rng.normal(size=(1, 2, 3, 2))
    agree(torch, lambda m, x: call(m, x.detach()), x)
    # PyTorch's gradient is that of filtering all axes.
    assert gradcheck(lambda x: call(convcore, x), convcore.from_numpy(x).requires_grad_())
