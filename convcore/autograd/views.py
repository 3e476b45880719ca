"""Views and in-place operations in the graph.

A view refers to its base.  An in-place operation on a view changes the base too, so the base gets a
new ``grad_fn``, CopySlices: the elements inside the view come from the operation, the others from
the old base.  Every other view of that base is stale then: when its ``grad_fn`` is next read, it
becomes AsStridedBackward0, the view's region of the new base.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor, dtypes, wrap
from convcore._tensor.dtype_names import scalar_name
from convcore._tensor.meta import MetaArray
from convcore._tensor.recording import Unversioned
from convcore.autograd.grad_mode import enable_grad, mode
from convcore.autograd.node import (
    AccumulateGrad,
    Node,
    needs_history,
    next_number,
    node_classes,
    record,
)
from convcore.autograd.region import Region
from convcore.autograd.saved import written_into
from convcore.engine.runtime.storages import may_overlap, span_of

_new = object.__new__

_INFERENCE = "inference_mode"


class View:
    """A view's reference to its base, and what decides whether its ``grad_fn`` is stale."""

    __slots__ = ("base", "base_fn", "made_by", "one_of_many", "recorded")

    base: Tensor
    base_fn: Node | None  # the base's grad_fn when the view got its own
    made_by: str | None  # the name of the custom Function that returned the view, or _INFERENCE
    one_of_many: bool  # whether a function that returns several views made it, or what it views
    recorded: bool  # whether grad mode was on

    def stale(self) -> bool:
        """Return whether the base has another ``grad_fn`` since."""
        return self.base_fn is not self.base._grad_fn

    def refresh(self, tensor: Tensor) -> None:
        """Set the ``grad_fn`` of ``tensor``, this view, to a region of the changed base.

        Raises
        ------
        RuntimeError
            The function that made the view does not allow it: see `refusal`.
        """
        refused = self.base._requires_grad
        if self.recorded:
            of_many = self.one_of_many and (refused or tensor._requires_grad)
            refused = self.made_by is not None or of_many
        if refused:
            raise RuntimeError(
                self.refusal(tensor, "its base or another view of its base has been")
            )
        if self.recorded and self.base._requires_grad:
            region = Region(self.base._array, tensor._array)
            part = wrap(tensor._array)
            with enable_grad():
                record(
                    "AsStridedBackward0",
                    (self.base,),
                    part,
                    lambda needs, grad: region.whole_of(grad),
                )
            _set(tensor, part._grad_fn, 0)
        elif self.recorded:
            _forget(tensor)
        self.base_fn = self.base._grad_fn

    def refusal(self, tensor: Tensor, change: str) -> str:
        """Return the message of why a change in place of this view, ``tensor``, is refused."""
        node, maker = tensor._grad_fn, self.made_by
        inference = maker is _INFERENCE
        if inference or (maker is None and not self.recorded):
            made, where = ("inference", "in normal") if inference else ("no_grad", "with grad")
            enabled = "" if inference else " enabled"
            return (
                f"A view was created in {made} mode and {change} modified inplace {where} "
                f"mode{enabled}. {_MADE_WITHOUT_GRAD}"
            )
        if maker is None:
            maker = "a function" if node is None else re.sub(r"Backward\d*$", "", node.name())
        of_many = self.one_of_many or (node is not None and node._outputs > 1)
        return (
            f"Output {tensor._output_nr} of {maker} is a view and {change} modified inplace. "
            f"{_ONE_OF_MANY if of_many else _IN_FUNCTION}"
        )


def _attach(tensor: Tensor, x: Tensor) -> None:
    """Make ``tensor`` a view of ``x``, and so of x's base."""
    link = _new(View)
    parent = x._view
    if parent is None:
        link.base = x
        link.recorded = mode.enabled
        link.one_of_many = False
    else:
        link.base = parent.base
        link.recorded = mode.enabled and parent.recorded
        link.one_of_many = parent.one_of_many
    link.base_fn = link.base._grad_fn
    link.made_by = _INFERENCE if mode.inference else None
    if not mode.enabled and x._requires_grad and x._counter.__class__ is not Unversioned:
        # As in PyTorch, a leaf of its own.
        tensor._requires_grad = tensor._array.dtype.kind in dtypes.INEXACT
    tensor._view = link
    tensor._counter = x._counter


