"""Backward traversal: iterative, in reverse order of creation, with the hooks of each node.

A node is ready when every node that uses its outputs has run.  Of the ready nodes the newest runs
first: this is PyTorch's order, and so hooks fire in PyTorch's order.  Leaves run before all other
nodes, in the order in which they became ready; PyTorch leaves the order of more than three at once
to the heap of its C++ library.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.anomaly_mode import anomaly, watched
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import AccumulateGrad, Edge, Node, edge, record
from convcore.autograd.saved import leave_hooks
from convcore.autograd.views import check_writable
from convcore.engine.layers.elementwise import elementwise
from convcore.engine.runtime.locks import process_lock

# The differentiable sum of two tensors.  functions/_bind.py, which knows arithmetic, sets it.
add: Callable[[Tensor, Tensor], Tensor] = None  # type: ignore[assignment]


_DEEPEST = 60  # passes in passes that one thread runs, as in PyTorch


class Traversal:
    """One backward pass from some roots.

    Parameters
    ----------
    roots : edges of the tensors to differentiate
    grads : their gradients
    retain_graph : whether nodes keep their saved tensors
    create_graph : whether the pass itself is recorded
    inputs : the tensors whose gradients are wanted, or None for all leaves
    accumulate : whether gradients are added to ``.grad`` of the leaves reached
    """

    def __init__(
        self,
        roots: Sequence[Edge],
        grads: Sequence[Tensor],
        *,
        retain_graph: bool,
        create_graph: bool,
        inputs: Sequence[Tensor] | None = None,
        accumulate: bool = True,
    ):
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.accumulate = accumulate
        self.buffers: dict[Node, list] = {}
        # Ids of gradients in the buffers that nothing else refers to: they may be written into.
        self.owned: set[int] = set()
        self.wanted = None if inputs is None else [edge(tensor) for tensor in inputs]
        self.captured: dict[Edge, Tensor | None] = dict.fromkeys(self.wanted or ())
        self.pending = self._count(dict.fromkeys(node for node, _ in roots if node is not None))
        self.ready: list[tuple[int, Node]] = []
        self.ready_leaves: deque[AccumulateGrad] = deque()
        for (node, number), grad in zip(roots, grads, strict=True):
            if node in self.pending:
                self._deposit(node, number, grad, False)
        for node in self.buffers:
            if self.pending[node] == 0:
                self._push(node)

    def _count(self, roots: dict[Node, None]) -> dict[Node, int]:
        """Return the number of edges into each node to visit."""
        pending = dict.fromkeys(roots, 0)
        stack = list(roots)
        users: dict[Node, list[Node]] = {}
        while stack:
            node = stack.pop()
            for parent, _ in node.next_functions:
                if parent is None:
                    continue
                if parent in pending:
                    pending[parent] += 1
                else:
                    pending[parent] = 1
                    stack.append(parent)
                if self.wanted is not None:
                    users.setdefault(parent, []).append(node)
        self.running: set[Node] | None = None
        if self.wanted is None:
            return pending
        captured = [node for node, _ in self.captured if node is not None]
        self.running = _ancestors(captured, users)
        visited = self.running.union(captured)
        if self.accumulate:  # as in PyTorch: hooks of the wanted nodes run, but pass nothing on
            self.running = visited
        return {node: count for node, count in pending.items() if node in visited}

    def run(self) -> None:
        """Run the pass: visit every node that is ready until none is."""
        depth = mode.depth
        if depth >= _DEEPEST:
            self._run_in_thread()
            return
        before = mode.enabled, mode.traversal
        n_hooks = len(mode.saved_hooks)
        ready, ready_leaves = self.ready, self.ready_leaves
        try:
            mode.enabled, mode.traversal, mode.depth = self.create_graph, self, depth + 1
            while ready_leaves or ready:
                if ready_leaves:
                    self._visit_leaf(ready_leaves.popleft())
                else:
                    self._visit(heappop(ready)[1])
        finally:
            mode.enabled, mode.traversal = before
            mode.depth = depth
            if len(mode.saved_hooks) > n_hooks:  # a hook has entered some and not left them
                leave_hooks(n_hooks)

    def _run_in_thread(self) -> None:
        """Run the pass in a new thread: passes nested in passes use up a thread's stack."""
        context = mode.saved_hooks
        failed: list[BaseException] = []

        def run() -> None:
            mode.saved_hooks = context
            try:
                self.run()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]

    def reaches(self, node: Node) -> bool:
        """Return whether this pass visits a node."""
        return node in self.pending

    def _push(self, node: Node) -> None:
        if type(node) is AccumulateGrad:
            self.ready_leaves.append(node)
        else:
            heappush(self.ready, (-node._sequence, node))

    def _visit(self, node: Node) -> None:
        """Run a node whose outputs' gradients are complete, and pass its results on."""
        grads, owned = self._arrived(node)
        pending = self.pending
        needs = node._needs
        if self.running is not None:
            if node not in self.running:
                return
            needs = tuple([parent in pending for parent, _ in node.next_functions])
        if anomaly.enabled:
            results = watched(run_node, node, grads, needs)
        else:
            results = run_node(node, grads, needs)
        if not self.retain_graph:
            node.release()
        ours = node.returns_fresh and node._hooks is None and not self.create_graph
        if ours and owned and len(results) == len(grads) == 1 and not self.captured:
            results = (_without_view(grads[0], results[0]),)
        for (parent, number), grad in zip(node.next_functions, results, strict=True):
            if parent is None or parent not in pending:
                continue
            if grad is not None:
                owns = ours and grad._view is None and not _is_one_of(grad, grads)
                self._deposit(parent, number, grad, owns)
                if owns:
                    grads.append(grad)  # if another input gets it too, neither owns it
            pending[parent] -= 1
            if pending[parent] == 0:
                self._push(parent)

    def _visit_leaf(self, node: AccumulateGrad) -> None:
        """Accumulate a leaf's gradient; run its node's hooks and post-accumulate hooks."""
        grads, owned = self._arrived(node)
        if not self.accumulate or (self.wanted is not None and (node, 0) not in self.captured):
            return
        hooks = node._hooks
        if hooks is not None and hooks.before:
            grads = _call_before(hooks.before, grads)
        variable = node.variable
        first = variable._grad is None
        if grads[0] is not None:
            accumulate(variable, grads[0], self.create_graph, owned)
            if first:  # post-hooks see changes of .grad by hooks before them, as in PyTorch
                grads = [variable._grad]
        for hook in tuple(variable._leaf.after_accumulate.values()):
            if hook(variable) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if node._hooks is not None and node._hooks.after:
            _call_after(node._hooks.after, (), grads)

    def _arrived(self, node: Node) -> tuple[list, bool]:
        """Return the gradients of a node's outputs, and whether the traversal alone owns one."""
        grads = self.buffers.pop(node, None) or [None] * node._outputs
        owned = False
        if self.owned:
            for grad in grads:
                if id(grad) in self.owned:
                    self.owned.discard(id(grad))
                    owned = True
        before = grads
        if node.has_hooks():
            owned = False
            grads = call_tensor_hooks(node, grads)
        if self.captured:  # as in PyTorch: after the hooks only where the node does not run
            runs = not self.accumulate and self.running is not None and node in self.running
            self._capture(node, before if runs else grads)
        return grads, owned

    def _deposit(self, node: Node, number: int, grad: Tensor, owns: bool) -> None:
        """Sum a gradient into those that have arrived for an output of a node."""
        buffer = self.buffers.get(node)
        owned = self.owned
        if buffer is None:
            buffer = self.buffers[node] = [None] * node._outputs
        so_far = buffer[number]
        if so_far is None:
            buffer[number] = grad
            if id(grad) in owned:  # the same tensor for two inputs: neither may be written into
                owned.discard(id(grad))
            elif owns:
                owned.add(id(grad))
        elif id(so_far) in owned and so_far is not grad:
            elementwise.add_to(so_far._array, grad._array)
        else:
            buffer[number] = total = add(so_far, grad)
            owned.discard(id(so_far))
            if not self.create_graph:
                owned.add(id(total))

    def _capture(self, node: Node, grads: list) -> None:
        """Store the gradients that `grad` was asked for."""
        for number, grad in enumerate(grads):
            if (node, number) in self.captured:
                self.captured[node, number] = grad


