"""assert_close finds what differs and says how; make_tensor draws input for tests."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.testing import assert_allclose, assert_close, make_tensor

X = convcore.tensor([[1.0, 2.0], [3.0, 4.0]])

PAIRS = [
    (lambda x: (x, x + 1e-6), True),
    (lambda x: (x, x + 1e-3), False),
    (lambda x: (x, x.double()), False),
    (lambda x: (x, x[0]), False),
    (lambda x: ([x, 1], [x, 1]), True),
    (lambda x: ({"a": x}, {"b": x}), False),
    (lambda x: ((x, 2.0), (x, 3.0)), False),
    (lambda x: (x.long(), x.long() + 1), False),
    (lambda x: (None, x), False),
    (lambda x: (x / 0, x / 0), True),
    (lambda x: (x * float("nan"), x * float("nan")), False),
]


def is_close(lib, pair) -> bool:
    try:
        lib.testing.assert_close(*pair)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(("make", "expected"), PAIRS)
def test_what_is_close(lib, make, expected):
    assert is_close(lib, make(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))) is expected


def test_the_text_counts_and_places_the_differences(torch):
    def text(lib):
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
        with pytest.raises(AssertionError) as caught:
            lib.testing.assert_close(x, x + lib.tensor([0.0, 0.5]))
        return str(caught.value)

    assert text(convcore) == text(torch)


def test_tolerances_and_messages():
    assert_close(X, X + 0.1, rtol=0, atol=0.2)
    assert_close(X * float("nan"), X * float("nan"), equal_nan=True)
    assert_close(X, X.double(), check_dtype=False)
    assert_allclose(X, X.double())
    with pytest.raises(ValueError, match="must be either specified or unspecified"):
        assert_close(X, X, rtol=1)
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(X, X + 1, msg="mine")
    with pytest.raises(AssertionError, match=r"^not: Tensor-likes"):
        assert_close(X, X + 1, msg=lambda text: f"not: {text}")
    with pytest.raises(AssertionError, match="stride"):
        assert_close(X, X.t().contiguous().t(), check_stride=True)


def test_make_tensor():
    made = make_tensor(3, 4, dtype=convcore.float32, low=2, high=3, requires_grad=True)
    assert made.requires_grad and bool(((made >= 2) & (made < 3)).all())
    spread = make_tensor((2, 3), dtype=convcore.int64, noncontiguous=True)
    assert spread.shape == (2, 3) and not spread.is_contiguous()
    assert not (make_tensor(100, dtype=convcore.int8, exclude_zero=True) == 0).any()
    assert make_tensor(9, dtype=convcore.bool).dtype is convcore.bool
    bytes_ = make_tensor(400, dtype=convcore.uint8, low=-9, high=3)
    assert bytes_.unique().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"`low` must be less than `high`, but got 3 >= 3"):
        make_tensor(9, dtype=convcore.int8, low=3, high=3)
    with pytest.raises(ValueError, match=r"torch.uint8 only supports \[0, 256\)"):
        make_tensor(9, dtype=convcore.uint8, low=-9, high=-3)


@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("options", [{}, {"low": -3, "high": 1.5}, {"noncontiguous": True}])
def test_make_tensor_draws_what_torch_draws(name, options):
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    convcore.manual_seed(3)
    made = make_tensor((5, 4), dtype=getattr(convcore, name), **options)
    theirs = torch.testing.make_tensor((5, 4), dtype=getattr(torch, name), device="cpu", **options)
    np.testing.assert_array_equal(made.numpy(), theirs.numpy())
    assert made.stride() == theirs.stride()


@pytest.mark.parametrize("options", [{}, {"noncontiguous": True}, {"exclude_zero": True}])
def test_make_tensor_draws_bfloat16(options):
    pytest.importorskip("ml_dtypes")
    made = make_tensor(4, 6, dtype=convcore.bfloat16, device="cpu", low=-2, high=3, **options)
    assert made.dtype is convcore.bfloat16 and made.shape == (4, 6)
    assert -2 <= made.float().min() < 0 < made.float().max() <= 3
    assert made.is_contiguous() is not options.get("noncontiguous", False)
    assert not options.get("exclude_zero") or (made != 0).all()


def test_make_tensor_is_where_it_is_asked_for(lib):
    draw = lib.testing.make_tensor
    made = draw(2, 3, dtype=lib.float64, device="meta", requires_grad=True)
    assert made.is_meta and made.shape == (2, 3) and made.requires_grad
    with lib.device("meta"):
        assert draw((2,), dtype=lib.int8, device=None).is_meta
    with pytest.raises(RuntimeError, match="xpu"):
        make_tensor((2,), dtype=convcore.int8, device="xpu")


def test_make_tensor_leaves_out_what_the_dtype_cannot_hold():
    made = make_tensor(99, dtype=convcore.uint8, low=-9, high=3.5)
    assert set(made.tolist()) == {0, 1, 2, 3}
    assert set(make_tensor(99, dtype=convcore.bool, low=-9, high=9).tolist()) == {False, True}
