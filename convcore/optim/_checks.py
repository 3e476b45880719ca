"""Type checks of the options of optimizers and schedulers."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor

_REAL = (int, float, np.integer, np.floating)


def check_numbers(**options: Any) -> None:
    """Raise TypeError for the first option that is neither a real number nor a tensor."""
    for name, value in options.items():
        if not isinstance(value, (*_REAL, Tensor)):
            raise TypeError(f"{name} must be a number, got {value!r}")
