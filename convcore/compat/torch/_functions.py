"""Functions of `torch` that are methods, copies of views, or layers' functions in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore import Tensor
from convcore.nn import functional as F


def of_a_method(name: str) -> Callable | None:
    """Return ``torch.zero_`` and the like, which call a method, or ``torch.permute_copy``."""
    if name.endswith("_") and hasattr(Tensor, name):
        return lambda input, *args, **kwargs: getattr(input, name)(*args, **kwargs)
    plain = name.removesuffix("_copy")
    if plain != name and hasattr(Tensor, plain):
        return lambda input, *args, **kwargs: _copied(getattr(input, plain)(*args, **kwargs))
    return None


def _copied(result: Any) -> Any:
    return result.clone() if isinstance(result, Tensor) else tuple(map(_copied, result))


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


# Functions that take their arguments in one order in both places.
ALIKE = (
    *("bilinear", "cosine_embedding_loss", "ctc_loss", "hinge_embedding_loss"),
    *("margin_ranking_loss", "poisson_nll_loss", "rms_norm", "rrelu", "triplet_margin_loss"),
    *("adaptive_max_pool1d",),
)