def view(x: Tensor, array: np.ndarray, name: str, backward: Callable) -> Tensor:
    """Return a view of ``x``.

    Parameters
    ----------
    x : Tensor
    array : ndarray
        The view of x's array, sharing its memory.
    name, backward
        As for `convcore.autograd.node.record`; nothing can be saved.
    """
    out = wrap(array)
    _attach(out, x)
    record(name, (x,), out, backward)
    return out


def views(
    x: Tensor, arrays: Sequence[np.ndarray], name: str, backward: Callable
) -> tuple[Tensor, ...]:
    """Return several views of ``x`` that are outputs of one node.

    Parameters
    ----------
    arrays : one ndarray a view, as for `view`
    name, backward
        Of the node; its backward gets a tuple of gradients.
    """
    outs = tuple([wrap(array) for array in arrays])
    for out in outs:
        _attach(out, x)
        out._view.one_of_many = True
    record(name, (x,), outs, backward)
    return outs


def alias(x: Tensor, name: str = "AliasBackward0", backward: Callable | None = None) -> Tensor:
    """Return a view of all of ``x``, with a node of its own."""
    return view(x, x._array.view(), name, backward or _pass_on)


class _Aliases(Node):
    """The node of `aliases`: its backward is called even if no gradient arrives."""

    __slots__ = ()

    def run(self, grads: list, needs: tuple[bool, ...]) -> tuple:
        return self._backward(needs, tuple(grads))


def own(x: Tensor) -> Tensor:
    """Make a view a tensor of its own, where nobody else has what it is a view of; return it.

    For functions that reshape their result at the end, which PyTorch's make in one piece: hooks on
    a view do not see what it was before a change in place.
    """
    x._view = None
    return x


def aliases(xs: tuple[Tensor, ...], name: str, backward: Callable) -> tuple[Tensor, ...]:
    """Return a view of all of each tensor; the views are outputs of one node.

    ``backward(needs, grads)`` gets a tuple of one gradient or None for each tensor, also if all are
    None.
    """
    node_classes.make(name, _Aliases)
    outs = tuple([wrap(x._array.view()) for x in xs])
    for out, x in zip(outs, xs, strict=True):
        _attach(out, x)
    record(name, xs, outs, backward)
    return outs