def _without_view(arrived: Tensor, grad: Tensor | None) -> Tensor | None:
    """Return a gradient that is a view of all of ``arrived`` as a tensor of its own.

    Only the traversal holds ``arrived``, so a view with the same elements in another shape or order
    of axes may be written into too: the gradient of a transposed weight, for instance.
    """
    if grad is None or grad._view is None or grad._view.base is not arrived:
        return grad
    array = grad._array
    whole = array.size == arrived._array.size and elementwise.is_dense(array)
    return wrap(array) if whole else grad


def _is_one_of(grad: Tensor, grads: list) -> bool:
    """Return whether a gradient is, by identity, one of some others."""
    for other in grads:  # noqa: SIM110 (any() costs as much as all the rest of a node's visit)
        if other is grad:
            return True
    return False


def _ancestors(nodes: list[Node], users: dict[Node, list[Node]]) -> set[Node]:
    """Return the nodes that reach one of ``nodes`` by one edge or more."""
    found: set[Node] = set()
    stack = list(nodes)
    while stack:
        for user in users.get(stack.pop(), ()):
            if user not in found:
                found.add(user)
                stack.append(user)
    return found


def run_node(node: Node, grads: list, needs: tuple[bool, ...]) -> Sequence:
    """Run a node's pre-hooks, the node, and its hooks."""
    hooks = node._hooks
    if hooks is not None and hooks.before:
        grads = _call_before(hooks.before, grads)
    watched = hooks is not None and bool(hooks.after)
    results: Sequence = node.run(grads, needs)
    hooks = node._hooks
    if hooks is not None and hooks.after:
        # A hook that was registered while the node ran does not see the outputs' gradients.
        results = _call_after(hooks.after, results, grads if watched else [None] * len(grads))
    return results


