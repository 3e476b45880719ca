"""Cross products beside PyTorch's."""

from __future__ import annotations

import numpy as np
from against_torch import agree, same_error


def test_agree_with_pytorch(torch, rng):
    a, b = rng.normal(size=(2, 3, 3))
    agree(torch, lambda m, a, b: m.linalg.cross(a, b), a, b)
    agree(torch, lambda m, a, b: m.linalg.cross(a, b[:1], dim=-1), a, b)


def test_errors_are_pytorchs(torch):
    a = np.ones((2, 2))
    same_error(torch, lambda m, a: m.linalg.cross(a, a), a)
    same_error(torch, lambda m, a: m.linalg.cross(a, a[0]), a)
