"""Graph nodes and edges, multi-tensor gradient hooks, and what is done with saved tensors."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import mode
from convcore.autograd.hooks import register_multi_grad_hook
from convcore.autograd.node import GradientEdge, Node, accumulator
from convcore.autograd.saved import saved_tensors_hooks
from convcore.engine.runtime.restoring import Calls, restoring

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge of the graph that a tensor's gradient arrives at.

    It stands for the tensor among the ``inputs`` of `grad` and `backward`, and keeps no memory.

    Raises
    ------
    RuntimeError
        The tensor does not require a gradient.
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    node = tensor.grad_fn or accumulator(tensor)
    return GradientEdge(node, tensor._output_nr)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Note that the memory of a tensor, or of several, was changed in place."""
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        one._counter[0] += 1


class save_on_cpu(saved_tensors_hooks):
    """Save tensors for backward in the CPU's memory, where they are anyway."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor, lambda tensor: tensor)


@restoring
def disable_saved_tensors_hooks(error_message: str) -> Iterator[Calls]:
    """Make `saved_tensors_hooks` raise a RuntimeError with a message, as a context manager."""
    if mode.saved_hooks:
        raise RuntimeError(error_message)
    yield ((mode.__setattr__, ("hooks_forbidden", mode.hooks_forbidden)),)
    mode.hooks_forbidden = error_message


class _Copies:
    """The context of `allow_mutation_on_saved_tensors`, which a thread is in once at a time."""

    now = threading.local()

    def clear(self) -> None:
        """Do nothing: the copies are freed with the graph."""


@restoring
def allow_mutation_on_saved_tensors() -> Generator[Calls, None, _Copies]:
    """Allow tensors to be changed in place after they were saved for backward.

    Every tensor that is saved inside this context manager is copied; PyTorch copies those that are
    changed, when they are.

    Raises
    ------
    RuntimeError
        It is nested in itself.
    """
    if getattr(_Copies.now, "open", False):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    hooks = saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor)
    yield (*hooks._back(), (_Copies.now.__setattr__, ("open", False)))
    hooks._enter()
    _Copies.now.open = True
    return _Copies()
