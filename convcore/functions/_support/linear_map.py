"""Linear maps of arrays, recorded: the gradient of each is its adjoint, whose gradient it is."""

from __future__ import annotations

from collections.abc import Callable

from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.functions._support.arguments import computed


def linear_map(
    x: Tensor,
    forward: Callable,
    adjoint: Callable,
    names: tuple[str, str],
    saved: tuple[Tensor, ...] = (),
) -> Tensor:
    """Return ``forward(array, *indices)`` of a tensor's array, recorded.

    Parameters
    ----------
    x : Tensor
    forward, adjoint : callable(array, *indices) -> array
    names : (str, str)
        PyTorch's names of their nodes, without the "Backward0" at the end.
    saved : tuple of Tensors
        The indices, if the maps take any; backward detects in-place changes of them.
    """
    out = wrap(computed(forward, x._array, *[tensor._array for tensor in saved]))
    record(
        f"{names[0]}Backward0",
        (x,),
        out,
        lambda needs, grad, *saved: linear_map(grad, adjoint, forward, names[::-1], saved),
        saved,
    )
    return out
