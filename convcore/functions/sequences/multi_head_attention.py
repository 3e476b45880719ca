"""Multi-head attention, from the projections of query, key and value to that of the output."""

from __future__ import annotations

import math
import warnings
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import zeros
from convcore.functions._support.arguments import check_arguments
from convcore.functions.drawing.dropout import dropout
from convcore.functions.elementwise.arithmetic import add, mul
from convcore.functions.indexing.masked import masked_fill
from convcore.functions.normalization.softmax import softmax
from convcore.functions.products.matmul import baddbmm, bmm, linear
from convcore.functions.reductions.reduce import mean
from convcore.functions.sequences.attention import scaled_dot_product_attention
from convcore.functions.shapes.broadcast import expand
from convcore.functions.shapes.joining import cat
from convcore.functions.shapes.shape import reshape, squeeze, transpose, unsqueeze
from convcore.functions.shapes.splitting import chunk, split
from convcore.functions.windows.padding import pad

__all__ = ["multi_head_attention_forward"]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the output of multi-head attention, and its weights; `nn.MultiheadAttention` calls it.

    Parameters
    ----------
    query : (L, N, E) or (L, E)
    key : (S, N, Ek) or (S, Ek)
    value : (S, N, Ev) or (S, Ev)
    embed_dim_to_check : int
        E, a multiple of num_heads.
    in_proj_weight : (3 E, E)
        Of query, key and value; None with ``use_separate_proj_weight``, which takes
        ``q_proj_weight`` (E, E), ``k_proj_weight`` (E, Ek) and ``v_proj_weight`` (E, Ev).
    in_proj_bias : (3 E,), optional
    bias_k, bias_v : (1, 1, E), optional
        One more key and value.
    add_zero_attn : bool
        Whether there is one more key and value of zeros.
    dropout_p : float
        Of the weights, if ``training``.
    out_proj_weight, out_proj_bias : (E, E), and (E,) or None
    key_padding_mask : (N, S) or (S,), optional
        Of bool, True where a key is not seen; or of floats, added to the scores.
    attn_mask : (L, S) or (N * num_heads, L, S), optional
        Of bool, True where a query does not see a key; or of floats, added to the scores.
    need_weights : bool
        Whether the weights are returned.
    static_k, static_v : (N * num_heads, S, E / num_heads), optional
        In the place of the projected key and value.
    average_attn_weights : bool
        Whether the weights are the mean over the heads.
    is_causal : bool
        A hint that ``attn_mask``, which must be given, is the causal one.

    Returns
    -------
    output : (L, N, E) or (L, E)
    weights : (N, L, S), (N, num_heads, L, S), those without N, or None

    Raises
    ------
    AssertionError, RuntimeError
        Shapes or dtypes that do not fit together.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NIPS 2017, section 3.2.2.
    """
    check_arguments("multi_head_attention_forward", query=query, key=key, value=value)
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = _as_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
    length, n, width = query.shape
    sources = key.shape[0]
    key_padding_mask = canonical_mask(
        key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the hint is enough
    else:
        is_causal = False
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _projected(query, key, value, weights, in_proj_bias)
    else:
        q, k, v = _projected_at_once(query, key, value, in_proj_weight, in_proj_bias)
    masks = [_stack_of_masks(attn_mask, n * num_heads, length, sources), key_padding_mask]
    if bias_k is not None or bias_v is not None:
        k, v = _with_biases(k, v, bias_k, bias_v, static_k, static_v)
        masks = [_one_more(mask) for mask in masks]
    q = _heads(q, num_heads)
    k = _heads(k, num_heads) if static_k is None else _static(static_k, "static_k", q)
    v = _heads(v, num_heads) if static_v is None else _static(static_v, "static_v", q)
    if add_zero_attn:
        k, v = (cat((x, zeros(x.shape[0], 1, x.shape[2], dtype=x.dtype)), 1) for x in (k, v))
        masks = [_one_more(mask) for mask in masks]
    mask = _merged(masks[0], masks[1], n, num_heads, k.shape[1])
    p = dropout_p if training else 0.0
    scores: Tensor | None = None
    if need_weights:
        out, scores = _attention(q, k, v, mask, p)
    else:
        out = _fused_attention(q, k, v, mask, p, is_causal, num_heads)
    rows = reshape(transpose(out, 0, 1), (length * n, width))
    out = linear(rows, out_proj_weight, out_proj_bias)
    out = reshape(out, (length, n, out.shape[1]))
    if scores is not None:
        scores = reshape(scores, (n, num_heads, length, k.shape[1]))
        scores = mean(scores, 1) if average_attn_weights else scores
    if batched:
        return out, scores
    return squeeze(out, 1), None if scores is None else squeeze(scores, 0)


def _as_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a batch of one; tensors that are the same stay the same."""
    q = unsqueeze(query, 1)
    k = q if key is query else unsqueeze(key, 1)
    return q, k, k if value is key else unsqueeze(value, 1)


# Projections


