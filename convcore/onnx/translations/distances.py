"""Norms, distances and what is divided by them."""

from __future__ import annotations

import math
from typing import Any

import convcore
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import composes


def _power_norm(x: Any, p: float, dim: Any, keepdim: bool) -> Any:
    """Return the p-norm over one axis, several, or all (None)."""
    if dim is None or dim == ():
        dim = tuple(range(x.ndim))
    size = x.abs()
    if p == math.inf:
        return size.amax(dim, keepdim)
    if p == -math.inf:
        return size.amin(dim, keepdim)
    if p == 0:
        return (x != 0).to(x.dtype).sum(dim, keepdim)
    if p == 1:
        return size.sum(dim, keepdim)
    if p == 2:
        return (x * x).sum(dim, keepdim).sqrt()
    return (size**p).sum(dim, keepdim) ** (1 / p)


@composes("norm")
def _norm(*, dim: Any = None, keepdim: bool = False, dtype: Any = None, **others: Any) -> Any:
    # torch.norm has the arguments input and p, torch.linalg.norm A and ord.
    x = others["input"] if "input" in others else others["A"]
    order = others.get("p", others.get("ord"))
    x = x if dtype is None else x.to(dtype)
    axes = 1 if isinstance(dim, int) else len(x.shape if dim is None else dim)
    if order in ("fro", None) or ("p" in others and not isinstance(order, str)):
        return _power_norm(x, 2 if order in ("fro", None) else order, dim, keepdim)
    if axes != 1 or isinstance(order, str):
        raise OnnxError(f"the matrix norm {order!r}")
    return _power_norm(x, order, dim, keepdim)


@composes("vector_norm")
def _vector_norm(*, x: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return _power_norm(x if dtype is None else x.to(dtype), ord, dim, keepdim)


@composes("matrix_norm")
def _matrix_norm(*, A: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if ord != "fro":
        raise OnnxError(f"the matrix norm {ord!r}")
    return _power_norm(A if dtype is None else A.to(dtype), 2, dim, keepdim)


@composes("normalize")
def _normalize(*, input: Any, p: float, dim: Any, eps: float) -> Any:
    return input / _power_norm(input, p, dim, True).clamp(min=eps)


@composes("cosine_similarity")
def _cosine_similarity(*, x1: Any, x2: Any, dim: int, eps: float) -> Any:
    # Where one has fewer axes, dim is one of the result's.
    rank = max(x1.ndim, x2.ndim)
    axis = dim - rank if dim >= 0 else dim
    sizes = [_power_norm(x, 2, axis, True).clamp(min=eps) for x in (x1, x2)]
    return (x1 / sizes[0] * (x2 / sizes[1])).sum(axis)


@composes("pairwise_distance")
def _pairwise_distance(*, x1: Any, x2: Any, p: float, eps: float, keepdim: bool) -> Any:
    return _power_norm(x1 - x2 + eps, p, -1, keepdim)


@composes("cdist")
def _cdist(*, x1: Any, x2: Any, p: float, **_: Any) -> Any:
    return _power_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1, False)


@composes("dist")
def _dist(*, input: Any, other: Any, p: float) -> Any:
    return _power_norm(input - other, p, None, False)


def _reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


@composes("mse_loss")
def _mse_loss(*, input: Any, target: Any, reduction: str, weight: Any = None, **older: Any) -> Any:
    return _plain_loss((input - target).square(), reduction, weight, older)


@composes("l1_loss")
def _l1_loss(*, input: Any, target: Any, reduction: str, weight: Any = None, **older: Any) -> Any:
    return _plain_loss((input - target).abs(), reduction, weight, older)


def _plain_loss(loss: Any, reduction: str, weight: Any, older: dict[str, Any]) -> Any:
    if weight is not None or any(each is not None for each in older.values()):
        raise OnnxError("with weight, size_average or reduce")
    return _reduced(loss, reduction)


@composes("binary_cross_entropy_with_logits")
def _logits_loss(
    *, input: Any, target: Any, reduction: str, weight: Any, pos_weight: Any, **older: Any
) -> Any:
    if pos_weight is not None:
        raise OnnxError("with pos_weight")
    loss = convcore.nn.functional.softplus(input) - input * target
    return _plain_loss(loss, reduction, weight, older)
