"""Attention, from scaled products to layers of several heads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import convcore
from convcore import Tensor
from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError
from convcore.onnx.sizes import FreeSize
from convcore.onnx.translation import composes


@composes("scaled_dot_product_attention")
def _attention(
    *,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if dropout_p:
        raise OnnxError(f"dropout_p={dropout_p}, which drops in evaluation mode too")
    if enable_gqa:
        heads = query.shape[-3]
        key, value = (x.repeat_interleave(heads // x.shape[-3], -3) for x in (key, value))
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        if isinstance(rows, FreeSize) or isinstance(columns, FreeSize):
            attn_mask = convcore.arange(rows).unsqueeze(1) >= convcore.arange(columns)
        else:
            attn_mask = convcore.from_numpy(np.tri(rows, columns, dtype=bool))
    weights = _weights(query, key, attn_mask, scale)
    return weights.matmul(value)


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """Return the shares of the values; softmax has none where all is hidden, and they are 0."""
    by = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = (query * by).matmul(key.transpose(-2, -1))
    if mask is None:
        return scores.softmax(-1)
    if mask.dtype is not convcore.bool:
        weights = (scores + mask.to(scores.dtype)).softmax(-1)
        return weights.masked_fill(mask == -math.inf, 0.0)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return weights.masked_fill(~mask, 0.0)


@composes("multi_head_attention_forward")
def _multi_head(
    *,
    query: Any,
    key: Any,
    value: Any,
    num_heads: int,
    need_weights: bool,
    average_attn_weights: bool,
    out_proj_weight: Any,
    out_proj_bias: Any,
    **others: Any,
) -> Any:
    for name in ("bias_k", "bias_v", "static_k", "static_v"):
        if others[name] is not None:
            raise OnnxError(f"with {name}")
    if others["add_zero_attn"] or (others["training"] and others["dropout_p"]):
        raise OnnxError("with add_zero_attn, or dropout in training mode")
    if query.ndim == 2:
        raise OnnxError("without a batch")
    # (L, N, E) as (N, heads, L, E / heads)
    q, k, v = (
        x.reshape(*x.shape[:2], num_heads, -1).permute(1, 2, 0, 3)
        for x in _projected(query, key, value, others)
    )
    mask = _mask(others["attn_mask"], others["key_padding_mask"], num_heads, query.dtype)
    if others["is_causal"] and mask is None:
        raise OnnxError("is_causal without attn_mask")
    weights = None
    if need_weights:
        scores = (q * (1 / math.sqrt(q.shape[-1]))).matmul(k.transpose(-2, -1))
        weights = (scores if mask is None else scores + mask).softmax(-1)
        output = weights.matmul(v)
    else:
        output = F.scaled_dot_product_attention(q, k, v, mask)
    output = F.linear(output.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    if weights is None:
        return output, None
    return output, weights.mean(1) if average_attn_weights else weights


def _projected(query: Any, key: Any, value: Any, given: dict[str, Any]) -> list[Tensor]:
    bias = given["in_proj_bias"]
    if not given["use_separate_proj_weight"] and query is key and key is value:
        return list(F.linear(query, given["in_proj_weight"], bias).chunk(3, -1))
    if given["use_separate_proj_weight"]:
        weights = [given[f"{name}_proj_weight"] for name in "qkv"]
    else:
        weights = given["in_proj_weight"].chunk(3)
    biases = [None] * 3 if bias is None else bias.chunk(3)
    triples = zip((query, key, value), weights, biases, strict=True)
    return [F.linear(x, weight, b) for x, weight, b in triples]


def _mask(mask: Any, padding: Any, num_heads: int, dtype: Any) -> Tensor | None:
    """Return what is added to the scores (N, heads, L, S)."""
    added = []
    if mask is not None:
        # (L, S), or (N * heads, L, S)
        added.append(mask if mask.ndim == 2 else mask.reshape(-1, num_heads, *mask.shape[1:]))
    if padding is not None:
        added.append(padding.unsqueeze(1).unsqueeze(2))
    floats = [_as_floats(each, dtype) for each in added]
    return None if not floats else floats[0] if len(floats) == 1 else floats[0] + floats[1]


def _as_floats(mask: Tensor, dtype: Any) -> Tensor:
    """Return a mask of bools, True where nothing is seen, as floats to add."""
    if mask.dtype is not convcore.bool:
        return mask
    return convcore.zeros_like(mask, dtype=dtype).masked_fill(mask, -math.inf)
