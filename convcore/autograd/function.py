"""Function: custom differentiable operations, with a forward and a backward of the user's own.

Operations of this package call `record` instead; both make nodes of the same graph.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import INEXACT
from convcore.autograd import views
from convcore.autograd.anomaly_mode import anomaly, where_made
from convcore.autograd.grad_mode import mode, no_grad
from convcore.autograd.node import Node, edge, next_number
from convcore.autograd.saved import save, unpack

_new = object.__new__


class FunctionCtx:
    """The ``ctx`` that forward fills and backward reads; one for each node."""

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self._node: Any = None
        self._to_save: tuple = ()
        self._dirty: tuple = ()
        self._non_differentiable: tuple = ()
        self._materialize = True
        self._materialize_non_diff_grads = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for backward: inputs, outputs, or others that need no gradient there."""
        for place, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {place} is of type "
                    f"{type(tensor).__name__}"
                )
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple:
        """The tensors that `save_for_backward` saved.

        Raises
        ------
        RuntimeError
            One of them was changed in place, or a backward pass has freed them.
        """
        return self._to_save if self._node is None else unpack(self._node())

    @property
    def saved_variables(self) -> tuple:
        """`saved_tensors`, under the name that it had before; deprecated."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that forward changed in place; it must return them too."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare outputs that have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether backward gets zeros (the default) or None where no gradient arrived."""
        self._materialize = bool(value)

    @property
    def next_functions(self) -> tuple:
        """The node's `next_functions`."""
        return self._node().next_functions


class BackwardFunction(Node):
    """The node of a custom Function; each Function has a subclass named after it."""

    __slots__ = ("ctx", "function", "input_likes", "n_args", "output_likes", "places")

    returns_fresh = False  # the user may keep references to what backward returns

    def __getattr__(self, name: str) -> Any:
        # PyTorch's node is the ctx itself: attributes that forward set are found on grad_fn.
        if name.startswith("__") or name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def output_like(self, output_nr: int) -> tuple | None:
        """Return shape and NumPy dtype of an output."""
        return self.output_likes[output_nr] if output_nr < len(self.output_likes) else None

    def run(self, grads: list, needs: tuple[bool, ...]) -> tuple:
        """Call the user's backward and check what it returns."""
        ctx = self.ctx
        wanted = dict(zip(self.places, needs, strict=True))
        ctx.needs_input_grad = tuple([wanted.get(n, False) for n in range(self.n_args)])
        if ctx._materialize:
            grads = [
                wrap(np.zeros(*like)) if grad is None and like is not None else grad
                for grad, like in zip(grads, self.output_likes, strict=True)
            ]
        function = self.function
        backward = function.backward
        if function.vjp is not Function.vjp:
            if backward is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                    "You should only implement one of them."
                )
            backward = function.vjp
        results = backward(ctx, *grads)
        if not isinstance(results, tuple):
            results = tuple(results) if isinstance(results, list) else (results,)
        return self._checked(results)

    def _checked(self, results: tuple) -> tuple:
        expected = self.n_args
        if len(results) > expected and all(result is None for result in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(results)})"
            )
        return tuple(
            [self._checked_one(n, place, results[place]) for n, place in enumerate(self.places)]
        )

    def _checked_one(self, edge: int, number: int, grad: Any) -> Tensor | None:
        if grad is None or not self._needs[edge]:
            return None
        if not isinstance(grad, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(grad).__name__}) as gradient {number} of "
                f"function {self.name()}"
            )
        shape, dtype = self.input_likes[edge]
        if grad._array.shape != shape:
            if not _sums_to(grad._array.shape, shape):
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index {number} - got "
                    f"{list(grad.shape)} but expected shape compatible with {list(shape)}"
                )
            grad = grad.sum_to_size(shape)
        return grad if grad._array.dtype == dtype else grad.to(dtype)


