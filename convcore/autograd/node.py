"""The graph: nodes, one an operation, and how an operation is recorded as one.

A node knows the nodes that made its inputs (`next_functions`) and how to turn the gradient of its
outputs into gradients of its inputs.  A tensor knows the node that made it (`grad_fn`), so that
holding a result holds all of its graph, and nothing holds a graph whose results are gone.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor
from convcore.autograd.anomaly_mode import anomaly, where_made
from convcore.autograd.grad_mode import mode
from convcore.autograd.handle import RemovableHandle, add_hook
from convcore.autograd.leaf import leaf_of
from convcore.autograd.saved import FREED, save, unpack

_new = object.__new__
next_number = itertools.count(1).__next__

Edge = tuple["Node | None", int]


class Hooks:
    """The hooks of one node: on the gradients of its outputs, before it runs, after it ran."""

    __slots__ = ("after", "before", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, OrderedDict] = {}  # output number -> hooks on its gradient
        self.retained: dict[int, weakref.ref] = {}  # output number -> tensor that keeps .grad
        self.before: OrderedDict = OrderedDict()
        self.after: OrderedDict = OrderedDict()


class Node:
    """One recorded operation.

    Attributes
    ----------
    next_functions : tuple of (Node or None, int)
        For each input, the node that made it and which of that node's outputs it is.
    metadata : dict
        Free for use.
    attributes : dict
        With what the operation was called, as far as `describe` was told.
    """

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_backward",
        "_hooks",
        "_metadata",
        "_needs",
        "_outputs",
        "_saved",
        "_sequence",
        "next_functions",
    )

    _attributes: dict  # not there where nothing is told
    _backward: Any  # (needs, grad or grads, *saved) -> gradients of the inputs
    _hooks: Hooks | None  # None while there are none
    _metadata: dict | None
    _needs: tuple[bool, ...]  # for each input, whether it requires a gradient
    _outputs: int  # how many outputs the operation has
    _saved: Any  # what autograd/saved.py made of the saved tensors
    _sequence: int  # grows from node to node: the traversal takes the newest first
    next_functions: tuple[Edge, ...]

    # Whether `run` keeps record's promise that no gradient it returns is held by anybody else.
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
        """With what the operation was called, by names; empty where nothing is told."""
        return getattr(self, "_attributes", {})

    @property
    def saved_tensors(self) -> tuple:
        """The tensors that the operation saved for its backward."""
        return unpack(self)

    def hooks(self) -> Hooks:
        """Return the node's hooks, made at the first call."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_hook(self, fn: Callable) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the node ran.

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
        """Return whether a tensor made here keeps its gradient."""
        if self._hooks is None:
            return False
        kept = self._hooks.retained.get(tensor._output_nr)
        return kept is not None and kept() is tensor

    def has_hooks_on_outputs(self) -> bool:
        """Return whether somebody looks at the gradients that arrive."""
        return self._hooks is not None

    def run(self, grads: list, needs: tuple[bool, ...]) -> tuple:
        """Return the inputs' gradients, for the outputs' gradients; None is no gradient."""
        if self._outputs == 1:
            grad = grads[0]
            wanted = grad is not None and True in needs
        else:
            grad = tuple(grads)
            wanted = True in needs and any(one is not None for one in grads)
        if not wanted:
            return (None,) * len(self.next_functions)
        results = self._backward(needs, grad, *(unpack(self) if self._saved else ()))
        return results if type(results) is tuple else (results,)

    def release(self) -> None:
        """Let go of the saved tensors; a node that saved some cannot run again."""
        if self._saved:
            self._saved = FREED

    if sys.version_info[:2] == (3, 13):
        # The other versions free a long chain of objects level by level by themselves.  This one
        # goes 10,000 levels deep first, which is more than a small thread's stack holds.
        def __del__(self) -> None:
            take_apart(self)

    def __call__(self, *grads: Tensor | None) -> Any:
        """Run the operation's backward, with the node's own hooks, on gradients of its outputs."""
        from convcore.autograd.traversal import run_node

        results = run_node(self, list(grads), self._needs)
        return results[0] if len(results) == 1 else tuple(results)


class _Apart(threading.local):
    """What nodes that are being freed in this thread held; None while none is."""

    waiting: list | None = None


_apart = _Apart()