def call_tensor_hooks(node: Node, grads: list) -> list:
    """Run the tensor hooks of a node's outputs, then store gradients for `retain_grad`."""
    grads = list(grads)
    for number, grad in enumerate(grads):
        hooks = node.hooks_of_output(number)
        if hooks:
            grad = grads[number] = _call_tensor_hooks(hooks, grad)
        retained = node._hooks.retained.get(number) if node._hooks is not None else None
        tensor = retained() if retained is not None else None
        if tensor is not None and grad is not None:
            so_far = tensor._grad
            tensor._grad = _copy(grad, grad._array) if so_far is None else add(so_far, grad)
    return grads


def _call_tensor_hooks(hooks: dict, grad: Tensor) -> Tensor:
    for hook in tuple(hooks.values()):
        result = hook(grad)
        if result is not None:
            _check_same_kind(hook, grad, result)
            grad = result
    return grad


def _call_before(hooks: dict, grads: list) -> list:
    for hook in tuple(hooks.values()):
        result = hook(tuple(grads))
        if result is not None:
            grads = _checked_tuple(hook, grads, result)
    return grads


def _call_after(hooks: dict, results: Sequence, grads: Sequence) -> Sequence:
    for hook in tuple(hooks.values()):
        answer = hook(tuple(results), tuple(grads))
        if answer is not None:
            results = _checked_tuple(hook, results, answer)
    return results


def _name(hook: Callable) -> str:
    return getattr(hook, "__name__", "<unknown>")


def _checked_tuple(hook: Callable, before: Sequence, after: Any) -> list:
    """Return a hook's result as a list; it must be a tuple like ``before``, item by item."""
    if not isinstance(after, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(after).__name__}'")
    if len(after) != len(before):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values "
            f"(got {len(after)}, but expected {len(before)})"
        )
    for old, new in zip(before, after, strict=True):
        _check_same_kind(hook, old, new)
    return list(after)


def _check_same_kind(hook: Callable, before: Tensor | None, after: Any) -> None:
    if after is None:
        return
    if not isinstance(after, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if after._array.shape != before._array.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    if after._array.dtype != before._array.dtype:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the type of value "
            f"(was {before.type()} got {after.type()})"
        )


_accumulating = process_lock()  # passes in several threads may share a leaf


def accumulate(variable: Tensor, grad: Tensor, create_graph: bool, owned: bool = False) -> None:
    """Gradient accumulation: add to a tensor's ``.grad``, in place unless ``create_graph``.

    A first gradient is copied into the tensor's memory format; it is taken over without a copy if
    it is ``owned``, that is if nothing else refers to it.
    """
    with _accumulating:
        so_far = variable._grad
        if so_far is None:
            taken = owned and grad._array.strides == variable._array.strides
            variable._grad = grad if taken else _written(grad, variable._array)
        elif create_graph:
            variable._grad = add(so_far, grad)
        else:
            check_writable(so_far)
            elementwise.add_to(so_far._array, grad._array)
            so_far._counter[0] += 1


def _written(x: Tensor, like: np.ndarray) -> Tensor:
    """Return what PyTorch's copy_ writes into new memory in the format of ``like``."""
    out = wrap(np.empty_like(like))
    out._array[...] = x._array
    record("CopyBackwards", (None, x), out, lambda needs, grad: (None, grad))
    return out


def _copy(x: Tensor, like: np.ndarray) -> Tensor:
    """Return a copy of ``x`` in the memory format of ``like``."""
    array = np.empty_like(like)
    array[...] = x._array
    out = wrap(array)
    record("CloneBackward0", (x,), out, lambda needs, grad: grad)
    return out