def _sums_to(shape: Sequence[int], smaller: Sequence[int]) -> bool:
    """Return whether ``smaller`` broadcasts to ``shape``."""
    try:
        return np.broadcast_shapes(tuple(shape), tuple(smaller)) == tuple(shape)
    except ValueError:
        return False


class Function:
    """A custom differentiable operation: subclass it, write forward and backward, call ``apply``.

    ``forward(ctx, *args)`` computes on tensors, unrecorded, and returns one tensor or a tuple.  Or
    ``forward(*args)`` computes and ``setup_context(ctx, inputs, output)`` saves for backward.
    ``backward(ctx, *grad_outputs)`` returns a gradient, or None, for each argument of forward; it
    can be differentiated again if it is made of differentiable operations.

    Examples
    --------
    >>> import convcore
    >>> class Square(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad_output
    >>> x = convcore.tensor([3.0], requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor([6.])
    """

    _node_class: type = BackwardFunction
    setup_context: Callable | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise RuntimeError: `apply` is what calls a Function."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method."
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = f"{cls.__name__}Backward"
        cls._node_class = type(name, (BackwardFunction,), {"__slots__": ()})

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; every Function defines its own."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """Compute the gradients of the inputs; every Function that is differentiated defines it.

        Type checkers accept an override of any arguments.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward  # PyTorch's other name: a Function defines one of them

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call forward and record it.

        Returns
        -------
        the results of forward, with their tensors as outputs of one node
        """
        ctx = FunctionCtx()
        if cls.setup_context is not None:
            args, kwargs = _with_defaults(cls.forward, args, kwargs), {}
        recorded = mode.enabled and any(isinstance(a, Tensor) and a.requires_grad for a in args)
        ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        with no_grad():
            if cls.setup_context is None:
                results = cls.forward(ctx, *args, **kwargs)
            else:
                results = cls.forward(*args)
                cls.setup_context(ctx, args, results)
        outputs = results if isinstance(results, tuple) else (results,)
        for tensor in ctx._dirty:
            if not _among(tensor, args):
                warnings.warn(
                    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors "
                    "that have been mutated should be passed to ctx.mark_dirty().",
                    stacklevel=2,
                )
            if not _among(tensor, outputs):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as "
                    "output. The inputs that are modified inplace must all be outputs of the "
                    "Function."
                )
        outputs = cls._record(ctx, args, outputs, recorded)
        return outputs if isinstance(results, tuple) else outputs[0]

    @classmethod
    def _record(cls, ctx: FunctionCtx, args: tuple, outputs: tuple, recorded: bool) -> tuple:
        if not recorded:
            for tensor in ctx._dirty:
                tensor._counter[0] += 1
            return tuple([_fresh(output, args, ctx) for output in outputs])
        node = _function_node(cls, ctx, args, outputs)
        replaced: dict[int, Any] = {}
        for n, output in enumerate(outputs):
            if id(output) in replaced:  # returned twice: its gradient is that of the last place
                _renumber(replaced[id(output)], n)
            else:
                replaced[id(output)] = _output(ctx, node, n, output, args)
        given = tuple([replaced[id(output)] for output in outputs])
        node._saved = save(node, tuple([replaced.get(id(t), t) for t in ctx._to_save]))
        # The node refers to ctx: to avoid cycles, ctx refers to neither the node nor its outputs.
        ctx._node = weakref.ref(node)
        ctx._to_save = ctx._dirty = ctx._non_differentiable = ()
        return given


def _with_defaults(forward: Callable, args: tuple, kwargs: dict) -> tuple:
    """Return all arguments of a call in order, those that are not given by their defaults."""
    if not kwargs and forward.__defaults__ is None:
        return args
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _function_node(cls: type[Function], ctx: FunctionCtx, args: tuple, outputs: tuple) -> Node:
    node: Any = _new(cls._node_class)
    node.ctx = ctx
    node.function = cls
    # As in PyTorch only tensors have edges; backward still returns a value for every argument.
    node.n_args = len(args)
    node.places = [n for n, a in enumerate(args) if isinstance(a, Tensor)]
    tensors = [args[n] for n in node.places]
    node.next_functions = tuple([edge(tensor) for tensor in tensors])
    node.input_likes = [(tensor._array.shape, tensor._array.dtype) for tensor in tensors]
    node.output_likes = [_like(ctx, output) for output in outputs]
    node._needs = tuple([ctx.needs_input_grad[n] for n in node.places])
    node._backward = node._hooks = None
    node._metadata = where_made() if anomaly.enabled else None
    node._outputs = len(outputs)
    node._saved = ()
    node._sequence = next_number()
    return node


def _like(ctx: FunctionCtx, output: Any) -> Any:
    """Return the arguments of zeros for an output's gradient; None for an output without one."""
    if not isinstance(output, Tensor):
        return None
    if not ctx._materialize_non_diff_grads and _among(output, ctx._non_differentiable):
        return None
    return output._array.shape, output._array.dtype


