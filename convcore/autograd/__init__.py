"""Automatic differentiation: the graph, the backward pass, hooks, and custom functions.

How a backward pass runs:

Recording (node.py).  An operation computes its result and calls `record`, which makes a `Node` if
grad mode (grad_mode.py) is on and an input requires grad.  The node has the operation's backward
function, its saved tensors, and in ``next_functions`` an edge (node, output number) to the producer
of each input.  The result's ``grad_fn`` is the node.  A leaf's edge leads to its `AccumulateGrad`.
Operations of the user's own (function.py) make the same nodes.

Traversal (traversal.py).  `backward` and `grad` (differentiate.py) check the roots and start a
`Traversal`.  It counts the edges into each reachable node; a node is ready once all nodes that use
its outputs have run, and gradients that arrive for the same output are summed.  Of the ready nodes
the newest runs first, and leaves run before all others.  There is no recursion.  `grad` and
``inputs=`` run only the nodes between the roots and what is asked for.

Hooks fire for each node in this order, all of them from traversal.py:

1. tensor hooks, ``Tensor.register_hook`` (hooks.py), when the gradient of that output is complete;
   ``retain_grad`` then stores what they leave
2. node pre-hooks, ``Node.register_prehook``, on the gradients of all outputs
3. the backward function; at a leaf instead the sum into ``.grad``, and after it the leaf's
   ``register_post_accumulate_grad_hook`` (hooks.py)
4. node hooks, ``Node.register_hook``, on the gradients of inputs and outputs

A module's full backward hooks fire from node hooks (4) of two identity nodes: its pre-hooks from
the one at its outputs, its hooks from the one at its inputs.  nn/modules/_boundary.py has them.

Saved tensors (saved.py) are stored with the version of their memory, which in-place operations
increase; backward raises if it has changed.  They are freed after their node has run, unless
``retain_graph``.  views.py gives views and their bases new nodes after in-place operations;
region.py computes which elements of a base a view covers.  Neither calls hooks.

Double backward: with ``create_graph`` the pass runs with grad mode on.  Backward functions are made
of differentiable functions, so they record nodes themselves.

Observation (observation.py): a callback sees every operation that a thread records, for tools that
look inside.

Also: functional.py (Jacobians, Hessians), gradcheck.py (finite differences), anomaly_mode.py.
"""

from typing import Any

from convcore._errors import names as _names
from convcore._tensor import Tensor
from convcore.autograd import anomaly_mode, function, functional, grad_mode, graph
from convcore.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from convcore.autograd.differentiate import backward, grad
from convcore.autograd.function import Function
from convcore.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from convcore.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from convcore.autograd.saved import SavedTensor

__all__ = [
    "Function",
    "GradcheckError",
    "SavedTensor",
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
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """PyTorch's older constructor of a leaf: ``Variable(t, requires_grad)`` shares ``t``'s memory.

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


_names.explain_names(__name__)
