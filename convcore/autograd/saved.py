"""Saved tensors: version checks, pack and unpack hooks, and freeing after backward.

A tensor is saved with the version of its memory: if an in-place operation has changed it since,
backward raises instead of computing a wrong gradient.  With `saved_tensors_hooks` something else is
stored in its place.
"""

from __future__ import annotations

import contextlib
import re
import weakref
from collections.abc import Callable
from typing import Any

from convcore._errors import hinted, hints
from convcore._tensor import Tensor
from convcore._tensor.dtype_names import scalar_name
from convcore._tensor.recording import Unversioned
from convcore.autograd.grad_mode import mode
from convcore.autograd.leaf import leaf_of
from convcore.engine.runtime._restoring import Restoring

_FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


# As it is here: within blocks that watch functions the method tells of every call.
_detached = Tensor.detach


class _Freed:
    """The place holder for saved tensors that a backward pass has freed."""


FREED = _Freed()


class _Output:
    """A node's own output, saved without its ``grad_fn``: no reference cycle.

    ``view`` is a reference to the view that the node's operation has written into, if it has.  A
    gradient of the output is that view's, whose hooks see it.
    """

    __slots__ = ("output_nr", "tensor", "version", "view")

    def __init__(self, tensor: Tensor):
        self.view: weakref.ref[Tensor] | None = None
        self.tensor = _detached(tensor)
        self.version = tensor._counter[0]
        self.output_nr = tensor._output_nr

    def unpack(self, node: Any) -> Tensor:
        if self.tensor._counter[0] != self.version:
            raise _modified(self.tensor, node, self.output_nr, self.version)
        tensor = _detached(self.tensor)
        view = None if self.view is None else self.view()
        maker = None if view is None else view.grad_fn
        if view is not None and maker is not None:
            tensor._grad_fn, tensor._output_nr = maker, view._output_nr
        else:
            tensor._grad_fn, tensor._output_nr = node, self.output_nr
        tensor._requires_grad = True
        return tensor


class _Packed:
    """The result of a pack hook, and the place in the graph of the tensor that it stands for."""

    __slots__ = (
        *("leaf", "like", "maker", "output_nr", "own", "packed", "requires_grad", "unpack_hook"),
    )

    def __init__(self, tensor: Tensor, node: Any, pack: Callable, unpack_hook: Callable):
        self.own = tensor._grad_fn is node
        self.maker = None if self.own else tensor._grad_fn
        self.output_nr = tensor._output_nr
        self.requires_grad = tensor._requires_grad
        self.leaf = _leaf(tensor)
        self.like = tensor._array.shape, tensor._array.dtype
        self.unpack_hook = unpack_hook
        version = tensor._counter[0]
        # Not a context manager, which Ctrl-C may end before it has put anything back.
        recording = mode.enabled
        try:
            mode.enabled = False
            self.packed = pack(_detached(tensor))
        finally:
            mode.enabled = recording
        if tensor._counter[0] != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook can not be modified by in-place operations as this can lead to "
                "unexpected side-effects."
            )

    def unpack(self, node: Any) -> Tensor:
        value = self.unpack_hook(self.packed)
        if not isinstance(value, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(value).__name__}"
            )
        shape, dtype = self.like
        if value._array.shape != shape or value._array.dtype != dtype:
            raise RuntimeError(
                "saved_tensors_hooks: unpack_hook must return the shape and dtype of the saved "
                f"tensor, {list(shape)} and {scalar_name(dtype)}, got "
                f"{list(value._array.shape)} and {scalar_name(value._array.dtype)}"
            )
        tensor = _detached(value)
        tensor._grad_fn = node if self.own else self.maker
        tensor._output_nr = self.output_nr
        tensor._requires_grad = self.requires_grad
        tensor._leaf = self.leaf
        return tensor


def saves_output(held: Any) -> bool:
    """Return whether what a node saved is an output of its own."""
    return isinstance(held, _Output) or (isinstance(held, _Packed) and held.own)


def written_into(node: Any, view: Tensor) -> None:
    """Note that a view holds the output of a node from now on."""
    for held in node._saved:
        if held.__class__ is _Output:
            held.view = weakref.ref(view)


def save(node: Any, tensors: tuple) -> tuple:
    """Return the saved form of a node's tensors; its outputs have their ``grad_fn`` already."""
    if mode.saved_hooks:
        hooks = mode.saved_hooks[-1]
        pair = hooks.pack_hook, hooks.unpack_hook
        return tuple([_Packed(t, node, *pair) if isinstance(t, Tensor) else t for t in tensors])
    saved: list = []
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            saved.append(tensor)
        elif tensor._grad_fn is node:
            saved.append(_Output(tensor))
        elif tensor._counter.__class__ is Unversioned:
            raise RuntimeError(_INFERENCE)
        elif tensor._view is not None:
            same = _without_base(tensor)
            saved.append((same, tensor._counter[0], same._grad_fn))
        else:
            saved.append((tensor, tensor._counter[0], tensor._grad_fn))
    return tuple(saved)


