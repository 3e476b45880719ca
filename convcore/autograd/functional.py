"""Jacobians, Hessians, and their products with vectors, of a function of tensors.

The function takes Tensors and returns one or a tuple of them.  It is called on new tensors with the
memory of the inputs; the caller's own tensors count as constants if the function uses them too.
There are backward passes only, so a Jacobian-vector product takes two of them (the double backward
trick): v^T J is linear in v, and its derivative by v, times a direction, is J times that direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.differentiate import grad
from convcore.autograd.grad_mode import enable_grad
from convcore.autograd.node import record

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vjp"]

Tensors = Tensor | tuple[Tensor, ...]


def vjp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return a function's value, and a vector-Jacobian product: the gradient of the outputs.

    Parameters
    ----------
    func : callable
        Takes ``inputs`` and returns a Tensor or a tuple of Tensors.
    inputs : Tensor or tuple of Tensors
    v : Tensor or tuple of Tensors
        The gradients of the outputs, of their shapes; optional for a single output of one element.
    create_graph : bool
        Record the computation, so that it can be differentiated by the inputs.
    strict : bool
        Raise if the value does not depend on an input, instead of returning zeros.

    Returns
    -------
    value : what ``func`` returned
    product : Tensor or tuple of Tensors, as ``inputs`` and of their shapes

    Raises
    ------
    TypeError
        Inputs or outputs are not tensors.
    RuntimeError
        ``v`` has other shapes than those above; or, with ``strict``, an output is independent of an
        input.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.tensor([1.0, 2.0])
    >>> vjp(lambda x: x * x, x, convcore.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    call = _Call("vjp", func, create_graph, strict)
    with enable_grad():
        xs = call.inputs(inputs)
        values, ys = call.outputs(xs)
        vs = call.vector(v, ys, values, "user-provided function returns")
        product = call.filled(_grads(ys, xs, vs, create_graph), xs, "The output")
    return call.given(ys, values), call.given(product, inputs)


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return a function's value, and a Jacobian-vector product: a directional derivative.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `vjp`.
    v : Tensor or tuple of Tensors
        The direction, of the shapes of the inputs; optional for a single input of one element.

    Returns
    -------
    value : what ``func`` returned
    product : Tensor or tuple of Tensors, as the value and of its shapes

    Raises
    ------
    TypeError, RuntimeError
        As `vjp`.
    """
    call = _Call("jvp", func, create_graph, strict)
    with enable_grad():
        xs = call.inputs(inputs)
        vs = call.vector(v, xs, inputs)
        values, ys = call.outputs(xs)
        product = call.filled(_along(ys, xs, vs, create_graph, strict), ys, "The gradient")
    return call.given(ys, values), call.given(product, values)


def hvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return a scalar function's value, and a Hessian-vector product.

    Parameters
    ----------
    func : callable
        Takes ``inputs`` and returns a Tensor of one element.
    inputs : Tensor or tuple of Tensors
    v : Tensor or tuple of Tensors
        Of the shapes of the inputs; optional for a single input of one element.
    create_graph, strict
        As for `vjp`.

    Returns
    -------
    value : Tensor
    product : Tensor or tuple of Tensors, as ``inputs`` and of their shapes

    Raises
    ------
    TypeError, RuntimeError
        As `vjp`; or the function does not return a single element.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.tensor([1.0, 2.0])
    >>> hvp(lambda x: (x ** 3).sum(), x, convcore.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    call = _Call("hvp", func, create_graph, strict)
    with enable_grad():
        xs = call.inputs(inputs)
        vs = call.vector(v, xs, inputs)
        value, slopes = call.slopes(xs)
        product = _along(slopes, xs, vs, create_graph)
        product = call.filled(product, xs, "The jacobian", "hessian")
    return call.given((value,), value), call.given(product, inputs)


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian: the derivative of every output element by every input element.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `vjp`.
    vectorize : ignored
    strategy : 'reverse-mode'

    Returns
    -------
    Tensor of the shape of an output followed by that of an input
        Or a tuple of them, one an input; or a tuple of those, one an output.

    Raises
    ------
    TypeError, RuntimeError
        As `vjp`.
    NotImplementedError
        Another ``strategy``.

    Examples
    --------
    >>> import convcore
    >>> jacobian(lambda x: x * x, convcore.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy(strategy)
    call = _Call("jacobian", func, create_graph, strict)
    with enable_grad():
        xs = call.inputs(inputs)
        values, ys = call.outputs(xs)
        rows = tuple([call.jacobian_rows(n, y, xs) for n, y in enumerate(ys)])
    given = tuple([call.given(row, inputs) for row in rows])
    return given if isinstance(values, tuple) else given[0]


def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a scalar function: all its second derivatives.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `hvp`.
    vectorize : ignored
    outer_jacobian_strategy : 'reverse-mode'

    Returns
    -------
    Tensor of the shape of the input, twice
        For a tuple of inputs a tuple of tuples: [i][j] has the derivatives by the inputs i and j.

    Raises
    ------
    TypeError, RuntimeError
        As `hvp`.
    NotImplementedError
        Another strategy.

    Examples
    --------
    >>> import convcore
    >>> hessian(lambda x: x[0] * x[1], convcore.tensor([1.0, 2.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    _check_strategy(outer_jacobian_strategy)

    def slopes(*xs: Tensor) -> tuple[Tensor, ...]:
        return _Call("hessian", func, create_graph, strict).slopes(xs)[1]

    found = jacobian(slopes, _as_tuple(inputs, "inputs", "hessian"), create_graph, strict)
    return found if isinstance(inputs, tuple) else found[0][0]


def _check_strategy(strategy: str) -> None:
    if strategy != "reverse-mode":
        raise NotImplementedError(
            f"derivatives are computed by strategy 'reverse-mode' only, not by {strategy!r}"
        )


def _as_tuple(tensors: Any, what: str, function: str) -> tuple[Tensor, ...]:
    """Return one Tensor, or a tuple of them, as a tuple."""
    found = tensors if isinstance(tensors, tuple) else (tensors,)
    for number, one in enumerate(found):
        if not isinstance(one, Tensor):
            where = f"value at index {number}" if isinstance(tensors, tuple) else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but "
                f"the {where} has type {type(one)}."
            )
    return found


class _Call(NamedTuple):
    """What the functions above share: their name and options, and the steps of a derivative."""

    name: str
    func: Callable[..., Any]
    create_graph: bool
    strict: bool

    def inputs(self, inputs: Any) -> tuple[Tensor, ...]:
        """Return the inputs as new tensors that require grad: the caller's own are constants."""
        return tuple(
            [
                x.view_as(x)
                if self.create_graph and x.requires_grad
                else x.detach().requires_grad_()
                for x in _as_tuple(inputs, "inputs", self.name)
            ]
        )

    def outputs(self, xs: tuple[Tensor, ...]) -> tuple[Any, tuple[Tensor, ...]]:
        """Return what the function returns, and that as a tuple."""
        values = self.func(*xs)
        ys = _as_tuple(values, "outputs of the user-provided function", self.name)
        for number, y in enumerate(ys):
            if self.strict and not y.requires_grad:
                raise RuntimeError(
                    f"Output {number} of the user-provided function does not require gradients. "
                    "The outputs must be computed in a differentiable manner from the input when "
                    "running in strict mode."
                )
        return values, ys

    def vector(
        self,
        v: Any,
        others: tuple[Tensor, ...],
        given: Any,
        what: str = "input to the user-provided function is",
    ) -> tuple[Tensor, ...] | None:
        """Return ``v`` as a tuple of tensors of the shapes of ``others``, which ``given`` holds.

        It may be None beside a single element; ``what`` names that in the message.
        """
        if v is None:
            if len(others) != 1 or others[0].numel() != 1:
                raise RuntimeError(
                    f"The vector v can only be None if the {what} a single Tensor with a single "
                    "element."
                )
            return None
        is_tuple = isinstance(given, tuple)
        vs = _as_tuple(v, "v", self.name)
        if len(vs) != len(others):
            if is_tuple:
                raise RuntimeError(
                    f"v is a tuple of invalid length: should be {len(others)} but got {len(vs)}."
                )
            raise RuntimeError("The given v should contain a single Tensor.")
        for number, (one, other) in enumerate(zip(vs, others, strict=True)):
            if one.shape != other.shape:
                entry = f"Entry {number} in " if is_tuple else ""
                raise RuntimeError(
                    f"{entry}v has invalid size: should be {other.shape} but got {one.shape}."
                )
        return vs if self.create_graph else tuple([one.detach() for one in vs])

    def slopes(self, xs: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return a scalar function's value, and its gradient, recorded."""
        value, _ = self.outputs(xs)
        if isinstance(value, tuple):
            raise RuntimeError(f"The function given to {self.name} should return a single Tensor")
        if value.numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {self.name} should contain a single "
                "element"
            )
        slopes = _grads((value,), xs, None, True)
        _check_dependence(slopes, "The output", self.strict)
        for number, slope in enumerate(slopes):
            if self.strict and slope is not None and not slope.requires_grad:
                raise RuntimeError(
                    "While computing the hessian, found that the jacobian of the user-provided "
                    f"function with respect to input {number} is independent of the input. This is "
                    "not allowed in strict mode. You should ensure that your function is twice "
                    "differentiable and that the jacobian depends on the inputs (this would be "
                    "violated by a linear function for example)."
                )
        return value, _or_zeros(slopes, xs)

    def jacobian_rows(self, number: int, y: Tensor, xs: tuple[Tensor, ...]) -> list[Tensor]:
        """Return the Jacobians of one output, one for each input, by a backward pass a row."""
        elements = y.reshape(-1)
        rows = []
        for n in range(y.numel()):
            found = _grads((elements[n],), xs, None, self.create_graph, retain_graph=True)
            rows.append(self.filled(found, xs, f"Output {number}"))
        return [
            _stacked([row[n] for row in rows], x, (*y.shape, *x.shape)) for n, x in enumerate(xs)
        ]

    def filled(
        self,
        grads: Sequence[Tensor | None],
        like: Sequence[Tensor],
        what: str,
        derived: str = "jacobian",
    ) -> tuple[Tensor, ...]:
        """Return the gradients with zeros for None, after the checks of ``strict``."""
        _check_dependence(grads, what, self.strict)
        if self.strict and self.create_graph:
            for number, one in enumerate(grads):
                if one is not None and not one.requires_grad:
                    raise RuntimeError(
                        f"The {derived} of the user-provided function is independent of input "
                        f"{number}. This is not allowed in strict mode when create_graph=True."
                    )
        return _or_zeros(grads, like)

    def given(self, tensors: Sequence[Tensor], like: Any) -> Any:
        """Return results as a tuple if ``like`` is one, and detached unless ``create_graph``."""
        results = tuple([x if self.create_graph else x.detach() for x in tensors])
        return results if isinstance(like, tuple) else results[0]


# Gradients, where None is a gradient of zeros


def _grads(
    ys: Sequence[Tensor | None],
    xs: tuple[Tensor, ...],
    weights: Sequence[Tensor | None] | None,
    create_graph: bool,
    retain_graph: bool | None = None,
) -> tuple[Tensor | None, ...]:
    """Return the inputs' gradients; None where no output depends on an input."""
    pairs = zip(ys, weights or (None,) * len(ys), strict=True)
    known = [(y, weight) for y, weight in pairs if y is not None and y.requires_grad]
    if not known:
        return (None,) * len(xs)
    roots, given = zip(*known, strict=True)
    return grad(roots, xs, given, retain_graph, create_graph, allow_unused=True)


def _along(
    ys: tuple[Tensor, ...],
    xs: tuple[Tensor, ...],
    vs: tuple[Tensor, ...] | None,
    create_graph: bool,
    strict: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return a directional derivative by double backward.

    The vector-Jacobian product is linear in its ``weights``: they may be zeros.
    """
    weights = tuple([wrap(np.zeros_like(y._array)).requires_grad_() for y in ys])
    grads = _grads(ys, xs, weights, True)
    _check_dependence(grads, "The output", strict)
    return _grads(grads, weights, vs, create_graph)


def _stacked(rows: Sequence[Tensor], like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return tensors stacked and reshaped, recorded as one node."""
    array = np.empty((len(rows), *like.shape), like._array.dtype)
    for place, row in enumerate(rows):
        array[place] = row._array
    out = wrap(array.reshape(shape))
    apart = (len(rows), *like.shape)

    def backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
        parts = grad.reshape(apart)
        return tuple([parts[n] if need else None for n, need in enumerate(needs)])

    record("StackBackward0", tuple(rows), out, backward)
    return out


def _or_zeros(grads: Sequence[Tensor | None], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    pairs = zip(grads, like, strict=True)
    return tuple([wrap(np.zeros_like(x._array)) if one is None else one for one, x in pairs])


def _check_dependence(grads: Sequence[Tensor | None], what: str, strict: bool) -> None:
    for number, one in enumerate(grads):
        if strict and one is None:
            raise RuntimeError(
                f"{what} of the user-provided function is independent of input {number}. This is "
                "not allowed in strict mode."
            )
