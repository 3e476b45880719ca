"""Layer normalisation over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convcore._errors.calls import typename
from convcore._tensor import Tensor
from convcore.engine.geometry import indices, is_sequence
from convcore.functions._support.arguments import check_arguments, check_optional, number
from convcore.functions.normalization.normalization import _Norm, _normalized

__all__ = ["layer_norm"]


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last axes (layer normalisation).

    Parameters
    ----------
    input : Tensor (*, *normalized_shape), floating point
    normalized_shape : ints
        The sizes of those axes.
    weight, bias : normalized_shape, or None for ones and zeros
    eps : float

    Returns
    -------
    Tensor
        Of the input's shape, contiguous.

    Raises
    ------
    TypeError
        normalized_shape is no sequence of ints.
    RuntimeError
        Shapes or dtypes that do not go together.
    NotImplementedError
        An integer tensor.

    References
    ----------
    J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016.

    Examples
    --------
    >>> import convcore
    >>> layer_norm(convcore.tensor([[1.0, 3.0]]), (2,), eps=1e-12)
    tensor([[-1.,  1.]])
    """
    check_arguments("layer_norm", input=input)
    check_optional("layer_norm", weight=weight, bias=bias)
    sizes = normalized_sizes("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    norm = _Norm("NativeLayerNormBackward0", number("layer_norm", "eps", eps), axes=len(sizes))
    return _normalized("layer_norm", norm, input, weight, bias)[0]


def normalized_sizes(
    function: str, input: Tensor, normalized_shape: Any, **affine: Tensor | None
) -> tuple[int, ...]:
    """Return the sizes of the axes to normalise over, which are the input's last ones."""
    sizes = _sizes(function, normalized_shape)
    shape = input._array.shape
    for name, value in affine.items():
        if value is not None and value._array.shape != sizes:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(value._array.shape)} and normalized_shape = {list(sizes)}"
            )
    if shape[max(0, len(shape) - len(sizes)) :] != sizes:
        wanted = ", ".join(["*", *map(str, sizes)])
        raise RuntimeError(
            f"Given normalized_shape={list(sizes)}, expected input with shape [{wanted}], but got "
            f"input of size{list(shape)}"
        )
    return sizes


def _sizes(function: str, normalized_shape: Any) -> tuple[int, ...]:
    if not is_sequence(normalized_shape):
        raise TypeError(
            f"{function}(): argument 'normalized_shape' (position 2) must be tuple of ints, not "
            f"{typename(normalized_shape)}"
        )
    if len(normalized_shape) == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    return indices("normalized_shape", normalized_shape)
