"""Tensor hooks: gradient hooks, retain_grad, post-accumulate hooks, multi-tensor gradient hooks.

Hooks of a leaf live with the leaf, those of any other tensor with the node that produced it.  An
in-place operation makes the tensor another node's output, so its hooks stay with the old value.
traversal.py calls them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from convcore._tensor import Tensor
from convcore.autograd import grad_mode
from convcore.autograd.handle import RemovableHandle, add_hook
from convcore.autograd.leaf import leaf_of
from convcore.autograd.node import accumulator
from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.locks import process_lock
from convcore.engine.runtime.restoring import Calls


def register_hook(tensor: Tensor, hook: Callable) -> RemovableHandle:
    """Call ``hook(grad)`` in each backward pass, once the gradient of the tensor is complete.

    Parameters
    ----------
    hook : callable(Tensor) -> Tensor or None
        A tensor that it returns replaces the gradient; it must have the same shape and dtype.

    Returns
    -------
    RemovableHandle

    Raises
    ------
    RuntimeError
        The tensor does not require a gradient.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = tensor._grad_fn
    hooks = leaf_of(tensor).hooks if node is None else node.tensor_hooks(tensor._output_nr)
    return add_hook(hooks, hook)


def retain_grad(tensor: Tensor) -> None:
    """Store the gradient in ``.grad`` although the tensor is not a leaf.

    Raises
    ------
    RuntimeError
        The tensor does not require a gradient.
    """
    if not tensor.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if tensor._grad_fn is not None:
        retained = tensor._grad_fn.hooks().retained
        retained[tensor._output_nr] = weakref.ref(tensor)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable) -> RemovableHandle:
    """Call ``hook(tensor)`` after each accumulation into a leaf's ``.grad``.

    Raises
    ------
    RuntimeError
        The tensor is not a leaf, or does not require a gradient.
    """
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if tensor._grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return add_hook(leaf_of(tensor).after_accumulate, hook)


class _MultiHandle(Restoring):
    """The handle of all hooks of one `register_multi_grad_hook`; also a context manager."""

    def __init__(self, handles: tuple[RemovableHandle, ...]):
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def _back(self) -> Calls:
        return ((self.remove, ()),)

    def _enter(self) -> _MultiHandle:
        return self


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all"
) -> _MultiHandle:
    """Call ``fn`` once in each backward pass with the gradients of several tensors.

    Parameters
    ----------
    tensors : sequence of Tensors that require grad
    fn : callable
        With mode 'all', ``fn(grads)`` is called when all gradients that this pass computes are
        complete, with None for the others.  With mode 'any', ``fn(grad)`` is called at the first.
    mode : 'all' or 'any'

    Returns
    -------
    a handle whose remove() removes all these hooks

    Raises
    ------
    ValueError
        ``mode`` is something else.

    Notes
    -----
    Passes that run at once in several threads do not mix.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    hook = _CallForAll(tensors, fn) if mode == "all" else _CallForAny(fn)
    return _MultiHandle(
        tuple([register_hook(tensor, hook.of(number)) for number, tensor in enumerate(tensors)])
    )


class _CallForAll:
    """Mode 'all': collects the gradients of each pass and calls when they are complete."""

    def __init__(self, tensors: Sequence[Tensor], fn: Callable):
        self.fn = fn
        # Weakly: the leaves hold this hook, so it must not hold them.
        self.origins = [
            weakref.ref(tensor if tensor.grad_fn is None else tensor.grad_fn) for tensor in tensors
        ]
        self.gathered: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.lock = process_lock()

    def of(self, number: int) -> Callable:
        def hook(grad: Tensor) -> None:
            traversal = grad_mode.mode.traversal
            with self.lock:
                grads = self.gathered.setdefault(traversal, {})
                grads[number] = grad
                complete = len(grads) == sum(map(self._expected, self.origins))
                if complete:
                    del self.gathered[traversal]
            if complete:
                self.fn([grads.get(n) for n in range(len(self.origins))])

        return hook

    @staticmethod
    def _expected(origin: weakref.ref) -> bool:
        target = origin()
        if isinstance(target, Tensor):
            target = accumulator(target)
        return target is not None and grad_mode.mode.traversal.reaches(target)


class _CallForAny:
    """Mode 'any': calls at the first gradient of each pass."""

    def __init__(self, fn: Callable):
        self.fn = fn
        self.called: weakref.WeakSet = weakref.WeakSet()
        self.lock = process_lock()

    def of(self, number: int) -> Callable:
        def hook(grad: Tensor) -> None:
            traversal = grad_mode.mode.traversal
            with self.lock:
                first = traversal not in self.called
                self.called.add(traversal)
            if first:
                self.fn(grad)

        return hook