def _pass_on(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
    return grad


def inplace(x: Tensor, function: Callable, *args: Any, **kwargs: Any) -> Tensor:
    """In-place operation: give ``x`` value and ``grad_fn`` of ``function(x, *args, **kwargs)``.

    Raises
    ------
    RuntimeError
        x is a leaf that requires grad, or a view of one; its elements overlap in memory; the
        result has another shape, or a dtype that cannot be cast to that of x.
    """
    check_writable(x)
    if isinstance(x._array, MetaArray):  # of what is written nothing is kept
        return x
    check_apart(x, *args, *kwargs.values())
    old = _stand_in(x) if needs_history(x, *args, *kwargs.values()) else x
    if mode.saved_hooks and old is not x:  # a hook may store the tensor itself
        old._array = x._array.copy(order="K")
    mark = next_number()
    result = function(old, *args, **kwargs)
    _check_result(x, result)
    check_writable(x, result)
    if old is not x:
        if _saved(result._grad_fn, old, mark):
            old._array = x._array.copy(order="K")
        else:
            old._counter[0] += 1  # a saved view of it would see the new values
    x._array[...] = result._array
    x._counter[0] += 1
    take_history(x, result)
    return x


def write(
    x: Tensor,
    change: Callable[[np.ndarray], Any],
    name: str,
    inputs: tuple,
    backward: Callable,
    saved: tuple = (),
) -> Tensor:
    """In-place operation by ``change(array)`` on the memory of ``x``, recorded as a node.

    ``x`` stands for its old value among ``inputs``, and for its new value among ``saved``; the rest
    is as for `record`.
    """
    check_writable(x, *inputs)
    if isinstance(x._array, MetaArray):
        return x
    check_apart(x, *inputs)
    recorded = x._array.dtype.kind in dtypes.INEXACT and needs_history(x, *inputs)
    if recorded:
        before = _stand_in(x)
        inputs = tuple([before if tensor is x else tensor for tensor in inputs])
    version = x._counter[0] + 1  # before the change, after which nothing may fail
    change(x._array)
    x._counter[0] = version
    if recorded:
        after = wrap(x._array)
        after._counter = x._counter
        saved = tuple([after if tensor is x else tensor for tensor in saved])
        record(name, inputs, after, backward, saved)
        take_history(x, after)
    return x


def _stand_in(x: Tensor) -> Tensor:
    """Return a tensor with the memory and the present ``grad_fn`` of ``x``."""
    old = wrap(x._array)
    old._grad_fn, old._output_nr, old._requires_grad = x.grad_fn, x._output_nr, x._requires_grad
    link = x._view
    if link is not None and link.made_by is None and _is_hooked(old._grad_fn):
        link.refresh(old)  # as in PyTorch, the node whose hooks those are is left out of the graph
    return old


def _is_hooked(node: Node | None) -> bool:
    return node is not None and node.has_hooks() and not isinstance(node, _Aliases)


def check_writable(x: Tensor, *others: Any) -> None:
    """Raise RuntimeError if changing ``x`` in place would give wrong values or gradients.

    ``others`` are the tensors that its new value is computed from.
    """
    array = x._array
    if isinstance(array, MetaArray):
        return
    if 0 in array.strides and may_overlap(array):
        raise RuntimeError(_SHARED_ELEMENTS)
    if x._counter.__class__ is Unversioned and not mode.inference:
        raise RuntimeError(_NOT_OUTSIDE)
    if not array.flags.writeable:
        raise RuntimeError(
            "the tensor shares memory that NumPy holds read-only; clone() it before it is changed"
        )
    if not mode.enabled:
        return
    link = x._view
    if x.requires_grad and x._grad_fn is None and (link is None or link.recorded):
        raise hinted(
            RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            ),
            hints.LEAF_IN_PLACE,
        )
    if link is None:
        return
    base = link.base
    if link.recorded:
        refused = link.one_of_many and needs_history(x, *others)
    else:
        refused = base._requires_grad or needs_history(x, *others)
    if refused:
        raise RuntimeError(link.refusal(x, "is being"))
    # The leaf is the base, or a view of it that was made to require gradients.
    if link.recorded and base._grad_fn is None and (base._requires_grad or x.requires_grad):
        raise hinted(
            RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation."
            ),
            hints.LEAF_IN_PLACE,
        )
    if needs_history(x, *others) and (may_overlap(array) or may_overlap(base._array)):
        raise RuntimeError(_SHARED_ELEMENTS)


def check_apart(x: Tensor, *others: Any) -> None:
    """Raise RuntimeError if ``x``, to be written to, shares a part of its memory with another.

    As in PyTorch only dense tensors are refused.  Elsewhere, and where all is shared, the result is
    right anyway: everything is read before anything is written.
    """
    counter = x._counter  # views of one base have one
    for other in others:
        shared = isinstance(other, Tensor) and other._counter is counter and other is not x
        if shared and other._array.ndim:  # without axes it counts as a number
            _check_not_partly(x._array, other._array)


