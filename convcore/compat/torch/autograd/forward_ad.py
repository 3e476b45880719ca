"""Forward-mode differentiation, which is not there: no tensor has a tangent.

`convcore.autograd.functional.jvp` computes products with a Jacobian.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from convcore import Tensor
from convcore.compat.inert import stand_in

dual_level, make_dual, enter_dual_level, exit_dual_level = (
    stand_in(f"torch.autograd.forward_ad.{name}")
    for name in ("dual_level", "make_dual", "enter_dual_level", "exit_dual_level")
)
_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent."""

    primal: Tensor
    tangent: Any


def unpack_dual(tensor: Tensor, *, level: Any = None) -> UnpackedDualTensor:
    """Return a tensor, and None for the tangent that it has not."""
    return UnpackedDualTensor(tensor, None)
