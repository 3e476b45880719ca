"""Multi-head attention layer."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import empty
from convcore.nn import functional, init
from convcore.nn.modules.linear import NonDynamicallyQuantizableLinear
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Multi-head attention: each query gets a mean of the values, weighted by its keys.

    Parameters
    ----------
    embed_dim : int
        E, a multiple of num_heads.
    num_heads : int
    dropout : float
        Of the weights, while training.
    bias : bool
        Whether the projections have biases.
    add_bias_kv, add_zero_attn : bool
        Whether there is one more key and value, learned or of zeros.
    kdim, vdim : int, optional
        The numbers of features of key and value; E by default.
    batch_first : bool
        Whether tensors are (N, L, E), not (L, N, E).
    device, dtype
        Of the parameters.

    Attributes
    ----------
    in_proj_weight : Parameter, (3 E, E), or None
    q_proj_weight, k_proj_weight, v_proj_weight : Parameter (E, E), (E, kdim), (E, vdim), or None
        Instead of in_proj_weight, where kdim or vdim is not E.
    in_proj_bias : Parameter, (3 E,), or None
    out_proj : Linear
    bias_k, bias_v : Parameter, (1, 1, E), or None

    Raises
    ------
    ValueError, AssertionError
        Sizes that are not positive, or num_heads does not divide embed_dim.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NIPS 2017, section 3.2.2.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        options = {"device": device, "dtype": dtype}
        together = self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": None if together else (embed_dim, embed_dim),
            "k_proj_weight": None if together else (embed_dim, self.kdim),
            "v_proj_weight": None if together else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if together else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, shape and Parameter(empty(shape, **options)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, **options)
        for name in ("bias_k", "bias_v"):
            made = Parameter(empty(1, 1, embed_dim, **options)) if add_bias_kv else None
            self.register_parameter(name, made)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Xavier uniform projections, Xavier normal bias_k and bias_v, other biases zero."""
        for weight in (
            *(self.in_proj_weight, self.q_proj_weight),
            *(self.k_proj_weight, self.v_proj_weight),
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output and the weights; see `nn.functional.multi_head_attention_forward`."""
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            query, key, value = _time_first(query, key, value)
        out, weights = functional.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(1, 0) if swapped else out), weights


def _time_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Exchange the first two axes; tensors that are the same stay the same."""
    q = query.transpose(1, 0) if query.dim() == 3 else query
    k = q if key is query else key.transpose(1, 0) if key.dim() == 3 else key
    v = k if value is key else value.transpose(1, 0) if value.dim() == 3 else value
    return q, k, v
