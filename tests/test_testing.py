"""assert_close finds what differs and says how."""

from __future__ import annotations

import pytest

import convcore
from convcore.testing import assert_close

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
    with pytest.raises(ValueError, match="must be either specified or unspecified"):
        assert_close(X, X, rtol=1)
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(X, X + 1, msg="mine")
    with pytest.raises(AssertionError, match=r"^not: Tensor-likes"):
        assert_close(X, X + 1, msg=lambda text: f"not: {text}")
    with pytest.raises(AssertionError, match="stride"):
        assert_close(X, X.t().contiguous().t(), check_stride=True)