def _projected_at_once(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Return the projections by one matrix: one product for tensors that are the same."""
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    if query is key is value:
        return chunk(linear(query, weight, bias), 3, -1)
    width = query.shape[-1]
    if key is not value:
        return _projected(query, key, value, chunk(weight, 3), bias)
    w_q, w_kv = split(weight, [width, 2 * width])
    b_q, b_kv = (None, None) if bias is None else split(bias, [width, 2 * width])
    return linear(query, w_q, b_q), *chunk(linear(key, w_kv, b_kv), 2, -1)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weights: tuple, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Return the projections by three matrices."""
    for name, weight in zip("qkv", weights, strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None,) * 3 if bias is None else chunk(bias, 3)
    each = zip((query, key, value), weights, biases, strict=True)
    return tuple([linear(x, weight, b) for x, weight, b in each])


def _heads(x: Tensor, num_heads: int) -> Tensor:
    """Return (L, N, E) as (N * heads, L, E / heads)."""
    length, n, width = x.shape
    return transpose(reshape(x, (length, n * num_heads, width // num_heads)), 0, 1)


def _static(x: Tensor, name: str, q: Tensor) -> Tensor:
    for axis in (0, 2):
        if x.shape[axis] != q.shape[axis]:
            raise AssertionError(
                f"expecting {name}.size({axis}) of {q.shape[axis]}, but got {x.shape[axis]}"
            )
    return x


def _with_biases(
    k: Tensor,
    v: Tensor,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return key and value with one more place."""
    if bias_v is None:
        raise AssertionError("bias_k is set but bias_v is None")
    if bias_k is None:
        raise AssertionError("bias_v is set but bias_k is None")
    if static_k is not None:
        raise AssertionError("bias cannot be added to static key.")
    if static_v is not None:
        raise AssertionError("bias cannot be added to static value.")
    return tuple(  # type: ignore[return-value]
        cat((x, expand(bias, (1, x.shape[1], x.shape[2]))))
        for x, bias in ((k, bias_k), (v, bias_v))
    )


# Attention


def _attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float
) -> tuple[Tensor, Tensor]:
    """Return the output and the weights, of (N * heads, L, E / heads)."""
    q, columns = mul(q, math.sqrt(1 / q.shape[-1])), transpose(k, 1, 2)
    scores = bmm(q, columns) if mask is None else baddbmm(mask, q, columns)
    weights = softmax(scores, -1)
    if p > 0:
        weights = dropout(weights, p)
    return bmm(weights, v), weights


def _fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool, num_heads: int
) -> Tensor:
    """Return the output by `scaled_dot_product_attention`."""
    if mask is not None:
        mask = expand(mask, (q.shape[0], q.shape[1], k.shape[1]))
    n = q.shape[0] // num_heads
    q, k, v = (reshape(x, (n, num_heads, *x.shape[1:])) for x in (q, k, v))
    if mask is not None:
        mask = reshape(mask, (*q.shape[:3], k.shape[2]))
    out = scaled_dot_product_attention(q, k, v, mask, p, causal)
    return reshape(out, (n * num_heads, *out.shape[2:]))


# Masks


def canonical_mask(
    mask: Tensor | None, name: str, other: Tensor | None, other_name: str, dtype: Any
) -> Tensor | None:
    """Return a mask of bool, True where nothing is seen, as floats to add; others as they are."""
    if mask is None:
        return None
    is_bool = mask._array.dtype.kind == "b"
    if not is_bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype != mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both "
            "instead.",
            stacklevel=3,
        )
    return masked_fill(zeros(mask.shape, dtype=dtype), mask, -math.inf) if is_bool else mask


def _stack_of_masks(mask: Tensor | None, n: int, length: int, sources: int) -> Tensor | None:
    """Return (L, S) or (N * heads, L, S) with three axes."""
    if mask is None:
        return None
    expected = (length, sources) if mask.ndim == 2 else (n, length, sources)
    if mask.shape != expected:
        raise RuntimeError(
            f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {expected}."
        )
    return unsqueeze(mask, 0) if mask.ndim == 2 else mask


def _one_more(mask: Tensor | None) -> Tensor | None:
    """Return a mask with one more key, which is seen."""
    return None if mask is None else pad(mask, (0, 1))


def _merged(
    mask: Tensor | None, padding: Tensor | None, n: int, num_heads: int, sources: int
) -> Tensor | None:
    """Return the sum of both masks, (1 or N * heads, 1 or L, S)."""
    if padding is None:
        return mask
    for axis, size in enumerate((n, sources)):
        if padding.shape[axis] != size:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{axis}] to be {size}, but got "
                f"{padding.shape[axis]}"
            )
    padding = expand(reshape(padding, (n, 1, 1, sources)), (n, num_heads, 1, sources))
    padding = reshape(padding, (n * num_heads, 1, sources))
    return padding if mask is None else add(mask, padding)


# Checks


def _is_batched(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    padding: Tensor | None,
    mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Return whether there is a batch axis; raise unless all arguments agree in that."""
    rank = query.ndim
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    lead = f"For {'batched (3-D)' if rank == 3 else 'unbatched (2-D)'} `query`, expected "
    if (key.ndim, value.ndim) != (rank, rank):
        raise AssertionError(
            f"{lead}`key` and `value` to be {rank}-D but found {key.ndim}-D and {value.ndim}-D "
            "tensors respectively"
        )
    if padding is not None and padding.ndim != rank - 1:
        raise AssertionError(
            f"{lead}`key_padding_mask` to be `None` or {rank - 1}-D but found {padding.ndim}-D "
            "tensor instead"
        )
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(
            f"{lead}`attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead"
        )
    expected = (num_heads, query.shape[0], key.shape[0])
    if rank == 2 and mask is not None and mask.ndim == 3 and mask.shape != expected:
        raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {mask.shape}")
    return rank == 3


def _check_sizes(
    query: Tensor, key: Tensor, value: Tensor, width: int, num_heads: int, separate: bool
) -> None:
    if query.shape[-1] != width:
        raise AssertionError(
            f"was expecting embedding dimension of {width}, but got {query.shape[-1]}"
        )
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