def take_apart(node: Node) -> None:
    """Free what a node held without recursion: what that frees in turn waits for its own turn."""
    if not node.next_functions:
        return
    # A hook on what is saved may have raised before there was anything.
    held = (node.next_functions, getattr(node, "_saved", None))
    node.next_functions = node._saved = ()
    if _apart.waiting is not None:
        _apart.waiting.append(held)
        return
    _apart.waiting = [held]
    del held
    try:
        while _apart.waiting:
            _apart.waiting.pop()
    finally:
        _apart.waiting = None


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds the gradient to the leaf's ``.grad``.

    Attributes
    ----------
    variable : Tensor
        The leaf.
    """

    __slots__ = ("variable",)

    variable: Tensor

    # The same for every leaf: a graph makes these nodes anew each time, so they are kept small.
    next_functions = ()
    _backward = None
    _needs = _saved = ()
    _outputs = 1
    _sequence = 0

    def name(self) -> str:
        """Return PyTorch's name of this node."""
        return "torch::autograd::AccumulateGrad"

    def hooks_of_output(self, output_nr: int) -> OrderedDict | None:
        """Return the leaf's hooks: they live with the tensor, not with this node."""
        leaf = self.variable._leaf
        return None if leaf is None else leaf.hooks

    def has_hooks_on_outputs(self) -> bool:
        """Return whether somebody looks at the gradient that arrives."""
        return self._hooks is not None or bool(self.variable._leaf.hooks)

    def run(self, grads: list, needs: tuple[bool, ...]) -> tuple:
        """Add the gradient to the leaf's."""
        from convcore.autograd.traversal import accumulate

        if grads[0] is not None:
            accumulate(self.variable, grads[0], create_graph=mode.enabled)
        return ()


def accumulator(tensor: Tensor) -> AccumulateGrad:
    """Return the leaf's AccumulateGrad.

    The leaf refers to it weakly: graphs hold it, it holds the leaf, and so a leaf that nobody
    needs is freed at once.
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
    """One class a name: `type(node).__name__` and the printed form say which operation it was."""

    def __missing__(self, name: str) -> type:
        return self.make(name, Node)

    def make(self, name: str, base: type) -> type:
        """Return the class of a name, made at the first call."""
        if name not in self:
            self[name] = type(name, (base,), {"__slots__": (), "__module__": "convcore.autograd"})
        return self[name]


node_classes = _NodeClasses()


def edge(tensor: Any) -> Edge:
    """Return where a gradient of ``tensor`` goes: (node, output number), or (None, 0)."""
    if not isinstance(tensor, Tensor) or not tensor.requires_grad:
        return None, 0
    return tensor._grad_fn or accumulator(tensor), tensor._output_nr


def needs_history(*tensors: Any) -> bool:
    """Return whether an operation on these is to be recorded."""
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
    """Remember how ``outputs`` were made of ``inputs``, if anything wants a gradient.

    Parameters
    ----------
    name : str
        The node's name, PyTorch's for the operation: 'MulBackward0'.
    inputs : tuple of Tensor, or of anything else, for which no gradient is computed
    outputs : Tensor, or tuple of Tensors
        Freshly wrapped.  Those of integer or bool dtype take a number and have no gradient.
    backward : callable
        ``backward(needs, grad, *saved)`` returns the inputs' gradients in a tuple (or the only
        input's alone), None where ``needs`` is false or the gradient is zero.  It is written in
        differentiable functions.  ``grad`` is the tuple of gradients where there are several
        outputs; those that none arrived for are None.  What it returns is new, or ``grad``, or a
        view of that: never a saved tensor, because the traversal adds to it in place.
    saved : tuple of Tensor, number or None
        Inputs or outputs that backward needs: their in-place changes are noticed,
        `saved_tensors_hooks` see them, and they are freed after the pass.  A node that saved
        nothing, not even a number, can run again after that.

    Returns
    -------
    Node, or None where nothing is recorded
    """
    if not mode.enabled:
        return None
    edges = []
    needs = []
    for tensor in inputs:
        # `edge`, written out: this loop is most of what recording costs.
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
    return node


def describe(output: Tensor, **attributes: Any) -> None:
    """Tell the node that made ``output``, if it was recorded, with what it was called.

    Parameters
    ----------
    attributes
        By the names of the operation's arguments; ``forward``, where it is given, is a function
        that makes the output's array again of the arrays of the inputs that were recorded.
    """
    if output._grad_fn is not None:
        output._grad_fn._attributes = attributes


def _set_history(node: Node, outputs: tuple[Tensor, ...]) -> None:
    """Make a node with several outputs the origin of those that can have a gradient."""
    node._outputs = len(outputs)
    for number, output in enumerate(outputs):
        if output._array.dtype.kind in "fc":
            output._grad_fn = node
            output._output_nr = number
            output._requires_grad = True
