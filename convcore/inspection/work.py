"""Multiply-add counts of layers: convolutions, linear, recurrent and attention layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from convcore import nn
from convcore._tensor import Tensor

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)

# Layers whose products are counted: what they call is not looked at.
COUNTED = (*_CONVOLUTIONS, *_TRANSPOSED, *_RECURRENT, nn.Linear, nn.MultiheadAttention)

# Functions of products, which are not counted where a forward calls them itself.
PRODUCTS = frozenset(
    (
        *("conv1d", "conv2d", "conv3d", "linear", "einsum", "tensordot"),
        *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cdist"),
        *("matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm"),
        *("scaled_dot_product_attention", "multi_head_attention_forward"),
    )
)


def multiply_adds(
    module: nn.Module, args: tuple, output: Any, kwargs: Mapping[str, Any] | None = None
) -> int:
    """Return the multiply-adds of one call of a layer of `COUNTED`; 0 for other modules.

    Parameters
    ----------
    module : Module
    args : tuple
        The call's arguments.
    output : object
        The call's result.
    kwargs : dict, optional
        The call's keyword arguments.

    Returns
    -------
    int
        N * C_out * P * K for a convolution with P output pixels and K products a sum; for a
        transposed one as many as for the convolution that it transposes; in_features for each
        output element of a linear layer; the elements of all matrices of a recurrent layer for
        each step of a sequence; of attention, those of the projections and of both products.
    """
    if isinstance(module, _CONVOLUTIONS) and isinstance(output, Tensor):
        return output.numel() * math.prod(module.weight.shape[1:])
    if isinstance(module, nn.Linear) and isinstance(output, Tensor):
        return output.numel() * module.in_features
    given = [*args, *(kwargs or {}).values()]
    if not given:
        return 0
    if isinstance(module, _TRANSPOSED) and isinstance(given[0], Tensor):
        return given[0].numel() * math.prod(module.weight.shape[1:])
    if isinstance(module, _RECURRENT):
        x = getattr(given[0], "data", given[0])  # of a PackedSequence, its steps
        matrices = sum(one.numel() for one in module.parameters() if one.dim() == 2)
        return x.numel() // module.input_size * matrices
    if isinstance(module, nn.MultiheadAttention):
        return _of_attention(module, *_named(args, kwargs or {}, ("query", "key", "value")))
    return 0


def _named(args: tuple, kwargs: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return arguments by their names, wherever they stand in a call."""
    return [args[i] if i < len(args) else kwargs[name] for i, name in enumerate(names)]


def _of_attention(module: nn.MultiheadAttention, query: Any, key: Any, value: Any) -> int:
    """Return the multiply-adds of the projections, the scores, and the sums that they weight."""
    size = module.embed_dim
    queries = query.numel() // size
    keys = key.shape[1 if module.batch_first and key.dim() == 3 else 0]
    keys += (module.bias_k is not None) + module.add_zero_attn
    return size * (2 * queries * (size + keys) + key.numel() + value.numel())
