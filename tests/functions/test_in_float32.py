"""Functions that take bfloat16 by way of float32."""

from __future__ import annotations

import pytest

import convcore
from convcore.functions.in_float32 import in_float32


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
