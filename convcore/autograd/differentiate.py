"""backward and grad, the entry points of differentiation: checks of roots, inputs and gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import hinting
from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import FLOATING, INEXACT, of
from convcore._tensor.recording import mode
from convcore._tensor.size import Size
from convcore.autograd.hooks import retain_grad
from convcore.autograd.node import Edge, GradientEdge, accumulator, edge
from convcore.autograd.traversal import Traversal

Tensors = Tensor | Sequence[Tensor]


@hinting
def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None:
    """Compute the gradients of the sum of ``tensors`` and add them to the leaves' ``.grad``.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensors, or of `autograd.graph.GradientEdge`
    grad_tensors : their gradients, of their shapes; None is 1, for tensors of one element
    retain_graph : keep the saved tensors, so that the graph can be differentiated again
        As ``create_graph`` if not given.
    create_graph : record the pass, so that the gradients can be differentiated
    grad_variables : PyTorch's older name of ``grad_tensors``
    inputs : Tensor or sequence of Tensors
        Add to the ``.grad`` of these tensors only.

    Raises
    ------
    RuntimeError
        A tensor of several elements has no gradient given, or one does not require grad; the graph
        was freed; a saved tensor was changed in place.
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=3,
        )
        grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    roots = _as_tuple(tensors)
    wanted = None if inputs is None else _as_tuple(inputs)
    if wanted is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if create_graph:
        warnings.warn(_CYCLE, stacklevel=5)
    for tensor in wanted or ():
        if isinstance(tensor, Tensor):
            retain_grad(tensor)  # for those that are not leaves
    traversal = Traversal(
        _edges(roots),
        _grads(roots, grad_tensors),
        retain_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=wanted,
    )
    traversal.run()


_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter "
    "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
    "creating the graph to avoid this. If you have to use this function, make sure to reset the "
    ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
)


@hinting
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Return the gradients of the sum of ``outputs`` with respect to ``inputs``.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensors, or of `autograd.graph.GradientEdge`
    grad_outputs : the outputs' gradients, of their shapes; None is 1, for outputs of one element
    retain_graph, create_graph
        As for `backward`.
    allow_unused : return None for an input that no output depends on, instead of raising
    materialize_grads : return zeros for such an input

    Returns
    -------
    tuple of Tensor or None, one an input

    Raises
    ------
    RuntimeError
        As `backward`; or no output depends on an input.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.tensor(3.0, requires_grad=True)
    >>> (slope,) = grad(x ** 3, x, create_graph=True)
    >>> grad(slope, x)
    (tensor(18.),)
    """
    if is_grads_batched:
        raise NotImplementedError("is_grads_batched is not there: call grad once an item")
    if not only_inputs:
        raise ValueError("only_inputs must be True: call backward to reach every leaf")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise ValueError("grad requires non-empty inputs.")
    _check_inputs(wanted)
    traversal = Traversal(
        _edges(roots),
        _grads(roots, grad_outputs),
        retain_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=wanted,
        accumulate=False,
    )
    traversal.run()
    assert traversal.wanted is not None
    results = [traversal.captured[edge] for edge in traversal.wanted]
    if materialize_grads:
        results = [
            _zeros(tensor, create_graph) if result is None else result
            for tensor, result in zip(wanted, results, strict=True)
        ]
    elif not allow_unused:
        for number, result in enumerate(results):
            if result is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {number} appears to not have been used in "
                    "the graph. Set allow_unused=True if this is the desired behavior."
                )
    return tuple(results)  # type: ignore[arg-type]  # None is there if it was allowed


def _zeros(like: Tensor, requires_grad: bool) -> Tensor:
    if isinstance(like, GradientEdge):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    zeros = wrap(np.zeros_like(like._array))
    zeros._requires_grad = requires_grad
    return zeros


_DIFFERENTIABLE = (Tensor, GradientEdge)  # an edge stands for a tensor


def _as_tuple(tensors: Tensors) -> tuple[Tensor, ...]:
    if isinstance(tensors, _DIFFERENTIABLE):
        return (tensors,)
    tensors = tuple(tensors)
    for tensor in tensors:
        if not isinstance(tensor, _DIFFERENTIABLE):
            raise TypeError(f"expected a Tensor, but got {type(tensor).__name__}")
    return tensors


def _check_inputs(inputs: Sequence[Tensor]) -> None:
    for tensor in inputs:
        if isinstance(tensor, Tensor) and not tensor.requires_grad:
            raise hinted(
                RuntimeError("One of the differentiated Tensors does not require grad"),
                hints.NOT_RECORDED,
            )


def _edges(roots: Sequence[Tensor]) -> list[Edge]:
    edges: list[Edge] = []
    for number, root in enumerate(roots):
        if not isinstance(root, Tensor):
            edges.append(edge(root))
            continue
        if not root.requires_grad:
            raise hinted(
                RuntimeError(
                    f"element {number} of tensors does not require grad and does not have a grad_fn"
                ),
                hints.no_graph(root._array.dtype.kind in INEXACT, mode.enabled),
            )
        edges.append((root._grad_fn or accumulator(root), root._output_nr))
    return edges


def _grads(roots: Sequence[Tensor], given: Any) -> list[Tensor]:
    """Return a gradient for each root: the given one, or 1."""
    if given is None:
        given = (None,) * len(roots)
    elif isinstance(given, Tensor):
        given = (given,)
    if len(given) != len(roots):
        raise RuntimeError(
            f"got {len(roots)} tensors and {len(given)} gradients: each tensor needs one, or None"
        )
    return [_checked_grad(n, root, g) for n, (root, g) in enumerate(zip(roots, given, strict=True))]


def _checked_grad(number: int, root: Any, gradient: Any) -> Tensor:
    if isinstance(root, Tensor):
        like = root._array.shape, root._array.dtype
    else:
        like = root.node.output_like(root.output_nr)
    if like is None:
        if not isinstance(gradient, Tensor):
            raise RuntimeError(
                f"the shape of output {root.output_nr} of {root.node.name()} is not known: give "
                "its gradient, or use get_gradient_edge(tensor)"
            )
        return gradient
    shape, dtype = like
    if gradient is None:
        if math.prod(shape) != 1:
            raise hinted(
                RuntimeError("grad can be implicitly created only for scalar outputs"),
                hints.NOT_SCALAR,
            )
        if dtype.kind not in FLOATING:
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {of(dtype)}"
            )
        return wrap(np.ones(shape, dtype))
    if not isinstance(gradient, Tensor):
        raise TypeError(
            "gradients can be either Tensors or None, but got " + type(gradient).__name__
        )
    if gradient._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of "
            f"{Size(gradient._array.shape)} and output[{number}] has a shape of "
            f"{Size(shape)}."
        )
    if (gradient._array.dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{number}] has a dtype of {gradient.dtype} and "
            f"output[{number}] has a dtype of {of(dtype)}."
        )
    return gradient if gradient._array.dtype == dtype else gradient.to(of(dtype))
