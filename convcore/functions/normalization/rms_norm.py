"""Root mean square normalisation over the last axes."""

from __future__ import annotations

from collections.abc import Sequence

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor
from convcore._tensor.dtypes import INEXACT
from convcore._tensor.limits import finfo
from convcore.functions._support.arguments import (
    check_arguments,
    check_kind,
    check_optional,
    number,
)
from convcore.functions.elementwise.arithmetic import add, mul
from convcore.functions.elementwise.elementwise import rsqrt, square
from convcore.functions.normalization.layer_norm import normalized_sizes
from convcore.functions.reductions.reduce import mean

__all__ = ["rms_norm"]


@names_arguments
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root of the mean square over the last axes.

    Parameters
    ----------
    input : Tensor (*, *normalized_shape), floating point
    normalized_shape : ints
        The sizes of those axes.
    weight : normalized_shape, or None for ones
    eps : float, optional
        Added to the mean square; by default the machine epsilon of the dtype it is computed in.

    Returns
    -------
    Tensor
        Of the input's shape and dtype; float16 and bfloat16 are computed in float32.

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError
        As `layer_norm`.

    References
    ----------
    B. Zhang, R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.

    Examples
    --------
    >>> import convcore
    >>> rms_norm(convcore.tensor([[1.0, 7.0]]), (2,))
    tensor([[0.2000, 1.4000]])
    """
    check_arguments("rms_norm", input=input)
    check_optional("rms_norm", weight=weight)
    axes = range(-len(normalized_sizes("rms_norm", input, normalized_shape, weight=weight)), 0)
    check_kind("rms_norm", input, INEXACT)
    x = input.float() if input._array.dtype.char in "eE" else input
    eps = finfo(x.dtype).eps if eps is None else number("rms_norm", "eps", eps)
    scale = rsqrt(add(mean(square(x), tuple(axes), keepdim=True), eps))
    out = mul(x, scale)
    if weight is not None:
        out = mul(out, weight.to(out.dtype))
    return out if x is input else out.to(input.dtype)
