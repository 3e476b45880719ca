"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from convcore._tensor import Tensor
from convcore.functions.joining import cat

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters, one parameter after the other, in one vector.

    Gradients flow back to the parameters.

    Parameters
    ----------
    parameters : iterable of Tensors

    Raises
    ------
    RuntimeError
        There are no parameters, or one does not lie densely in memory.

    Examples
    --------
    >>> import convcore
    >>> parameters_to_vector([convcore.zeros(2, 1), convcore.ones(2)])
    tensor([0., 0., 1., 1.])
    """
    return cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give each parameter its elements of a vector: its ``data`` is a view of it then.

    Parameters
    ----------
    vec : Tensor with one axis
    parameters : iterable of Tensors

    Raises
    ------
    TypeError
        ``vec`` is no tensor.
    RuntimeError
        The vector has too few elements.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        stop = start + parameter.numel()
        parameter.data = vec[start:stop].view_as(parameter).data
        start = stop
