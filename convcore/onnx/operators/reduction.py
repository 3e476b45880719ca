"""Reductions, the largest and smallest, running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import convcore
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import (
    Value,
    array_of,
    axis_of,
    by_numpy,
    integers,
    is_differentiable,
    value_of,
)


def _product(x: Value, axes: tuple[int, ...], keepdim: bool) -> Value:
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdim=keepdim)
    return x


def _log_sum_exp(x: Value, axes: tuple[int, ...], keepdim: bool) -> Value:
    return convcore.logsumexp(x, axes, keepdim)


# Of floats, of arrays of other numbers.
_REDUCTIONS: dict[str, tuple[Callable[..., Value], Callable[..., Any]]] = {
    "ReduceL1": (lambda x, a, k: x.abs().sum(a, keepdim=k), lambda x, **o: np.abs(x).sum(**o)),
    "ReduceL2": (
        lambda x, a, k: (x * x).sum(a, keepdim=k).sqrt(),
        lambda x, **o: np.sqrt((x.astype(float) ** 2).sum(**o)),
    ),
    "ReduceLogSum": (lambda x, a, k: x.sum(a, keepdim=k).log(), lambda x, **o: np.log(x.sum(**o))),
    "ReduceLogSumExp": (_log_sum_exp, lambda x, **o: np.log(np.exp(x.astype(float)).sum(**o))),
    "ReduceMax": (lambda x, a, k: x.amax(a, keepdim=k), lambda x, **o: x.max(**o)),
    "ReduceMean": (lambda x, a, k: x.mean(a, keepdim=k), lambda x, **o: x.mean(**o)),
    "ReduceMin": (lambda x, a, k: x.amin(a, keepdim=k), lambda x, **o: x.min(**o)),
    "ReduceProd": (_product, lambda x, **o: x.prod(**o)),
    "ReduceSum": (lambda x, a, k: x.sum(a, keepdim=k), lambda x, **o: x.sum(**o)),
    "ReduceSumSquare": (lambda x, a, k: (x * x).sum(a, keepdim=k), lambda x, **o: (x * x).sum(**o)),
}


def _of_nothing(name: str, dtype: np.dtype) -> Any:
    """Return what a reduction over no element gives, None where the sum's way gives it."""
    largest = np.inf if dtype.kind == "f" else (dtype.kind == "b" or np.iinfo(dtype).max)
    least = -np.inf if dtype.kind == "f" else (dtype.kind != "b" and np.iinfo(dtype).min)
    values = {
        "ReduceMax": least,
        "ReduceMin": largest,
        "ReduceLogSum": -np.inf,
        "ReduceLogSumExp": -np.inf,
    }
    return values.get(name)


def _enter(name: str, function: Callable[..., Value], numpy: Callable[..., Any]) -> None:
    @operator(name, folds=True)
    def reduce(
        x: Value,
        which: Value = None,
        *,
        axes: list[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Value:
        chosen = integers(which) if which is not None else axes
        if not chosen and noop_with_empty_axes:
            numbers: tuple[int, ...] = ()
            if name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"):
                return x
        else:
            numbers = tuple(axis_of(a, x.ndim) for a in chosen) if chosen else tuple(range(x.ndim))
        if is_differentiable(x) and x.numel():
            if not numbers:  # of each element by itself
                return function(x.unsqueeze(-1), (x.ndim,), False)
            return function(x, numbers, bool(keepdims))
        array, special = array_of(x), None
        if numbers and 0 in [x.shape[a] for a in numbers]:
            special = _of_nothing(name, array.dtype)
        if special is not None:
            sizes = [
                1 if a in numbers else n
                for a, n in enumerate(x.shape)
                if keepdims or a not in numbers
            ]
            return value_of(np.full(sizes, special, array.dtype))
        result = by_numpy(numpy)(x, axis=numbers, keepdims=bool(keepdims))
        return result.to(x.dtype)


for _name, _functions in _REDUCTIONS.items():
    _enter(_name, *_functions)


def _enter_arg(name: str, numpy: Callable[..., Any]) -> None:
    def place(x: np.ndarray, axis: int, keepdims: int, last: int) -> np.ndarray:
        found = numpy(np.flip(x, axis), axis) if last else numpy(x, axis)
        found = x.shape[axis] - 1 - found if last else found
        return np.asarray(np.expand_dims(found, axis) if keepdims else found, np.int64)

    @operator(name)
    def arg(x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
        return by_numpy(place)(x, axis=axis, keepdims=keepdims, last=select_last_index)


_enter_arg("ArgMax", np.argmax)
_enter_arg("ArgMin", np.argmin)


@operator("TopK")
def top_k(
    x: Value,
    count: Value = None,
    *,
    axis: int = -1,
    k: int | None = None,
    largest: int = 1,
    sorted: int = 1,
) -> tuple[Value, Value]:
    """Return the k largest or smallest along an axis, and where they are; of equals the first."""
    number = integers(count)[0] if count is not None else int(k or 0)
    array = x.detach().numpy()
    if largest:  # from behind, so that of equals the first is the first
        order = (
            array.shape[axis]
            - 1
            - np.flip(np.argsort(np.flip(array, axis), axis, kind="stable"), axis)
        )
    else:
        order = np.argsort(array, axis, kind="stable")
    places = convcore.from_numpy(
        np.ascontiguousarray(np.take(order, range(number), axis), dtype=np.int64)
    )
    return x.gather(axis, places), places


def _running(
    function: Callable[..., Value], numpy: Callable[..., Any], start: int
) -> Callable[..., Value]:
    def compute(x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
        along = integers(axis)[0]
        x = x.flip(along) if reverse else x
        if exclusive:
            first = x.narrow(along, 0, min(1, x.shape[along]))
            x = convcore.cat(
                (convcore.full_like(first, start), x.narrow(along, 0, x.shape[along] - 1)), along
            )
        y = (
            function(x, along)
            if is_differentiable(x)
            else by_numpy(numpy)(x, axis=along).to(x.dtype)
        )
        return y.flip(along) if reverse else y

    return compute


operator("CumSum")(_running(convcore.cumsum, np.cumsum, 0))
operator("CumProd")(_running(convcore.cumprod, np.cumprod, 1))
