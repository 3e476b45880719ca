"""PyTorch's interception of operators below autograd, which is not there."""

from __future__ import annotations

from typing import Any

from convcore.compat.inert import stand_in

TorchDispatchMode = stand_in("torch.utils._python_dispatch.TorchDispatchMode")


def is_traceable_wrapper_subclass(value: Any) -> bool:
    """Return False."""
    return False


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return the result."""
    return out
