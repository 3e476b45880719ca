"""grad, grad_and_value, vjp and jvp: derivatives of functions, which can be nested."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from convcore import autograd
from convcore._tensor import Tensor
from convcore._tensor.creation import zeros_like
from convcore.autograd.grad_mode import enable_grad, is_grad_enabled
from convcore.autograd.node import AccumulateGrad
from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.restoring import Calls
from convcore.func._trees import filled, leaves, mapped

Argnums = int | tuple[int, ...]


def grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of ``func``.

    Parameters
    ----------
    func : callable
        Returns a Tensor without axes; with ``has_aux``, the pair of that and anything else.
    argnums : int, or tuple of int
        Which positional arguments to differentiate by; each may be a tree of Tensors.
    has_aux : bool

    Returns
    -------
    callable
        Takes the arguments of ``func``. Returns the gradient, of the structure of the argument; a
        tuple of them for a tuple of argnums; with ``has_aux``, the pair (gradient, aux).

    Raises
    ------
    RuntimeError
        ``func`` does not return a Tensor without axes, or there are not so many arguments.

    Examples
    --------
    >>> import convcore
    >>> grad(grad(lambda x: x ** 3))(convcore.tensor(2.0))
    tensor(12.)
    """
    compute = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        grads, value = compute(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradient


def grad_and_value(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the pair (gradient, value) of ``func``; see `grad`.

    With ``has_aux``, the pair is (gradient, (value, aux)).
    """

    @functools.wraps(func)
    def computed(*args: Any, **kwargs: Any) -> Any:
        with Level() as level:
            wanted = chosen(args, argnums)
            inputs = mapped(level.input, wanted)
            out = func(*replaced(args, argnums, inputs), **kwargs)
            out, aux = _parts(out, has_aux, "grad_and_value(f)(*args)")
            _check_scalar(out)
            grads = level.gradients([out], list(leaves(inputs)))
            found = filled(wanted, grads)
            value = level.leave(out)
            aux = mapped(level.leave, aux)
        return found, ((value, aux) if has_aux else value)

    return computed


class Level(Restoring):
    """One transform that runs: its inputs, and whether its results belong to an outer graph."""

    def __init__(self) -> None:
        self.inputs: list[Tensor] = []
        self.outer = False
        self.recording = is_grad_enabled()

    def _back(self) -> Calls:
        return enable_grad()._back()

    def _enter(self) -> Level:
        enable_grad()._enter()
        return self

    def input(self, x: Any) -> Tensor:
        """Return an argument as a tensor to differentiate by."""
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if x.requires_grad:
            self.outer = self.recording
            made = x.view_as(x) if self.recording else x.detach().requires_grad_()
        else:
            made = x.detach().requires_grad_()
        self.inputs.append(made)
        return made

    def look_at(self, tensors: Sequence[Any]) -> None:
        """Note that these tensors are constants here, but may be variables outside."""
        known = any(isinstance(x, Tensor) and x.requires_grad for x in tensors)
        self.outer |= self.recording and known

    def create_graph(self, outs: Sequence[Any]) -> bool:
        """Return whether gradients must be recorded, for a transform or a pass outside."""
        if not self.outer and self.recording:
            self.outer = _has_other_leaf(outs, self.inputs)
        return self.outer

    def gradients(
        self, outs: Sequence[Tensor], xs: Sequence[Tensor], weights: Sequence[Tensor] | None = None
    ) -> list[Tensor]:
        """Return gradients, with zeros where nothing depends on an input."""
        self.look_at(weights or ())
        found = _gradients(outs, xs, weights, self.create_graph(outs))
        grads = [zeros_like(x) if one is None else one for one, x in zip(found, xs, strict=True)]
        return [self.leave(one) for one in grads]

    def leave(self, x: Any) -> Any:
        """Return a result as the caller sees it: constant, unless it belongs to an outer graph."""
        return x if self.outer or not isinstance(x, Tensor) else x.detach()


def _gradients(
    outs: Sequence[Any], xs: Sequence[Tensor], weights: Sequence[Any] | None, create_graph: bool
) -> tuple[Tensor | None, ...]:
    """Return the inputs' gradients, None for zeros; the graph is kept for another pass."""
    pairs = zip(outs, weights or [None] * len(outs), strict=True)
    known = [(out, weight) for out, weight in pairs if out is not None and out.requires_grad]
    if not known:
        return (None,) * len(xs)
    roots, given = zip(*known, strict=True)
    return autograd.grad(roots, xs, given, True, create_graph, allow_unused=True)


def _has_other_leaf(outs: Sequence[Any], inputs: Sequence[Tensor]) -> bool:
    """Return whether results depend on leaves that are none of the inputs."""
    own = {id(x) for x in inputs}
    stack = [out.grad_fn for out in outs if isinstance(out, Tensor)]
    seen = set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad):
            if id(node.variable) not in own:
                return True
            continue
        stack += [parent for parent, _ in node.next_functions]
    return False


def chosen(args: tuple, argnums: Argnums) -> Any:
    """Return the argument, or a tuple of the arguments, to differentiate by."""
    for number in argnums if isinstance(argnums, tuple) else (argnums,):
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    if isinstance(argnums, tuple):
        return tuple([args[number] for number in argnums])
    return args[argnums]


def replaced(args: tuple, argnums: Argnums, values: Any) -> list[Any]:
    """Return the arguments with others in the place of those to differentiate by."""
    new = list(args)
    pairs = zip(argnums, values, strict=True) if isinstance(argnums, tuple) else [(argnums, values)]
    for number, value in pairs:
        new[number] = value
    return new


def _parts(out: Any, has_aux: bool, where: str) -> tuple[Any, Any]:
    """Return a function's value, and what comes beside it."""
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        raise RuntimeError(
            f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return out


def _check_scalar(out: Any) -> None:
    where = "grad_and_value(f)(*args): Expected f(*args) to return a"
    if not isinstance(out, Tensor):
        raise RuntimeError(f"{where} Tensor, got {type(out)}")
    if out.dim() != 0:
        raise RuntimeError(
            f"{where} scalar Tensor, got tensor with {out.dim()} dims. Maybe you wanted to use the "
            "vjp or jacrev APIs instead?"
        )
