"""Functions that give a tensor another shape, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from against_torch import agree


def complex_or_real(rng: np.random.Generator, shape: tuple, dtype: str) -> np.ndarray:
    """Draw normal numbers, of a complex dtype in both parts."""
    x = rng.normal(size=shape).astype(dtype)
    if x.dtype.kind == "c":
        x.imag = rng.normal(size=shape)
    return x


def agree_of_shapes(
    torch: Any,
    rng: np.random.Generator,
    seed: int,
    function: Callable,
    dtype: str,
    strides: bool,
    nodes: int,
) -> None:
    """Compare a function of a (2, 3, 4) tensor, with strides and nodes as `agree` does."""
    x = complex_or_real(rng, (2, 3, 4), dtype)
    agree(torch, function, x, seed=seed, strides=strides, nodes=nodes)


def agree_of_other_layouts(
    torch: Any, rng: np.random.Generator, seed: int, function: Callable
) -> None:
    """Compare for a slice of a permuted tensor: no axis lies where it does in a new one."""

    def of_part(lib: Any, x: Any) -> Any:
        part = x[:, 1:3].permute(1, 2, 0)
        try:
            return function(lib, part)
        except RuntimeError as error:
            assert "compatible" in str(error)
            return function(lib, part.contiguous())

    agree(torch, of_part, rng.normal(size=(4, 5, 3)), seed=seed)