def _among(tensor: Any, tensors: Sequence) -> bool:
    return any(tensor is other for other in tensors)


def _fresh(output: Any, args: tuple, ctx: FunctionCtx) -> Any:
    """Return an output of an unrecorded call; an input that is returned becomes a view of it."""
    if isinstance(output, Tensor) and _among(output, args) and not _among(output, ctx._dirty):
        return _view_of(output)
    return output


def _view_of(x: Tensor) -> Tensor:
    """Return a view of an input; a subclass of Tensor makes it itself, as in PyTorch."""
    return views.alias(x) if type(x) is Tensor else x.view_as(x)


def _output(ctx: FunctionCtx, node: Any, number: int, output: Any, args: tuple) -> Any:
    """Return an output as the caller gets it: an output of the node, unless it has no gradient."""
    if not isinstance(output, Tensor):
        return output
    if _among(output, ctx._dirty):
        return _changed(node, number, output)
    no_gradient = _among(output, ctx._non_differentiable) or output._array.dtype.kind not in INEXACT
    if _among(output, args):  # an input returned unchanged becomes a view of it
        output = _view_of(output)
        output._grad_fn, output._output_nr, output._requires_grad = None, 0, False
    elif output._grad_fn is not None:
        output = output.detach()
    if output._view is not None:
        output._view.made_by = type(node).__name__.removesuffix("Backward")
    if no_gradient:
        output._requires_grad = False
        return output
    output._grad_fn, output._output_nr, output._requires_grad = node, number, True
    return output


def _renumber(output: Any, number: int) -> None:
    if isinstance(output, Tensor) and output._grad_fn is not None:
        output._output_nr = number


class InplaceFunction(Function):
    """A `Function` under a name of PyTorch's that older programs inherit from."""


def _changed(node: Any, number: int, x: Tensor) -> Tensor:
    """Make an input that forward changed in place, and its base, an output of the node."""
    views.check_writable(x)
    stand_in = wrap(x._array)
    stand_in._grad_fn, stand_in._output_nr, stand_in._requires_grad = node, number, True
    x._counter[0] += 1
    views.take_history(x, stand_in)
    return x


def once_differentiable(backward: Callable) -> Callable:
    """Decorate a Function's backward that must not be differentiated again.

    Differentiating its result raises RuntimeError.
    """

    @functools.wraps(backward)
    def once(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = backward(ctx, *grads)
        if not mode.enabled or not any(
            isinstance(grad, Tensor) and grad.requires_grad for grad in grads
        ):
            return results
        many = results if isinstance(results, tuple) else (results,)
        many = tuple(
            [_refusing(result) if isinstance(result, Tensor) else result for result in many]
        )
        return many if isinstance(results, tuple) else many[0]

    return once


class _Refusal(Function):
    """The identity, whose backward raises."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return wrap(x._array)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def _refusing(tensor: Tensor) -> Tensor:
    leaf = tensor.detach()
    leaf._requires_grad = True
    return _Refusal.apply(leaf)
