"""Scaled dot-product attention."""

from __future__ import annotations

import math

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.functions._support.arguments import check_arguments, check_optional
from convcore.functions.drawing.dropout import dropout
from convcore.functions.elementwise.arithmetic import add, mul
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.indexing.index_along import repeat_interleave
from convcore.functions.indexing.masked import masked_fill
from convcore.functions.normalization.softmax import softmax
from convcore.functions.products.matmul import matmul
from convcore.functions.shapes.shape import transpose

__all__ = ["scaled_dot_product_attention"]


@in_float32
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(query @ key^T * scale + mask) @ value.

    Parameters
    ----------
    query : (..., heads, L, E)
    key : (..., heads, S, E)
    value : (..., heads, S, Ev)
    attn_mask : Tensor, optional
        Broadcasts to (..., L, S): of bool, True where a query sees a key; or of floats, added.
    dropout_p : float
        Of the weights; it applies whenever it is not 0.
    is_causal : bool
        Whether query i sees the keys up to i; then there is no mask.
    scale : float, optional
        1 / sqrt(E) by default.
    enable_gqa : bool
        Whether key and value may have fewer heads, each of them for a group of query heads.

    Returns
    -------
    (..., heads, L, Ev)
        Zeros for a query that sees no key.

    Raises
    ------
    RuntimeError
        Shapes or dtypes that do not fit together, or a mask with ``is_causal``.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NIPS 2017, section 3.2.1.
    """
    check_arguments("scaled_dot_product_attention", query=query, key=key, value=value)
    check_optional("scaled_dot_product_attention", attn_mask=attn_mask)
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        key, value = _for_all_heads(query, key, value)
    if is_causal:
        attn_mask = wrap(np.tri(query.shape[-2], key.shape[-2], dtype=bool))
    # The smaller of the factors is scaled, not the scores.
    by = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = matmul(mul(query, by), transpose(key, -2, -1))
    weights = _weights(scores, attn_mask)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return matmul(weights, value)


def _weights(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the softmax of masked scores; zeros in rows that are masked as a whole."""
    if mask is None:
        return softmax(scores, -1)
    if mask._array.dtype.kind == "b":
        scores = masked_fill(scores, wrap(~mask._array), -math.inf)
    else:
        scores = add(scores, mask if mask.dtype == scores.dtype else mask.to(scores.dtype))
    hidden = (scores._array == -math.inf).all(-1, keepdims=True)
    if not hidden.any():
        return softmax(scores, -1)
    weights = softmax(masked_fill(scores, wrap(hidden), 0.0), -1)
    return masked_fill(weights, wrap(hidden), 0.0)


def _for_all_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Return key and value with as many heads as the query has."""
    heads = query.shape[-3]
    if heads % key.shape[-3] or heads % value.shape[-3]:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, but got "
            f"{heads} in query, {key.shape[-3]} in key and {value.shape[-3]} in value"
        )
    return tuple(  # type: ignore[return-value]
        x if x.shape[-3] == heads else repeat_interleave(x, heads // x.shape[-3], -3)
        for x in (key, value)
    )


# As PyTorch's errors name them.
_C_TYPES = {
    **{"float16": "c10::Half", "float32": "float", "float64": "double", "bool": "bool"},
    **{"int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char"},
}


def _c_type(tensor: Tensor) -> str:
    name = tensor._array.dtype.name
    return _C_TYPES.get(name, name)


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> None:
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{_c_type(query)} key.dtype: {_c_type(key)} and value.dtype: {_c_type(value)} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if not query.is_floating_point():
        raise RuntimeError(f"Expected query, key, and value to be of floats, but got {query.dtype}")
    if mask is None:
        return
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if mask._array.dtype not in (np.bool_, np.float32, query._array.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {_c_type(mask)} and  query.dtype: {_c_type(query)} instead."
        )