def _check_not_partly(a: np.ndarray, b: np.ndarray) -> None:
    if not np.may_share_memory(a, b) or not (a.size and b.size):
        return
    ends = [span_of(array) for array in (a, b)]
    for array, (low, high) in zip((a, b), ends, strict=True):
        if high - low != array.nbytes or may_overlap(array):
            return
    if ends[0] != ends[1] or _steps(a) != _steps(b):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor "
            "refer to a single memory location. Please clone() the tensor before performing the "
            "operation."
        )


def _steps(array: np.ndarray) -> list[int]:
    return [step for step, size in zip(array.strides, array.shape, strict=True) if size > 1]


_SHARED_ELEMENTS = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)

_ONE_OF_MANY = (
    "This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)

_NOT_OUTSIDE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone "
    "to get a normal tensor before doing inplace update."
)


_IN_FUNCTION = (
    "This view was created inside a custom Function (or because an input was returned as-is) and "
    "the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function."
)


_MADE_WITHOUT_GRAD = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def check_fits(shape: tuple[int, ...], joint: tuple[int, ...]) -> None:
    """Raise RuntimeError unless a shape stays as it is where it broadcasts with another one."""
    if joint != shape:
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape {list(joint)}"
        )


def _check_result(x: Tensor, result: Tensor) -> None:
    check_fits(x._array.shape, result._array.shape)
    if not dtypes.can_cast(result.dtype, x.dtype):
        names = [scalar_name(t._array.dtype) for t in (result, x)]
        raise RuntimeError(
            f"result type {names[0]} can't be cast to the desired output type {names[1]}"
        )


def _saved(node: Node | None, old: Tensor, mark: int) -> bool:
    """Return whether ``node``, or an ancestor of it newer than ``mark``, saved ``old``."""
    stack = [] if node is None else [node]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if any(type(held) is tuple and held[0] is old for held in node._saved):
            return True
        for parent, _ in node.next_functions:
            if parent is None or parent in seen or isinstance(parent, AccumulateGrad):
                continue
            if parent._sequence > mark:
                seen.add(parent)
                stack.append(parent)
    return False


def take_history(x: Tensor, result: Tensor) -> None:
    """Make ``x``, whose memory holds the result already, an output of the result's node.

    If x is a view, its base gets a new ``grad_fn`` instead, and x becomes a view of the new base.
    """
    if not mode.enabled:
        return
    link = x._view
    if link is not None:
        if result._requires_grad or link.base._requires_grad:
            _rebase(link.base, x, result)
            link.made_by = None  # the result has the Function's part
            link.refresh(x)
            if result._grad_fn is not None:
                written_into(result._grad_fn, x)
    elif result._requires_grad:
        _set(x, result._grad_fn, result._output_nr)
    else:
        _forget(x)


def take_shape(x: Tensor, result: Tensor) -> None:
    """Make ``x``, of the same memory in another shape, an output of the result's node.

    No element has changed: a base of which x is a view keeps its ``grad_fn``.
    """
    if mode.enabled and result._requires_grad:
        _set(x, result._grad_fn, result._output_nr)


def _rebase(base: Tensor, part: Tensor, result: Tensor) -> None:
    """Give a base the node CopySlices after a write into one of its views."""
    region = Region(base._array, part._array)

    def backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
        outside = region.outside(grad) if needs[0] else None
        inside = region.part_of(grad) if needs[1] else None
        return outside, inside

    changed = wrap(base._array)
    record("CopySlices", (base, result), changed, backward)
    _set(base, changed._grad_fn, 0)


def _set(x: Tensor, node: Any, output_nr: int) -> None:
    """Make ``x`` an output of ``node``; `retain_grad` stays in force."""
    old = x._grad_fn
    if old is not None and old is not node and old.retains(x):
        node.hooks().retained[output_nr] = old._hooks.retained.pop(x._output_nr)
    x._grad_fn = node
    x._output_nr = output_nr
    x._requires_grad = True


def _forget(x: Tensor) -> None:
    """Make ``x`` a leaf that requires no gradient."""
    x._grad_fn = None
    x._output_nr = 0
    x._requires_grad = False
