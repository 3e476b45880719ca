"""Named pairs of tensors that functions return."""

from __future__ import annotations

from typing import NamedTuple

from convcore._tensor import Tensor


class Picked(NamedTuple):
    """Elements that were picked by their order, and where they were."""

    values: Tensor
    indices: Tensor


class Extremes(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor
