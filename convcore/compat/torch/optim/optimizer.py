"""The private names of `torch.optim.optimizer` with which packages write optimizers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from convcore import Tensor, is_floating_point, set_grad_enabled


def _use_grad_for_differentiable(func: Callable) -> Callable:
    """Decorate an optimizer's ``step``: it has gradients where the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: Sequence[Tensor | None], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return whether an optimizer is fused, and whether it takes lists: on the CPU it does not."""
    fused = use_fused and not differentiable
    return fused and all(p is None or is_floating_point(p) for p in params), False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the devices on which a step can be captured; none of them is the CPU."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]
