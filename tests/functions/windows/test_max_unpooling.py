"""Max unpooling beside PyTorch's: values, gradients, errors and modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from against_torch import agree, same_error
from hypothesis import given
from hypothesis import strategies as st
from pools import SOME, cases

import convcore
from convcore import engine


@SOME
@given(case=cases(dtypes=("float32", "float64")), more=st.integers(0, 1))
def test_max_unpool_is_pytorchs(case, more, seed, torch):
    if case.n == 0 or any(p > k // 2 for p, k in zip(case.padding, case.kernel, strict=True)):
        return
    x = case.numbers(seed)
    steps = {k: v for k, v in case.max_steps.items() if k != "ceil_mode"}
    _, indices = engine.max_pool(x, case.kernel, **steps)
    if indices.size == 0 or (indices < 0).any():
        return
    flat = case.batch(indices).reshape(*case.batch(indices).shape[:2], -1)
    if any(len(set(plane)) < plane.size for image in flat for plane in image):
        return  # of several elements at one place, it is chance that says which PyTorch takes
    values = np.random.default_rng(seed).standard_normal(indices.shape).astype(case.dtype)
    name = f"max_unpool{case.rank}d"
    size, stride = list(case.sizes), case.stride
    usual = zip(indices.shape[-case.rank :], stride, case.kernel, case.padding, strict=True)
    if not more and min((n - 1) * s + k - 2 * p for n, s, k, p in usual) < 1:
        return  # nothing to put the elements into
    steps = {"stride": stride, "padding": case.padding, "output_size": size if more else None}
    agree_or_fail_alike(
        torch,
        lambda lib, v: getattr(lib.nn.functional, name)(
            v, lib.from_numpy(np.array(indices)), case.kernel, **steps
        ),
        values,
    )


def agree_or_fail_alike(torch: Any, function: Any, *arrays: np.ndarray) -> None:
    """Check that both libraries give the same, or raise the same."""
    try:
        function(torch, *map(torch.from_numpy, arrays))
    except (RuntimeError, ValueError) as error:
        with pytest.raises(type(error)):
            function(convcore, *map(convcore.from_numpy, arrays))
    else:
        agree(torch, function, *arrays)


@pytest.mark.parametrize(
    "call",
    [
        lambda F, v, i: F.max_unpool2d(v, i, 2, output_size=(8, 9)),
        lambda F, v, i: F.max_unpool2d(v, i, 2, output_size=(8,)),
        lambda F, v, i: F.max_unpool2d(v, i[:1], 2, output_size=(4, 5)),
        lambda F, v, i: F.max_unpool2d(v, i.int(), 2, output_size=(4, 5)),
        lambda F, v, i: F.max_unpool2d(v[0, 0], i[0, 0], 2),
        lambda F, v, i: F.max_unpool2d(v.int(), i, 2, output_size=(4, 5)),
    ],
)
def test_max_unpool_raises_pytorchs_errors(call, torch, rng):
    x = rng.standard_normal((2, 3, 4, 5))

    def function(lib, x):
        pooled = lib.nn.functional.max_pool2d(x, 2, return_indices=True)
        return call(lib.nn.functional, *pooled)

    same_error(torch, function, x)


@pytest.mark.parametrize("shift", [100, -100])
def test_max_unpool_refuses_indices_beyond_their_planes(shift, rng):
    F = convcore.nn.functional
    x = convcore.from_numpy(rng.standard_normal((2, 3, 4, 5)))
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    with pytest.raises(RuntimeError, match=r"Found an invalid max index: .*of size 4x5"):
        F.max_unpool2d(values, indices + shift, 2, output_size=(4, 5))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("channels_last", [False, True])
def test_the_value_that_stays_alone_has_a_gradient(rank, channels_last, rng):
    """Unlike PyTorch, which gives each value of a repeated index the gradient of the place."""
    outs = (3,) * rank  # put into planes of 2 pixels an axis
    values = convcore.from_numpy(rng.standard_normal((2, 3, *outs)))
    indices = convcore.from_numpy(rng.integers(0, 2**rank, (2, 3, *outs)))
    if channels_last and rank == 2:
        values = values.contiguous(memory_format=convcore.channels_last)
    unpool = getattr(convcore.nn.functional, f"max_unpool{rank}d")

    def placed(x):
        return unpool(x, indices, 2, stride=1, padding=1)

    assert convcore.autograd.gradcheck(placed, values.requires_grad_())
    assert convcore.autograd.gradgradcheck(placed, values)


def test_max_unpool_modules_are_pytorchs(torch, rng):
    x = rng.standard_normal((2, 3, 8, 8, 8))
    for rank in (1, 2, 3):
        make = lambda nn, rank=rank: getattr(nn, f"MaxUnpool{rank}d")(2)  # noqa: E731
        assert str(make(convcore.nn)) == str(make(torch.nn))
        image = x[(0,) * (3 - rank)]

        def through(lib, x, rank=rank, make=make):
            pool = getattr(lib.nn, f"MaxPool{rank}d")(2, return_indices=True)
            return make(lib.nn)(*pool(x))

        agree(torch, through, image)
