"""Linear maps of arrays, recorded: the gradient of each is its adjoint, whose gradient it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.functions._support.arguments import computed
from convcore.functions._support.dispatch import flat_in, later_place_of


class Linear(NamedTuple):
    """The arguments of `linear_map` but its tensors, for arrays of one shape."""

    forward: Callable
    adjoint: Callable
    names: tuple[str, str]
    flat: bool = False
    linear: Callable | None = None


def linear_map(
    x: Tensor,
    forward: Callable,
    adjoint: Callable,
    names: tuple[str, str],
    flat: bool = False,
    linear: Callable | None = None,
    saved: tuple[Tensor, ...] = (),
    described: bool = False,
) -> Tensor:
    """Return ``forward(array, *indices)`` of a tensor's array, recorded.

    Parameters
    ----------
    x : Tensor
    forward, adjoint : callable(array, *indices) -> array
    names : (str, str)
        PyTorch's names of their nodes, without the "Backward0" at the end.
    flat : bool
        Whether the gradient counts as a function of ``x`` too, as in PyTorch: see `flat_in`.
    linear : callable, optional
        ``forward`` without the constant that it adds, if it adds one.
    saved : tuple of Tensors
        The indices, if the maps take any; backward detects in-place changes of them.
    described : bool
        Whether to `describe` ``forward``, which takes no indices then.
    """
    out = wrap(computed(forward, x._array, *[tensor._array for tensor in saved]))
    place = later_place_of(x) if flat and mode.enabled else None

    def backward(needs: tuple[bool, ...], grad: Tensor, *saved: Tensor) -> Tensor:
        result = linear_map(grad, adjoint, linear or forward, names[::-1], saved=saved)
        return result if place is None else flat_in(result, place)

    record(f"{names[0]}Backward0", (x,), out, backward, saved)
    if described:
        describe(out, forward=forward)
    return out
