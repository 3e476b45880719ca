"""Graph nodes, and `record`, which makes one for an operation.

A node refers to the nodes that produced its inputs (`next_functions`) and computes the gradients of
its inputs from those of its outputs.  A tensor refers to the node that produced it (`grad_fn`): a
result keeps its whole graph alive, and a graph is freed with its results.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from convcore._tensor import Tensor
from convcore._tensor.dtypes import INEXACT
from convcore.autograd.anomaly_mode import anomaly, where_made
from convcore.autograd.grad_mode import mode
from convcore.autograd.handle import RemovableHandle, add_hook
from convcore.autograd.leaf import leaf_of
from convcore.autograd.observation import observe, observers
from convcore.autograd.saved import FREED, SavedTensor, save, unpack
from convcore.engine.runtime.errstate import quiet_copy

_new = object.__new__
next_number = itertools.count(1).__next__

Edge = tuple["Node | None", int]


class Hooks:
    """The hooks of one node, by kind."""

    __slots__ = ("after", "before", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, OrderedDict] = {}  # output number -> tensor hooks
        self.retained: dict[int, weakref.ref] = {}  # output number -> tensor with retain_grad
        self.before: OrderedDict = OrderedDict()  # register_prehook
        self.after: OrderedDict = OrderedDict()  # register_hook


class Node:
    """One recorded operation.

    Attributes
    ----------
    next_functions : tuple of (Node or None, int)
        The edge of each input: the node that produced it, and the number of that output.
    metadata : dict
        For the user's own notes.
    attributes : dict
        The operation's arguments, by name, as far as `describe` was called.
    """

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_backward",
        "_hooks",
        "_likes",
        "_metadata",
        "_needs",
        "_outputs",
        "_saved",
        "_sequence",
        "next_functions",
    )

    _attributes: dict  # unset without `describe`
    _backward: Any  # (needs, grad or grads, *saved) -> gradients of the inputs
    _hooks: Hooks | None  # None while there are none
    _likes: dict[int, tuple]  # output number -> its shape and NumPy dtype; unset while none is read
    _metadata: dict | None
    _needs: tuple[bool, ...]  # for each input, whether it requires a gradient
    _outputs: int  # number of outputs
    _saved: Any  # the saved tensors as autograd/saved.py packed them
    _sequence: int  # increases from node to node: the traversal runs the newest first
    next_functions: tuple[Edge, ...]

    # Whether nothing else refers to the gradients that `run` returns, as `record` demands.
    returns_fresh = True

    def name(self) -> str:
        """Return the name of the operation, such as 'MulBackward0'."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    @property
    def metadata(self) -> dict:
        """A dictionary for the user's own notes."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    @property
    def attributes(self) -> dict:
        """The operation's arguments by name; empty if `describe` was not called."""
        return getattr(self, "_attributes", {})

    def __getattr__(self, name: str) -> Any:
        """Return something that the operation saved, under PyTorch's name of it."""
        if name.startswith(("_saved_", "_raw_saved_")):
            from convcore.autograd.saved_names import attribute_names, raw_names, saved_values

            if name in raw_names(self):
                return SavedTensor.of(self, raw_names(self).index(name))
            if name in attribute_names(self):
                return saved_values(self)[name.removeprefix("_saved_")]
            if self._saved is FREED:
                unpack(self)  # which says so
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        from convcore.autograd.saved_names import attribute_names, raw_names

        return [*object.__dir__(self), *attribute_names(self), *raw_names(self)]

    def note_output(self, tensor: Tensor) -> None:
        """Store shape and dtype of an output whose ``grad_fn`` is read: see `output_like`."""
        like = tensor._array.shape, tensor._array.dtype
        try:
            self._likes[tensor._output_nr] = like
        except AttributeError:
            self._likes = {tensor._output_nr: like}

    def output_like(self, output_nr: int) -> tuple | None:
        """Return shape and NumPy dtype of an output; None if its ``grad_fn`` was never read."""
        return getattr(self, "_likes", {}).get(output_nr)

    def hooks(self) -> Hooks:
        """Return the node's hooks, made at the first call."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_hook(self, fn: Callable) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the node has run.

        A tuple that it returns replaces grad_inputs; it must be as long.
        """
        return add_hook(self.hooks().after, fn)

    def register_prehook(self, fn: Callable) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before the node runs; a tuple that it returns replaces them."""
        return add_hook(self.hooks().before, fn)

    def tensor_hooks(self, output_nr: int) -> OrderedDict:
        """Return the hooks on the gradient of one output, to add to."""
        return self.hooks().tensor.setdefault(output_nr, OrderedDict())

    def hooks_of_output(self, output_nr: int) -> OrderedDict | None:
        """Return the hooks on the gradient of one output, or None."""
        return None if self._hooks is None else self._hooks.tensor.get(output_nr)

    def retains(self, tensor: Tensor) -> bool:
        """Return whether `retain_grad` was called on an output of this node."""
        if self._hooks is None:
            return False
        retained = self._hooks.retained.get(tensor._output_nr)
        return retained is not None and retained() is tensor

    def has_hooks(self) -> bool:
        """Return whether a hook of any kind, or `retain_grad`, may see gradients here."""
        return self._hooks is not None

    def run(self, grads: list, needs: tuple[bool, ...]) -> tuple:
        """Return the gradients of the inputs, given those of the outputs; None stands for zeros."""
        if self._outputs == 1:
            grad = grads[0]
            wanted = grad is not None and True in needs
        else:
            grad = tuple(grads)
            wanted = True in needs and any(one is not None for one in grads)
        if not wanted:
            return (None,) * len(self.next_functions)
        saved = unpack(self) if self._saved else ()
        if self._outputs == 1 and grad._array.dtype.kind == "V":
            # Comparisons of bfloat16 alone warn of NaN.
            results = quiet_copy(self._backward, needs, grad, *saved)
        else:
            results = self._backward(needs, grad, *saved)
        return results if type(results) is tuple else (results,)

    def release(self) -> None:
        """Free the saved tensors; a node that had some cannot run again."""
        if self._saved:
            self._saved = FREED

    if sys.version_info[:2] == (3, 13):
        # Other versions of Python free long chains of objects without deep recursion.  This one
        # recurses 10,000 levels first, which overflows a small thread's stack.
        def __del__(self) -> None:
            take_apart(self)

    def __call__(self, *grads: Tensor | None) -> Any:
        """Run the node and its hooks on gradients of its outputs."""
        if len(grads) != self._outputs:
            raise TypeError(f"expected {self._outputs} arguments, got {len(grads)} instead")
        from convcore.autograd.traversal import run_node

        results = run_node(self, list(grads), self._needs)
        return results[0] if len(results) == 1 else tuple(results)


class _Apart(threading.local):
    """References of nodes that this thread is freeing; None while it frees none."""

    waiting: list | None = None


_apart = _Apart()


def take_apart(node: Node) -> None:
    """Drop a node's references without recursion: nodes freed by that are queued."""
    if not getattr(node, "next_functions", ()):  # unset if an interrupt ended __init__
        return
    # _saved is unset if a saved-tensor pack hook raised.
    held = (node.next_functions, getattr(node, "_saved", None))
    node.next_functions = node._saved = ()
    if _apart.waiting is not None:
        _apart.waiting.append(held)
        return
    try:
        _apart.waiting = [held]
        del held
        while _apart.waiting:
            _apart.waiting.pop()
    finally:
        _apart.waiting = None