_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
    "inference mode in computation tracked by autograd. To work around this, you can make a clone "
    "to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
    "`torch.inference_mode()`."
)

_DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is "
    "not supported, please use out-of-place `.detach()` instead"
)


def _without_base(tensor: Tensor) -> Tensor:
    """Return a view without the reference to its base, whose graph may refer to the view."""
    same = _detached(tensor)
    same._grad_fn = tensor.grad_fn
    same._output_nr, same._requires_grad = tensor._output_nr, tensor._requires_grad
    same._leaf = _leaf(tensor)
    return same


def _leaf(tensor: Tensor) -> Any:
    """Return the `Leaf` that makes a stand-in for a leaf lead to its gradient; else None."""
    return leaf_of(tensor) if tensor._requires_grad and tensor._grad_fn is None else None


def unpack(node: Any) -> tuple:
    """Return a node's saved tensors.

    Raises
    ------
    RuntimeError
        They were freed by an earlier pass, or one was changed in place.
    """
    if node is None or node._saved is FREED:  # None if a ctx has outlived the graph
        raise RuntimeError(_FREED_MESSAGE)
    tensors: list = []
    for held in node._saved:
        if type(held) is tuple:
            tensor, version, maker = held
            if tensor._counter[0] != version:
                raise _modified(tensor, tensor.grad_fn, tensor._output_nr, version)
            if maker is not tensor._grad_fn is None:
                raise RuntimeError(_DETACHED)
            tensors.append(tensor)
        else:
            own = isinstance(held, _Output | _Packed)
            tensors.append(held.unpack(node) if own else held)
    return tuple(tensors)


def _modified(tensor: Tensor, maker: Any, output_nr: int, version: int) -> RuntimeError:
    name = "" if maker is None else re.sub(r"Backward\d*$", "", maker.name())
    origin = f", which is output {output_nr} of {name}," if name else ""
    error = RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{tensor.type()} {list(tensor.shape)}]{origin} is at version "
        f"{tensor._counter[0]}; expected version {version} instead. Hint: enable anomaly detection "
        "to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    return hinted(error, hints.MODIFIED)


class saved_tensors_hooks(Restoring):
    """Pass every tensor that is saved for backward through a pair of hooks, as a context manager.

    Parameters
    ----------
    pack_hook : callable(Tensor) -> object
        Called when a tensor is saved; its result is stored instead.  It must not change the tensor
        in place.
    unpack_hook : callable(object) -> Tensor
        Returns the tensor when backward needs it.

    Notes
    -----
    Only the innermost pair is used.  Python numbers are never packed.

    Examples
    --------
    >>> import convcore
    >>> from convcore.autograd.graph import saved_tensors_hooks
    >>> x = convcore.ones(2, requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.tolist(), convcore.tensor):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def _back(self) -> tuple:
        if mode.hooks_forbidden is not None:
            raise RuntimeError(mode.hooks_forbidden)
        return ((mode.__setattr__, ("saved_hooks", mode.saved_hooks)),)

    def _enter(self) -> None:
        mode.saved_hooks = (*mode.saved_hooks, self)


class SavedTensor:
    """One of the tensors that a node saved: an attribute of the node beginning with _raw_saved."""

    _node: Any
    _place: int  # of the tensor in what the node saved

    def __init__(self, *args: Any) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def of(cls, node: Any, place: int) -> SavedTensor:
        """Return the tensor that a node saved at a place."""
        saved = object.__new__(cls)
        saved._node, saved._place = node, place
        return saved

    def register_hooks(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        """Store what a hook makes of the tensor, as `saved_tensors_hooks` would have done.

        Raises
        ------
        RuntimeError
            The tensor has hooks already, is None, or was freed by a backward pass.
        """
        saved, place = self._node._saved, self._place
        if saved is FREED:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. "
                + _FREED_MESSAGE
            )
        if isinstance(saved[place], _Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        tensor = unpack(self._node)[place]
        if not isinstance(tensor, Tensor):
            raise RuntimeError(
                f"Calling register_hooks on a saved tensor with value {tensor} is forbidden"
            )
        packed = _Packed(tensor, self._node, pack_hook, unpack_hook)
        self._node._saved = (*saved[:place], packed, *saved[place + 1 :])


def leave_hooks(count: int) -> None:
    """Leave the `saved_tensors_hooks` of this thread beyond the first ``count``."""
    for context in reversed(mode.saved_hooks[count:]):
        with contextlib.suppress(RuntimeError):  # it has been left in another order
            context.__exit__()
    mode.saved_hooks = mode.saved_hooks[:count]
