"""What tensors print, compared with PyTorch character by character."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore._tensor import dtypes, printing, wrap

NAMES = [one._name for one in dtypes.ALL]
CASES_A_DTYPE = 300


@pytest.fixture(autouse=True)
def default_options():
    """Every test starts from, and leaves, the default options."""
    yield
    printing.set_printoptions(profile="default")


@pytest.fixture
def both(torch):
    """Set the options here and in PyTorch."""

    def set_both(**options):
        printing.set_printoptions(**options)
        torch.set_printoptions(**options)

    set_both(profile="default")
    yield set_both
    torch.set_printoptions(profile="default")


def magnitudes(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw numbers of one of the kinds that printing tells apart."""
    numbers = rng.standard_normal(shape)
    special = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape)
    some = rng.random(shape) < 0.4
    kinds = (
        lambda: numbers,
        lambda: numbers * 10.0 ** rng.integers(-12, 12),
        lambda: numbers * 10.0 ** rng.integers(-12, 12, shape),
        lambda: numbers * 10.0 ** rng.integers(-300, 300, shape),
        lambda: np.round(numbers * 10.0 ** rng.integers(0, 10)),
        lambda: np.round(numbers * 2),
        lambda: np.where(some, special, numbers),
        lambda: np.where(some, special, np.round(numbers * 5)),
        lambda: np.copysign(0.0, numbers),
        lambda: special,
    )
    return np.asarray(kinds[rng.integers(len(kinds))]())


def array_of(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        numbers = magnitudes(rng, shape)
        if name.startswith("complex"):
            numbers = numbers + 1j * magnitudes(rng, shape)
        elif "int" in name:
            numbers = np.nan_to_num(numbers, posinf=5, neginf=-5).clip(-1e15, 1e15).astype(int)
        return np.asarray(numbers).astype(name)


SHAPES = st.one_of(
    st.lists(st.integers(0, 5), max_size=4),
    st.sampled_from([[2000], [40, 30], [3, 400], [400, 3], [11, 10, 10], [7, 1, 8, 30]]),
)
OPTIONS = st.fixed_dictionaries(
    {
        "precision": st.integers(0, 7),
        "threshold": st.integers(0, 60),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.integers(5, 120),
        "sci_mode": st.sampled_from([None, True, False]),
    }
)


@pytest.mark.parametrize("name", NAMES)
def test_printing_equals_pytorch(torch, both, name, seed):
    @examples(CASES_A_DTYPE)
    @given(st.integers(0, 2**31), SHAPES, st.none() | OPTIONS)
    def holds(draw, shape, options):
        both(profile="default")
        if options:
            both(**options)
        array = array_of(np.random.default_rng([seed, draw]), tuple(shape), name)
        assert str(wrap(array)) == str(torch.from_numpy(array))

    holds()


@pytest.mark.parametrize("profile", ["short", "full", "default"])
def test_printing_profiles_equal_pytorch(torch, both, rng, profile):
    both(profile=profile, precision=3)
    array = rng.standard_normal((12, 100))
    assert str(wrap(array)) == str(torch.from_numpy(array))


def test_printing_after_another_default_dtype(torch):
    arrays = [np.ones(2, name) for name in ("float32", "float64", "complex64", "complex128")]
    dtypes.set_default_dtype(dtypes.float64)
    torch.set_default_dtype(torch.float64)
    try:
        for array in arrays:
            assert str(wrap(array)) == str(torch.from_numpy(array))
            assert str(wrap(array[:0])) == str(torch.from_numpy(array[:0]))
    finally:
        dtypes.set_default_dtype(dtypes.float32)
        torch.set_default_dtype(torch.float32)


def test_printing_of_leaves_that_require_grad(torch, rng):
    for shape in [(), (3,), (2, 2), (9,), (10,), (2, 0), (40, 40)]:
        array = rng.standard_normal(shape).astype(np.float16)
        ours = wrap(array)
        ours._requires_grad = True
        assert str(ours) == str(torch.from_numpy(array).requires_grad_())


def test_printing_of_results_names_the_node():
    result = convcore.arange(3.0, requires_grad=True) * 1
    assert str(result) == "tensor([0., 1., 2.], grad_fn=<MulBackward0>)"


def test_printing_of_subclasses():
    class Image(type(wrap(np.ones(1)))):
        pass

    class Parameter(Image):
        pass

    row = np.ones(2, np.float32)
    assert str(wrap(row, Image)) == "Image([1., 1.])"
    assert str(wrap(row, Parameter)) == "tensor([1., 1.])"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32(1.5), "tensor(1.5000)"),
        (np.float32(1), "tensor(1.)"),
        (np.array([[0.25, -0.75]]), "tensor([[ 0.2500, -0.7500]], dtype=torch.float64)"),
        (np.array([1, -20]), "tensor([  1, -20])"),
        (np.array([True, False]), "tensor([ True, False])"),
        (np.float32([1e-5, 1]), "tensor([1.0000e-05, 1.0000e+00])"),
        (np.float32([-0.0, np.nan]), "tensor([-0., nan])"),
        (np.zeros((0, 3), np.float32), "tensor([], size=(0, 3))"),
        (np.zeros(0, np.int64), "tensor([], dtype=torch.int64)"),
        (np.complex64([1 + 2.5j]), "tensor([1.+2.5000j])"),
        (np.ones((2, 1, 2), np.float32), "tensor([[[1., 1.]],\n\n        [[1., 1.]]])"),
        (np.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    ],
)
def test_printing_without_pytorch(array, text):
    assert str(wrap(np.asarray(array))) == text


def test_printoptions_are_reported():
    before = printing.get_printoptions()
    assert before == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }
    printing.set_printoptions(precision=2, sci_mode=True)
    assert str(wrap(np.float32([12.5]))) == "tensor([1.25e+01])"
    printing.set_printoptions(**before)
    assert str(wrap(np.float32([12.5]))) == "tensor([12.5000])"
    with pytest.raises(ValueError, match="'tiny'"):
        printing.set_printoptions(profile="tiny")


def test_format_of_one_number_is_that_of_the_number():
    assert f"{wrap(np.array(2.5))}" == "2.5"
    assert f"{wrap(np.array(2.5)):.2f}" == "2.50"
    assert f"{wrap(np.array([2.5]))}" == "tensor([2.5000], dtype=torch.float64)"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{wrap(np.array([2.5])):.2f}"
