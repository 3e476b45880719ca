"""Axes named by `dim`, and sums over them: what is meant, what is refused, how exactly it adds."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import SEEDS
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.functions._support.axes import axes, total_of, with_numpy_names, wrap_dim


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_axes_count_from_either_end(rank):
    for dim in range(rank):
        assert wrap_dim(dim, rank) == wrap_dim(dim - rank, rank) == dim
        assert wrap_dim(np.int64(dim), rank) == dim
    for dim in (rank, -rank - 1):
        with pytest.raises(IndexError, match=rf"range of \[-{rank}, {rank - 1}\], but got {dim}\)"):
            wrap_dim(dim, rank)


def test_a_number_has_one_axis_to_name_and_none_to_sum_over():
    assert wrap_dim(0, 0) == wrap_dim(-1, 0) == 0
    assert axes(0, 0) == axes(None, 0) == ()
    with pytest.raises(IndexError, match=r"\[-1, 0\], but got 1"):
        wrap_dim(1, 0)


@pytest.mark.parametrize("dim", [1.0, "0", None, (0,)])
def test_an_axis_that_is_no_int_is_refused(dim):
    with pytest.raises(TypeError, match=f"'dim' must be int, not {type(dim).__name__}"):
        wrap_dim(dim, 3)


def test_none_and_no_axes_mean_all_of_them():
    assert axes(None, 3) == axes((), 3) == axes([], 3) == (0, 1, 2)
    assert axes(-1, 3) == (2,)
    assert axes((-1, 0), 3) == (2, 0)


@pytest.mark.parametrize("dim", [(0, 0), (1, -2), (0, 1, -3)])
def test_an_axis_that_is_named_twice_is_refused_as_by_pytorch(torch, dim):
    same_error(torch, lambda m, x: x.sum(dim), np.ones((2, 3, 4)))


@examples(30)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.booleans(), st.data(), SEEDS)
def test_gradient_of_a_sum_is_its_adjoint(shape, keepdim, data, seed):
    """<sum(x), g> = <x, gradient(g)>, for whole numbers to the last bit."""
    over = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    rng = np.random.default_rng(seed)
    x = convcore.from_numpy(rng.integers(-9, 9, shape).astype("f8")).requires_grad_()
    y = x.sum(over, keepdim)
    g = convcore.from_numpy(np.asarray(rng.integers(-9, 9, tuple(y.shape)), "f8"))
    (grad,) = convcore.autograd.grad(y, x, g)
    assert grad.shape == x.shape
    assert (y * g).sum().item() == (x * grad).sum().item()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_long_sums_are_rounded_once_in_the_dtype_of_the_array(rng, dtype, step, order):
    """Added one after another, ones are lost in float16 from 4096 on; gaps leave it to NumPy."""
    size = 6000 if dtype == "float16" else 100_000
    x = np.asarray(1 + rng.random((size, 6)), dtype, order=order)[:, ::step]
    exact = x.sum(0, dtype="complex128" if dtype == "complex64" else "float64")
    total = total_of(x, (0,), keepdims=True)
    assert (total.dtype, total.shape) == (x.dtype, (1, 6 // step))
    np.testing.assert_allclose(total[0], exact, rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_sums_of_whole_numbers_stay_in_their_dtype(dtype):
    assert total_of(np.ones((4, 2), dtype), (0,), False).dtype == dtype


def test_numpys_functions_reduce_a_tensor_by_its_methods(torch):
    x = convcore.arange(6.0).reshape(2, 3)
    assert np.sum(x, axis=0).tolist() == [3, 5, 7]
    agree(torch, lambda m, x: x.sum(axis=1, keepdims=True), np.ones((2, 3)))


def test_numpys_names_of_arguments_are_understood():
    x = convcore.arange(6.0).reshape(2, 3)
    assert x.sum(axis=1, keepdims=True).shape == (2, 1)
    assert convcore.max(x, axis=0).values.tolist() == [3, 4, 5]
    assert x.argmax(axis=1).tolist() == [2, 2]


def test_numpys_names_of_arguments_are_renamed_and_an_out_of_none_is_dropped():
    @with_numpy_names
    def function(input, dim=None, keepdim=False, out=0):
        """What it does."""
        return input, dim, keepdim, out

    assert function(1, axis=2, keepdims=True, out=None) == (1, 2, True, 0)
    assert function(1, 2, out=3) == (1, 2, False, 3)
    assert function.__name__ == "function" and function.__doc__ == "What it does."
