"""The bilinear map of two vectors."""

from __future__ import annotations

from convcore._tensor import Tensor
from convcore.functions._support.arguments import check_arguments, check_optional
from convcore.functions.arithmetic import add
from convcore.functions.broadcast import cast
from convcore.functions.matmul import matmul
from convcore.functions.shape import permute, reshape, squeeze, unsqueeze

__all__ = ["bilinear"]


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x1^T A x2 + b for each pair of vectors.

    Parameters
    ----------
    input1 : (..., in1_features)
    input2 : (..., in2_features)
    weight : (out_features, in1_features, in2_features)
    bias : (out_features,), optional

    Returns
    -------
    (..., out_features)

    Raises
    ------
    RuntimeError
        Shapes that do not fit together.
    """
    check_arguments("bilinear", input1=input1, input2=input2, weight=weight)
    check_optional("bilinear", bias=bias)
    _check(input1, input2, weight, bias)
    n_out, n_1, n_2 = weight.shape
    # (rows, n_1) @ (n_1, n_out * n_2): all outputs' matrices in one product.
    maps = reshape(permute(weight, 1, 0, 2), (n_1, n_out * n_2))
    half = reshape(matmul(input1, maps), (*input1.shape[:-1], n_out, n_2))
    out = squeeze(matmul(half, unsqueeze(input2, -1)), -1)
    if out._array.dtype != input1._array.dtype:  # the products are autocast's, their sum is not
        out = cast(out, input1._array.dtype)
    return out if bias is None else add(out, bias)


def _check(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if weight.ndim != 3:
        raise RuntimeError(f"bilinear(): weight must have 3 dimensions, got {weight.ndim}")
    if x1.ndim != x2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {x1.ndim} and {x2.ndim}"
        )
    if not x1.ndim:
        raise RuntimeError("bilinear(): inputs must have at least one dimension, got none")
    for axis, (one, other) in enumerate(zip(x1.shape[:-1], x2.shape[:-1], strict=True)):
        if one != other:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {axis}: got {one} and "
                f"{other}"
            )
    for name, got, expected in (
        ("input1", x1.shape[-1], weight.shape[1]),
        ("input2", x2.shape[-1], weight.shape[2]),
        ("bias", weight.shape[0] if bias is None else bias.shape[0], weight.shape[0]),
    ):
        if got != expected:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {got} but expected "
                f"{expected}"
            )
