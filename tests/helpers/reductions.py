"""Functions that make one number of many along axes, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from against_torch import agree
from elements import COMPLEX, REAL, TOLERANCE, drawn
from hypothesis import strategies as st

import convcore
from convcore.autograd import gradcheck, gradgradcheck

SHAPES = st.sampled_from([(), (1,), (5,), (2, 3), (3, 1, 2), (2, 3, 2, 3)])

# In each row some elements are equal.
TIES = np.array([[1.0, 3.0, 3.0, -1.0], [2.0, 2.0, 2.0, 2.0], [-1.0, 0.0, -0.0, 3.0]])


def _dtypes(is_complex: bool, has_float16: bool) -> Any:
    real = REAL if has_float16 else [one for one in REAL if one != "float16"]
    return st.sampled_from(real + COMPLEX * is_complex)


def agree_over_axes(
    torch: Any,
    call: Callable,
    several: bool,
    is_complex: bool,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    keepdim: bool,
    has_float16: bool = True,
) -> None:
    """Compare ``call(lib, x, dim, keepdim)`` over a drawn axis, or over several."""
    dtype = data.draw(_dtypes(is_complex, has_float16))
    rank = max(len(shape), 1)
    one = st.integers(-rank, rank - 1)
    some = st.lists(st.integers(0, rank - 1), min_size=1, unique=True).map(tuple)
    dim = data.draw(one | some if several and shape else one)
    x = drawn(np.random.default_rng(seed), shape, dtype, -2, 2)
    agree(
        torch, lambda m, x: call(m, x, dim, keepdim), x, seed=seed, nodes=1, rtol=TOLERANCE[dtype]
    )


def agree_over_all(
    torch: Any,
    call: Callable,
    is_complex: bool,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    has_float16: bool = True,
) -> None:
    """Compare ``call(lib, x)``."""
    dtype = data.draw(_dtypes(is_complex, has_float16))
    x = drawn(np.random.default_rng(seed), shape, dtype, -2, 2)
    agree(torch, call, x, seed=seed, nodes=1, rtol=TOLERANCE[dtype])


def gradients_are_right(
    call: Callable, is_complex: bool, rng: np.random.Generator, dim: int
) -> None:
    """Compare gradients of both orders with finite differences."""

    def function(x: Any) -> Any:
        out = call(convcore, x, dim, True)
        return out[0] if isinstance(out, tuple) else out

    for dtype in ["float64"] + ["complex128"] * is_complex:
        x = convcore.from_numpy(drawn(rng, (3, 2), dtype, -2, 2)).requires_grad_()
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))
