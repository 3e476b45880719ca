"""The graph of gradients: recording, the backward pass, hooks, and functions of one's own.

node.py has the nodes and how an operation becomes one, saved.py the tensors that it saves, views.py
views and in-place operations, grad_mode.py the switch, traversal.py the backward pass,
differentiate.py its entrances, hooks.py the hooks on tensors, function.py operations of the user's
own, functional.py Jacobians and Hessians, gradcheck.py the comparison with finite differences,
anomaly_mode.py the search for where NaN came from.  Nothing here knows what an operation computes.
"""

from typing import Any

from convcore._tensor import Tensor
from convcore.autograd import anomaly_mode, function, functional, grad_mode, graph
from convcore.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from convcore.autograd.differentiate import backward, grad
from convcore.autograd.function import Function
from convcore.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from convcore.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """PyTorch's older name of a tensor in a graph: ``Variable(t, requires_grad)`` is ``t``'s data.

    Parameters
    ----------
    data : Tensor
        Shared, not copied.
    requires_grad : bool
    """

    def __new__(  # noqa: D102
        cls, data: Tensor, requires_grad: bool = False, volatile: Any = None
    ) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        tensor = data.detach()
        tensor.requires_grad = requires_grad
        return tensor
