"""What is kept by shape, dtype and options: made once, and never mistaken for another."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.functions._support import kept as module
from convcore.functions._support.kept import kept
from convcore.functions.windows import interpolation, padding, pooling
from convcore.nn import functional as F


@pytest.fixture
def made():
    """Return a kept maker, and the calls that it was made by."""
    calls = []

    @kept
    def make(array, *options):
        calls.append(options)
        return array.shape, array.dtype, options

    return make, calls


def test_arrays_of_one_shape_and_dtype_share_what_is_made(made):
    make, calls = made
    x = np.zeros((2, 3))
    first = make(x, 2, "reflect", (1, 1), None)
    assert make(np.ones((3, 2)).T, 2, "reflect", (1, 1), None) is first
    assert make(x[:1], 2, "reflect", (1, 1), None) is not first
    assert make(x.astype("f4"), 2, "reflect", (1, 1), None) is not first
    assert len(calls) == 3


@pytest.mark.parametrize("others", [(2.0,), (True,), ((2,),), ("2",), (None,), (np.int64(2),)])
def test_an_equal_option_of_another_type_is_another(others, made):
    make, calls = made
    x = np.zeros(1)
    assert make(x, 2, (0, 0)) is not make(x, *others, (0, 0))
    assert make(x, 1, (1, 1)) is not make(x, 1, (1, True))
    assert make(x, 0.0) is not make(x, -0.0)
    assert len(calls) == 6


def test_an_option_that_may_change_is_looked_at_anew(made):
    make, calls = made
    size = convcore.tensor(2)
    for _ in range(2):
        make(np.zeros(1), size)
        make(np.zeros(1), {2: 2})
    assert len(calls) == 4


def test_no_more_is_kept_than_the_limit(made, monkeypatch):
    make, calls = made
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    for size in (1, 2, 3, 3, 1):
        make(np.zeros(size))
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("layer", "maker"),
    [
        (lambda x: F.pad(x, (1, 1), "reflect"), padding._padding),
        (lambda x: F.avg_pool1d(x, 3), pooling._means),
        (lambda x: F.max_pool1d(x, 3), pooling._maxima),
        (lambda x: F.interpolate(x, size=x.shape[2] - 1, mode="linear"), interpolation._resizing),
    ],
)
def test_the_tables_of_long_lines_are_not_kept(layer, maker):
    bytes_of = []
    for length in (64, 12_000):
        maker.cache_clear()
        layer(convcore.ones(1, 1, length))
        held = [part for made in maker.kept.values() for part in made]
        bytes_of.append(sum(getattr(part, "table_bytes", 0) for part in held))
    assert bytes_of[0] > 0 and bytes_of[1] == 0


def test_layers_check_their_options_after_a_like_call_too():
    x = convcore.ones(1, 1, 4, 4)
    F.avg_pool2d(x, 2), F.max_pool2d(x, 2), F.pad(x, (1, 1)), F.interpolate(x, (2, 2))
    for wrong in (
        lambda: F.avg_pool2d(x, 2.0),
        lambda: F.max_pool2d(x, (2.0, 2)),
        lambda: F.pad(x, (1.0, 1)),
        lambda: F.interpolate(x, (2.0, 2)),
    ):
        with pytest.raises(TypeError):
            wrong()
    below, above = (F.pad(x, (1, 0), value=zero).numpy() for zero in (-0.0, 0.0))
    assert np.signbit(below).any() and not np.signbit(above).any()


def test_a_pad_by_a_value_has_a_gradient_without_it():
    x = convcore.ones(1, 2, requires_grad=True)
    (first,) = convcore.autograd.grad(
        (F.pad(x, (1, 1), value=3.0) ** 3).sum(), x, create_graph=True
    )
    assert first.tolist() == [[3.0, 3.0]]
    (second,) = convcore.autograd.grad(first.sum(), x, create_graph=True)
    assert second.tolist() == [[6.0, 6.0]]