class AccumulateGrad(Node):
    """Gradient accumulation into a leaf tensor's ``.grad``: where the graph ends.

    Attributes
    ----------
    variable : Tensor
        The leaf.
    """

    __slots__ = ("variable",)

    variable: Tensor

    # The same for every leaf: each graph makes these nodes anew, so they are kept small.
    next_functions = ()
    _backward = None
    _needs = _saved = ()
    _outputs = 1
    _sequence = 0

    def name(self) -> str:
        """Return PyTorch's name of the node."""
        return "torch::autograd::AccumulateGrad"

    def hooks_of_output(self, output_nr: int) -> OrderedDict | None:
        """Return the leaf's tensor hooks: they live with the tensor, not with this node."""
        leaf = self.variable._leaf
        return None if leaf is None else leaf.hooks

    def has_hooks(self) -> bool:
        """Return whether a hook of any kind may see the gradient here."""
        return self._hooks is not None or bool(self.variable._leaf.hooks)

    def output_like(self, output_nr: int) -> tuple:
        """Return the leaf's shape and NumPy dtype."""
        return self.variable._array.shape, self.variable._array.dtype

    def run(self, grads: list, needs: tuple[bool, ...]) -> tuple:
        """Add the gradient to the leaf's ``.grad``."""
        from convcore.autograd.traversal import accumulate

        if grads[0] is not None:
            accumulate(self.variable, grads[0], create_graph=mode.enabled)
        return ()


def accumulator(tensor: Tensor) -> AccumulateGrad:
    """Return the leaf's AccumulateGrad, made if no graph has one.

    Graphs refer to it, and it refers to the leaf; the leaf refers to it weakly, so that a leaf
    without users is freed at once.
    """
    leaf = tensor._leaf or leaf_of(tensor)
    node = leaf.accumulator()
    if node is None:
        node = _new(AccumulateGrad)
        owner = leaf.owner()
        node.variable = tensor if owner is None else owner
        node._hooks = node._metadata = None
        leaf.accumulator = weakref.ref(node)
    return node


