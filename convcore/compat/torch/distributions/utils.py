"""The private names of `torch.distributions.utils` that packages use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import convcore
from convcore import Tensor
from convcore.distributions.utils import sum_rightmost as _sum_rightmost  # noqa: F401


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Draw standard normal numbers."""
    return convcore.empty(tuple(shape), dtype=dtype, device=device).normal_()
