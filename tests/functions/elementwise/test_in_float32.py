"""Functions that take bfloat16 by way of float32."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.functions.elementwise.in_float32 import in_float32


@in_float32
def halves(x, other=None):
    """Return the half, its dtype and an integer; a tuple, as `max` along an axis."""
    return x / 2 if other is None else x / other, x.dtype, x.argmax()


def test_a_function_sees_float32_and_its_results_are_bfloat16_again():
    pytest.importorskip("ml_dtypes")
    x = convcore.ones(3, dtype=convcore.bfloat16, requires_grad=True)
    half, seen, place = halves(x)
    assert seen is convcore.float32 and half.dtype is convcore.bfloat16
    assert place.dtype is convcore.int64
    half.sum().backward()
    assert x.grad.dtype is convcore.bfloat16 and x.grad.tolist() == [0.5] * 3
    assert halves(x=x)[1] is halves(x, other=x)[1] is convcore.float32
    assert halves(x, convcore.tensor(2.0))[1] is convcore.float32


def test_other_dtypes_are_left_to_the_function():
    pytest.importorskip("ml_dtypes")
    for dtype in (convcore.float16, convcore.float32, convcore.float64):
        assert halves(convcore.ones(3, dtype=dtype))[1] is dtype
    x = convcore.ones(3).bfloat16()
    half, seen, _ = halves(x, convcore.ones(3))
    assert seen is convcore.bfloat16 and half.dtype is convcore.float32


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "xlogy"])
def test_numbers_of_two_dtypes_are_promoted(name):
    pytest.importorskip("ml_dtypes")
    narrow, wide = convcore.tensor(1.5).bfloat16(), convcore.tensor(2.0)
    function = getattr(convcore, name)
    assert function(narrow, wide).dtype is function(wide, narrow).dtype is convcore.float32
    assert function(convcore.stack([narrow]), wide).dtype is convcore.bfloat16


PAIRS = {
    "cosine_similarity": lambda m, x, y: m.cosine_similarity(x, y),
    "cross_entropy": lambda m, x, y: m.nn.functional.cross_entropy(x, y),
    "hypot": lambda m, x, y: m.hypot(x, y),
    "logaddexp": lambda m, x, y: m.logaddexp(x, y),
    "rms_norm": lambda m, x, y: m.nn.functional.rms_norm(x, (3,), y[0]),
    "xlogy": lambda m, x, y: m.xlogy(x, y),
}


@pytest.mark.filterwarnings("ignore:Mismatch dtype:UserWarning")  # PyTorch's of rms_norm
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtypes", ["bfloat16 float32", "float32 bfloat16", "float16 bfloat16"])
def test_bfloat16_beside_another_dtype_has_pytorchs_dtype_and_gradients(torch, rng, name, dtypes):
    pytest.importorskip("ml_dtypes")
    arrays, found = [rng.uniform(0.5, 2, (2, 3)) for _ in "xy"], []
    for lib in (convcore, torch):
        x, y = (
            lib.from_numpy(array).to(getattr(lib, dtype)).requires_grad_()
            for array, dtype in zip(arrays, dtypes.split(), strict=True)
        )
        out = PAIRS[name](lib, x, y)
        out.sum().backward()
    for ours, theirs in zip(*found, strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        ours, theirs = (one.detach().float().ravel().tolist() for one in (ours, theirs))
        assert ours == pytest.approx(theirs, 0.02, 0.02)


def test_bfloat16_to_negative_integers_agrees_with_pytorch(torch):
    pytest.importorskip("ml_dtypes")
    for lib in (convcore, torch):
        x = lib.tensor([2.0, -4.0, 0.5], dtype=lib.bfloat16, requires_grad=True)
        out = x ** lib.tensor([-1, -2, 3])
        out.sum().backward()
        assert out.dtype is lib.bfloat16 and out.tolist() == [0.5, 0.0625, 0.125]
        assert x.grad.tolist() == [-0.25, 0.03125, 0.75]


def test_dtypes_that_do_not_go_together_are_refused_still():
    pytest.importorskip("ml_dtypes")
    a, g = convcore.ones(1, 1, 2, 2).bfloat16(), convcore.zeros(1, 1, 1, 2)
    with pytest.raises(RuntimeError, match="BFloat16"):
        convcore.nn.functional.grid_sample(a, g, align_corners=False)


def test_warnings_point_to_the_caller():
    F, x = convcore.nn.functional, convcore.ones(1, 1, 2, 2)
    calls = (
        lambda: F.grid_sample(x, convcore.zeros(1, 1, 1, 2)),
        lambda: F.affine_grid(convcore.zeros(1, 2, 3), (1, 1, 2, 2)),
        lambda: F.cross_entropy(x, x, size_average=True),
        lambda: F.nll_loss(x[0], convcore.zeros(1, 2, dtype=convcore.int64), reduce=False),
        lambda: F.binary_cross_entropy(x, x, reduce=True),
    )
    for call in calls:
        with pytest.warns(UserWarning) as caught:
            call()
        assert caught[0].filename == __file__


def test_gated_units_round_values_and_gradients_once(torch, rng):
    pytest.importorskip("ml_dtypes")
    x, g = (rng.standard_normal(shape).astype("f4") for shape in ((64, 128), (64, 64)))
    found = []
    for lib in (convcore, torch):
        given = lib.from_numpy(x).bfloat16().requires_grad_()
        out = lib.nn.functional.glu(given)
        out.backward(lib.from_numpy(g).bfloat16())
        wide = given.detach().float().requires_grad_()
        wide_out = lib.nn.functional.glu(wide)
        wide_out.backward(lib.from_numpy(g).bfloat16().float())
        pairs = ((out.detach(), wide_out.detach()), (given.grad, wide.grad))
        found.append([float((a - b.bfloat16()).abs().max()) for a, b in pairs])
    assert found[0] == [0, 0] and found[1][0] == 0


# What PyTorch computes in float32 with the numbers as they are, and with numbers rounded first.
WITH_NUMBERS = {
    "threshold": lambda f, x: f.threshold(x, 0.3, 20),
    "threshold_": lambda f, x: f.threshold_(x.clone(), -0.7, 0.1),
    "leaky_relu": lambda f, x: f.leaky_relu(x, 0.01),
    "leaky_relu_": lambda f, x: f.leaky_relu_(x.clone(), 0.3),
    "celu": lambda f, x: f.celu(x, 0.7),
    "selu": lambda f, x: f.selu(x),
    "hardtanh": lambda f, x: f.hardtanh(x, 0.7, 1.3),
    "hardshrink": lambda f, x: f.hardshrink(x, 0.3),
    "softshrink": lambda f, x: f.softshrink(x, 0.3),
    "rrelu": lambda f, x: f.rrelu(x, 0.1, 0.3),
    "clamp": lambda f, x: x.clamp(-0.1, 0.3),
    "clamp_max": lambda f, x: x.clamp_max(0.1),
    "mul": lambda f, x: x * 0.1,
    "mul_": lambda f, x: x.clone().mul_(0.3),
    "div": lambda f, x: x / 0.3,
    "over": lambda f, x: 0.3 / x,
    "add": lambda f, x: x + 0.1,
    "sub": lambda f, x: 0.1 - x,
    "remainder": lambda f, x: x % 0.3,
    "fmod": lambda f, x: x.fmod(0.3),
    "lerp": lambda f, x: x.lerp(x * 2, 0.1),
    "addcmul": lambda f, x: x.detach().addcmul(x.detach(), x.detach(), value=0.1),
    "addcdiv": lambda f, x: x.detach().addcdiv(x.detach(), x.detach() + 8, value=0.1),
}


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("call", WITH_NUMBERS.values(), ids=WITH_NUMBERS)
def test_numbers_beside_half_precision_are_rounded_where_pytorch_rounds_them(torch, call, name):
    pytest.importorskip("ml_dtypes")
    seeds, found = np.arange(-(2**15), 2**15, dtype=np.int16), []
    for lib in (convcore, torch):
        x = lib.from_numpy(seeds).view(getattr(lib, name))  # all there are of some size
        x = x[(x.abs() > 2**-6) & (x.abs() < 100)].requires_grad_()
        out = call(lib.nn.functional, x)
        grads = lib.autograd.grad(out, x, x.detach() / 4) if out.requires_grad else ()
        found.append([one.detach().float().numpy() for one in (out, *grads)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2**-7 if name == "bfloat16" else 2**-10)
        assert np.mean(ours != theirs) < 1e-3


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("size", [1, 5, 5000])
def test_the_sigmoid_of_half_precision_is_rounded_once(name, size):
    pytest.importorskip("ml_dtypes")
    dtype = getattr(convcore, name)
    x = convcore.linspace(-11.09, 9, size).to(dtype).requires_grad_()
    y = x.sigmoid()
    y.sum().backward()
    assert y.equal(x.detach().float().sigmoid().to(dtype))
    assert x.grad.allclose(y * (1 - y.float()).to(dtype), rtol=0.01)


def test_a_large_maximum_that_is_nan_gets_the_gradient_in_bfloat16(torch):
    pytest.importorskip("ml_dtypes")
    for lib in (convcore, torch):
        for function in (lib.max, lib.min):
            x = lib.tensor([1.0, float("nan"), 3.0], dtype=lib.bfloat16, requires_grad=True)
            function(x).backward()
            assert x.grad.tolist() == [0, 1, 0]