class _NodeClasses(dict):
    """Name -> Node subclass, so that `type(node).__name__` is the operation's name."""

    def __missing__(self, name: str) -> type:
        return self.make(name, Node)

    def make(self, name: str, base: type) -> type:
        """Return the class of that name, made at the first call."""
        if name not in self:
            self[name] = type(name, (base,), {"__slots__": (), "__module__": "convcore.autograd"})
        return self[name]


node_classes = _NodeClasses()


class GradientEdge(NamedTuple):
    """An edge of the graph, in the place of the tensor whose gradient arrives there."""

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def edge(tensor: Any) -> Edge:
    """Return a tensor's edge, (node, output number); (None, 0) if it needs no gradient."""
    if isinstance(tensor, GradientEdge):
        return tensor.node, tensor.output_nr
    if not isinstance(tensor, Tensor) or not tensor.requires_grad:
        return None, 0
    return tensor._grad_fn or accumulator(tensor), tensor._output_nr


def needs_history(*tensors: Any) -> bool:
    """Return whether an operation on these inputs must be recorded."""
    if not mode.enabled:
        return False
    for tensor in tensors:
        if isinstance(tensor, Tensor) and (tensor._requires_grad or tensor.requires_grad):
            return True
    return False


def record(
    name: str,
    inputs: tuple,
    outputs: Tensor | tuple[Tensor, ...],
    backward: Callable,
    saved: tuple = (),
) -> Node | None:
    """Record an operation as a node of the graph, if grad mode is on and an input requires grad.

    Parameters
    ----------
    name : str
        The node's name, PyTorch's for the operation: 'MulBackward0'.
    inputs : tuple of Tensor, or of anything else, for which no gradient is computed
    outputs : Tensor, or tuple of Tensors
        Freshly wrapped.  Those of integer or bool dtype are numbered too, but have no gradient.
    backward : callable
        ``backward(needs, grad, *saved)`` returns the inputs' gradients in a tuple (or the only
        input's alone), None where ``needs`` is false or the gradient is zero.  It is written in
        differentiable functions.  ``grad`` is a tuple of gradients if there are several outputs,
        None for those that none arrived for.  What it returns is new, or ``grad``, or a view of
        that: never a saved tensor, because the traversal adds to it in place.
    saved : tuple of Tensor, number or None
        Inputs or outputs that backward needs.  In-place changes of them are detected,
        `saved_tensors_hooks` see them, and they are freed after the node has run.  A node that
        saves nothing, not even a number, can run again.

    Returns
    -------
    Node, or None if nothing is recorded
    """
    if not mode.enabled:
        return None
    edges = []
    needs = []
    for tensor in inputs:
        # `edge`, inlined: this loop is most of the cost of recording.
        if isinstance(tensor, Tensor):
            view = tensor._view
            if view is not None and view.stale():
                view.refresh(tensor)
            if tensor._requires_grad:
                edges.append((tensor._grad_fn or accumulator(tensor), tensor._output_nr))
                needs.append(True)
                continue
        edges.append((None, 0))
        needs.append(False)
    if True not in needs:
        return None
    node = _new(node_classes[name])
    node.next_functions = tuple(edges)
    node._needs = tuple(needs)
    node._backward = backward
    node._sequence = next_number()
    node._hooks = None
    node._metadata = where_made() if anomaly.enabled else None
    node._outputs = 1
    if isinstance(outputs, Tensor):
        outputs._grad_fn = node
        outputs._requires_grad = True
    else:
        _set_history(node, outputs)
    node._saved = save(node, saved) if saved else ()
    if observers:
        observe(node, inputs, outputs)
    return node


def record_without_derivative(name: str, inputs: tuple, outputs: Tensor) -> None:
    """Record an operation that has no derivative here, so that no gradient is lost unnoticed.

    Parameters
    ----------
    name : str
        The operation's name in the error.
    inputs, outputs
        As for `record`.  Backward through ``outputs`` raises NotImplementedError.
    """

    def backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    record("NotImplemented", inputs, outputs, backward)


def describe(output: Tensor, **attributes: Any) -> None:
    """Store an operation's arguments in the node that produced ``output``, if there is one.

    Parameters
    ----------
    attributes
        By the names of the operation's arguments; ``forward``, if given, is a function that
        recomputes the output's array from the arrays of the recorded inputs.
    """
    if output._grad_fn is not None:
        output._grad_fn._attributes = attributes


def _set_history(node: Node, outputs: tuple[Tensor, ...]) -> None:
    """Make a node the ``grad_fn`` of those of its outputs that can have a gradient."""
    node._outputs = len(outputs)
    for number, output in enumerate(outputs):
        if output._array.dtype.kind in INEXACT:
            output._grad_fn = node
            output._output_nr = number
            output._requires_grad = True
