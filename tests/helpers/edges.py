"""Functions of elements at special values and of mixed dtypes, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from elements import INTEGER, REAL

import convcore

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 2.5, -2.5, np.inf, -np.inf, np.nan]

# A tensor with axes, one without, and Python's numbers: PyTorch promotes by these groups.
OTHERS = [
    *(np.array([1, 2, 3], d) for d in (*INTEGER, "bool", *REAL)),
    *(np.array(2, d) for d in ("int64", "float64", "bool")),
    *(2, 2.5, True),
]


def agree_at_first_order(torch: Any, function: Callable, *arrays: np.ndarray) -> None:
    """Compare values and gradients for gradients of 1, NaN being equal to NaN."""
    found = []
    for lib in (convcore, torch):
        leaves = [lib.from_numpy(a.copy()) for a in arrays]
        for leaf in leaves:
            if leaf.is_floating_point():
                leaf.requires_grad_()
        out = function(lib, *leaves)
        if out.requires_grad:
            out.sum().backward()
        grads = [None if x.grad is None else x.grad.numpy(force=True) for x in leaves]
        found.append([out.detach().numpy(), *grads])
    for ours, theirs in zip(*found, strict=True):
        if ours is not None and theirs is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-12)
        else:
            assert ours is theirs


def promoted_alike(torch: Any, function: Callable, dtype: str) -> None:
    """Compare results and their dtypes for an operand of ``dtype`` and others of every dtype."""
    x = np.array([3, 1, 2], dtype)
    for y in OTHERS:
        try:
            tensors = [torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in (x, y)]
            expected = function(torch, *tensors).numpy()
        except (RuntimeError, TypeError):  # a dtype that PyTorch refuses here
            continue
        tensors = [convcore.from_numpy(v) if isinstance(v, np.ndarray) else v for v in (x, y)]
        ours = function(convcore, *tensors).numpy()
        assert ours.dtype == expected.dtype, (y, getattr(y, "dtype", None))
        np.testing.assert_allclose(ours, expected, rtol=2e-3, err_msg=f"{y!r}")
