"""Transformer: encoder and decoder layers, stacks of them, and both together.

A. Vaswani et al., "Attention is all you need", NIPS 2017.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore._tensor.creation import full
from convcore.functions.sequences.multi_head_attention import canonical_mask
from convcore.functions.shapes.slicing import triu
from convcore.nn import functional, init
from convcore.nn.modules.activation import GELU, ReLU
from convcore.nn.modules.container import ModuleList
from convcore.nn.modules.dropout import Dropout
from convcore.nn.modules.linear import Linear
from convcore.nn.modules.module import Module
from convcore.nn.modules.multihead_attention import MultiheadAttention
from convcore.nn.modules.normalization import LayerNorm
from convcore.overrides import intercepted

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]

_MOST_LAYERS = 2**16  # more are a mistake, and would be copied until memory ends


def _square_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    return triu(full((sz, sz), -math.inf, dtype=dtype, device=device), diagonal=1)


def _is_causal(mask: Tensor | None, is_causal: bool | None, x: Tensor, batch_first: bool) -> bool:
    """Return whether a mask is the causal one; a hint, True or False, decides."""
    if is_causal is not None or mask is None:
        return is_causal is True
    size = x.shape[1 if batch_first and x.ndim == 3 else 0]
    if mask.shape != (size, size):
        return False
    return bool(np.array_equal(mask._array, _square_mask(size, dtype=mask.dtype)._array))


def _clones(module: Module, n: int) -> ModuleList:
    """Return copies of a layer; an error at once for more than any machine holds."""
    if n > _MOST_LAYERS:
        raise RuntimeError(f"argument 'num_layers' must be at most {_MOST_LAYERS}, got {n}")
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation: Any) -> Any:
    """Return a function by its name; a function as it is."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)


class _Layer(Module):
    """What encoder and decoder layers share."""

    _attentions: tuple[str, ...] = ("self_attn",)  # in the order of their parameters

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **options}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, **attention))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first = norm_first
        numbers = range(1, len(self._attentions) + 2)
        for number in numbers:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
            setattr(self, f"norm{number}", norm)
        for number in numbers:
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _residual(self, x: Tensor, number: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x plus a block of it, normalised before the block or after the sum."""
        norm = getattr(self, f"norm{number}")
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _sa_block(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        last = self.dropout3 if "dropout3" in self._modules else self.dropout2
        return last(self.linear2(self.dropout(intercepted(self.activation)(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Transformer encoder layer: self-attention and a feed-forward network.

    Parameters
    ----------
    d_model : int
        E, the number of features.
    nhead : int
        Of attention heads.
    dim_feedforward : int
    dropout : float
    activation : 'relu', 'gelu' or callable
    layer_norm_eps : float
    batch_first : bool
        Whether tensors are (N, S, E), not (S, N, E).
    norm_first : bool
        Whether each block is normalised before it, not after it.
    bias : bool
        Whether linear and normalisation layers have biases.
    device, dtype
        Of the parameters.

    Raises
    ------
    RuntimeError
        An activation of another name.

    Examples
    --------
    >>> import convcore
    >>> TransformerEncoderLayer(16, 2)(convcore.ones(10, 3, 16)).shape
    torch.Size([10, 3, 16])
    """

    @property
    def activation_relu_or_gelu(self) -> int:
        """1 of relu, 2 of gelu, 0 of another activation."""
        function = self.activation
        if function is functional.relu or isinstance(function, ReLU):
            return 1
        return 2 * (function is functional.gelu or isinstance(function, GELU))

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the encoded sequences; the masks are those of `MultiheadAttention`."""
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype
        )
        mask = canonical_mask(src_mask, "src_mask", None, "", src.dtype)
        x = self._residual(src, 1, lambda x: self._sa_block(x, mask, padding, is_causal))
        return self._residual(x, 2, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Transformer decoder layer: self-attention, attention to the memory, feed-forward network.

    The parameters are those of `TransformerEncoderLayer`.
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded sequences; the masks are those of `MultiheadAttention`."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = self._residual(tgt, 1, lambda x: self._sa_block(x, *own))
        x = self._residual(x, 2, lambda x: self._mha_block(x, memory, *other))
        return self._residual(x, 3, self._ff_block)

    def _mha_block(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        padding: Tensor | None,
        is_causal: bool,
    ) -> Tensor:
        options = {"attn_mask": mask, "key_padding_mask": padding, "is_causal": is_causal}
        out = self.multihead_attn(x, memory, memory, need_weights=False, **options)[0]
        return self.dropout2(out)


class TransformerEncoder(Module):
    """Stack of encoder layers.

    Parameters
    ----------
    encoder_layer : Module
        Copied ``num_layers`` times, its parameters too.
    num_layers : int
    norm : Module, optional
        Applied at the end.
    enable_nested_tensor, mask_check : bool
        Have no effect: there are no nested tensors.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the encoded sequences; ``is_causal``: None looks whether the mask is causal."""
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", mask, "mask", src.dtype
        )
        mask = canonical_mask(mask, "mask", None, "", src.dtype)
        causal = _is_causal(mask, is_causal, src, self.layers[0].self_attn.batch_first)
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Stack of decoder layers.

    Parameters
    ----------
    decoder_layer : Module
        Copied ``num_layers`` times, its parameters too.
    num_layers : int
    norm : Module, optional
        Applied at the end.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded sequences; ``tgt_is_causal``: None looks at ``tgt_mask``."""
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self.layers[0].self_attn.batch_first)
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """Transformer: an encoder, and a decoder that attends to what it gives.

    Parameters
    ----------
    d_model : int
        E, the number of features.
    nhead : int
    num_encoder_layers, num_decoder_layers : int
    dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        As for `TransformerEncoderLayer`.
    custom_encoder, custom_decoder : Module, optional
        In the place of those.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import convcore
    >>> net = Transformer(16, 2, 1, 1, 32)
    >>> net(convcore.ones(10, 3, 16), convcore.ones(20, 3, 16)).shape
    torch.Size([20, 3, 16])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        layer = (*shape, batch_first, norm_first, bias, device, dtype)
        norm = {"eps": layer_norm_eps, "bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            one: Module = TransformerEncoderLayer(*layer)
            custom_encoder = TransformerEncoder(one, num_encoder_layers, LayerNorm(d_model, **norm))
        self.encoder = custom_encoder
        if custom_decoder is None:
            one = TransformerDecoderLayer(*layer)
            custom_decoder = TransformerDecoder(one, num_decoder_layers, LayerNorm(d_model, **norm))
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return (T, N, E) for ``src`` (S, N, E) and ``tgt`` (T, N, E); N first if batch_first.

        Raises
        ------
        RuntimeError
            The batches or the features are not of the same size.
        """
        axis = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[axis] != tgt.shape[axis]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask (sz, sz): -inf above the diagonal, else 0."""
        return _square_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
