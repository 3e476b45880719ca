"""Functions of `torch` that are methods, copies of views, or layers' functions in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore import Tensor
from convcore.functions.elementwise import complex_parts
from convcore.nn import functional as F

__all__ = [
    "_cast_Long",
    "batch_norm",
    "constant_pad_nd",
    "embedding",
    "instance_norm",
    "native_channel_shuffle",
]


def of_a_method(name: str) -> Callable | None:
    """Return ``torch.zero_`` and the like, which call a method, or ``torch.permute_copy``."""
    if name.endswith("_") and hasattr(Tensor, name):
        return lambda input, *args, **kwargs: getattr(input, name)(*args, **kwargs)
    plain = name.removesuffix("_copy")
    found = getattr(Tensor, plain, None) or getattr(complex_parts, plain, None)
    if plain == name or found is None:
        return None
    return lambda input, *args, out=None, **kwargs: _copied(found(input, *args, **kwargs), out)


def _copied(result: Any, out: Any = None) -> Any:
    """Return copies of views, or write them into ``out``: a tensor, or one for each."""
    if isinstance(result, Tensor):
        return result.clone() if out is None else out.copy_(result)
    outs = [None] * len(result) if out is None else out
    return tuple([_copied(*pair) for pair in zip(result, outs, strict=True)])


def _cast_Long(input: Tensor, non_blocking: bool = False) -> Tensor:
    """Return the tensor as int64."""
    return input.long()


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Return what `F.batch_norm` returns of the same arguments."""
    statistics = running_mean, running_var
    return F.batch_norm(input, *statistics, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Return what `F.instance_norm` returns of the same arguments."""
    statistics = running_mean, running_var
    return F.instance_norm(input, *statistics, weight, bias, use_input_stats, momentum, eps)


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return what `F.embedding` returns of the same arguments."""
    padding = None if padding_idx < 0 else padding_idx
    return F.embedding(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


def constant_pad_nd(input: Tensor, pad: Any, value: float = 0) -> Tensor:
    """Return what `F.pad` returns of the same arguments."""
    return F.pad(input, pad, "constant", value)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return what `F.channel_shuffle` returns of the same arguments."""
    return F.channel_shuffle(input, groups)


# Functions that take their arguments in one order in both places.
ALIKE = (
    *("cosine_embedding_loss", "ctc_loss", "hinge_embedding_loss"),
    *("margin_ranking_loss", "poisson_nll_loss", "rms_norm", "rrelu", "triplet_margin_loss"),
    *("adaptive_max_pool1d",),
)
