"""Parameters flattened into one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor
from convcore.functions.shapes.joining import cat

__all__ = ["parameters_to_vector", "vector_to_parameters"]


@names_arguments
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Flatten and concatenate parameters into one vector; gradients flow back to them.

    Parameters
    ----------
    parameters : iterable of Tensors

    Raises
    ------
    RuntimeError
        There are no parameters, or one is not contiguous in memory.

    Examples
    --------
    >>> import convcore
    >>> parameters_to_vector([convcore.zeros(2, 1), convcore.ones(2)])
    tensor([0., 0., 1., 1.])
    """
    flat = []
    for parameter in parameters:
        if not isinstance(parameter, Tensor):
            kind = type(parameter).__name__
            raise TypeError(
                f"parameters_to_vector(): argument 'parameters' must be Tensors, found {kind}"
            )
        flat.append(parameter.view(-1))
    return cat(flat)


@names_arguments
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set each parameter from its part of a vector; its ``data`` becomes a view of the vector.

    Parameters
    ----------
    vec : Tensor with one axis
    parameters : iterable of Tensors

    Raises
    ------
    TypeError
        ``vec`` is not a Tensor.
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
