"""jacrev, jacfwd and hessian: whole Jacobians, by a backward pass an output element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor
from convcore.func._derivatives import Argnums, Level, _parts, chosen, replaced
from convcore.func._trees import filled, leaves, mapped
from convcore.functions.joining import stack

__all__ = ["hessian", "jacfwd", "jacrev"]


def jacrev(
    func: Callable,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """Return a function that computes the Jacobian of ``func``.

    Parameters
    ----------
    func : callable
        Returns a tree of Tensors; with ``has_aux``, the pair of that and anything else.
    argnums, has_aux
        As for `grad`.
    chunk_size : ignored

    Returns
    -------
    callable
        Takes the arguments of ``func``. For each Tensor of its value and each one to differentiate
        by, the Jacobian has the first one's shape followed by the second one's.

    Examples
    --------
    >>> import convcore
    >>> jacrev(lambda x: x * x)(convcore.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        with Level() as level:
            wanted = chosen(args, argnums)
            inputs = mapped(level.input, wanted)
            out = func(*replaced(args, argnums, inputs), **kwargs)
            out, aux = _parts(out, has_aux, "jacrev(f, *primals)")
            xs = list(leaves(inputs))
            found = mapped(lambda y: filled(wanted, _rows(level, y, xs)), out)
            aux = mapped(level.leave, aux)
        return (found, aux) if has_aux else found

    return jacobian


def _rows(level: Level, y: Any, xs: list[Tensor]) -> list[Tensor]:
    """Return the Jacobians of one Tensor by each input."""
    if not isinstance(y, Tensor):
        raise RuntimeError(
            f"jacrev(f, *primals): Expected f(*primals) to return Tensors, got {type(y)}"
        )
    elements = y.reshape(-1)
    rows = [level.gradients([elements[n]], xs) for n in range(y.numel())]
    return [
        stack([row[n] for row in rows]).reshape(*y.shape, *x.shape)
        if rows
        else x.new_zeros((*y.shape, *x.shape))
        for n, x in enumerate(xs)
    ]


def jacfwd(
    func: Callable, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """Return a function that computes the Jacobian; here the same way as `jacrev` does it."""
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func: Callable, argnums: Argnums = 0) -> Callable:
    """Return a function that computes the second derivatives of ``func``; see `jacrev`.

    Examples
    --------
    >>> import convcore
    >>> hessian(lambda x: x[0] * x[1])(convcore.tensor([1.0, 2.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
