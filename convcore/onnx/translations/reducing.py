"""Axes reduced to one value, and running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import convcore
from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import as_dtype, as_list, cast, composes, ints, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _axes(input: Tensor, dim: Any) -> list[int]:
    if dim is None or dim == ():
        return list(range(input.ndim))
    return [axis % max(input.ndim, 1) for axis in as_list(dim, 1)]


def _reduced(
    r: Recorder, op: str, name: str, axes: list[int], keepdim: bool, since: int = 18
) -> list[str]:
    """Reduce axes, which are an input of the node since an opset, and an attribute before."""
    if r.opset >= since:
        return r.node(op, [name, ints(r, axes)], keepdims=int(keepdim))
    return r.node(op, [name], axes=axes, keepdims=int(keepdim))


def _enter_reduction(name: str, op: str, since: int = 18) -> None:
    @translates(name)
    def reduced(
        r: Recorder,
        y: Any,
        *,
        input: Any,
        dim: Any = None,
        keepdim: bool = False,
        dtype: Any = None,
    ) -> list[str]:
        name = as_dtype(r, input, y.dtype)
        return _reduced(r, op, name, _axes(input, dim), keepdim, since)


_enter_reduction("mean", "ReduceMean")
_enter_reduction("amax", "ReduceMax")
_enter_reduction("amin", "ReduceMin")
_enter_reduction("logsumexp", "ReduceLogSumExp")
_enter_reduction("sum", "ReduceSum", since=13)


@translates("prod")
def _prod(
    r: Recorder, y: Any, *, input: Any, dim: Any, keepdim: bool, dtype: Any = None
) -> list[str]:
    name = as_dtype(r, input, y.dtype)
    return _reduced(r, "ReduceProd", name, _axes(input, dim), keepdim)


# --- extremes ------------------------------------------------------------------------------------


def _enter_extreme(name: str, both: str) -> None:
    reduce, find = f"Reduce{name.title()}", f"Arg{name.title()}"

    @translates(name)
    def extreme(
        r: Recorder, y: Any, *, input: Any, dim: Any, keepdim: bool, other: Any = None
    ) -> list[str]:
        # The second argument of max and min is an axis or another tensor.
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            with r.composing():
                return [r.name(getattr(convcore, both)(input, other))]
        values = _reduced(r, reduce, r.name(input), _axes(input, dim), keepdim)
        return values if dim is None else [*values, *_place(r, find, input, dim, keepdim)]

    @translates(f"arg{name}")
    def place(r: Recorder, y: Any, *, input: Any, dim: Any, keepdim: bool) -> list[str]:
        if dim is None and keepdim:
            raise OnnxError("keepdim=True without dim")
        return _place(r, find, input, dim, keepdim)


def _place(r: Recorder, op: str, input: Tensor, dim: Any, keepdim: bool) -> list[str]:
    if dim is None:
        flat = r.node("Reshape", [r.name(input), ints(r, [-1])])
        return r.node(op, flat, axis=0, keepdims=0)
    return r.node(op, [r.name(input)], axis=dim % input.ndim, keepdims=int(keepdim))


_enter_extreme("max", "maximum")
_enter_extreme("min", "minimum")


@composes("aminmax")
def _aminmax(*, input: Any, dim: Any, keepdim: bool) -> Any:
    axes = tuple(range(input.ndim)) if dim is None else dim
    return input.amin(axes, keepdim), input.amax(axes, keepdim)


# --- counts and truth ----------------------------------------------------------------------------


def _numbers(input: Tensor) -> Any:
    """Return 1 where an element is not 0, and 0 where it is."""
    return (input != 0).to(convcore.int32)


@composes("any")
def _any(*, input: Any, dim: Any, keepdim: bool) -> Any:
    axes = tuple(range(input.ndim)) if dim is None else dim
    return _numbers(input).amax(axes, keepdim).bool()


@composes("all")
def _all(*, input: Any, dim: Any, keepdim: bool) -> Any:
    axes = tuple(range(input.ndim)) if dim is None else dim
    return _numbers(input).amin(axes, keepdim).bool()


@composes("count_nonzero")
def _count_nonzero(*, input: Any, dim: Any) -> Any:
    return (input != 0).long().sum(dim)


# --- moments -------------------------------------------------------------------------------------


def _count(r: Recorder, input: Tensor, axes: list[int]) -> list[str]:
    """Return how many elements there are along axes, whose sizes may be free."""
    shape = r.node("Shape", [r.name(input)])
    (sizes,) = r.node("Gather", [*shape, ints(r, axes)])
    count = _reduced(r, "ReduceProd", sizes, [0], False)
    return cast(r, input, *count)


def _moments(
    r: Recorder, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> tuple[list[str], list[str]]:
    """Return the variance and the mean."""
    axes, name = _axes(input, dim), r.name(input)
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    mean = _reduced(r, "ReduceMean", name, axes, True)
    apart = r.node("Sub", [name, *mean])
    (square,) = r.node("Mul", apart * 2)
    squares = _reduced(r, "ReduceMean", square, axes, keepdim)
    if correction:
        count = _count(r, input, axes)
        less = r.node("Sub", [*count, r.number(correction, input)])
        squares = r.node("Mul", [*squares, *r.node("Div", [*count, *less])])
    if not keepdim:
        mean = r.node("Squeeze", [*mean, ints(r, axes)])
    return squares, mean


def _enter_moments(name: str, root: bool) -> None:
    def spread(r: Recorder, input: Any, options: dict[str, Any]) -> tuple[list[str], list[str]]:
        if isinstance(options["dim"], bool):  # std(unbiased), without an axis
            options |= {"unbiased": options["dim"], "dim": None}
        variance, mean = _moments(r, input, **options)
        return (r.node("Sqrt", variance) if root else variance), mean

    @translates(name)
    def alone(r: Recorder, y: Any, *, input: Any, **options: Any) -> list[str]:
        return spread(r, input, options)[0]

    @translates(f"{name}_mean")
    def both(r: Recorder, y: Any, *, input: Any, **options: Any) -> list[str]:
        variance, mean = spread(r, input, options)
        return [*variance, *mean]


_enter_moments("var", False)
_enter_moments("std", True)


@composes("nansum")
def _nansum(*, input: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return input.masked_fill(input.isnan(), 0.0).sum(dim, keepdim, dtype=dtype)


@composes("nanmean")
def _nanmean(*, input: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    there = (~input.isnan()).to(input.dtype)
    total = input.masked_fill(input.isnan(), 0.0).sum(dim, keepdim, dtype=dtype)
    return total / there.sum(dim, keepdim, dtype=dtype)


# --- running sums --------------------------------------------------------------------------------


@translates("cumsum")
def _cumsum(r: Recorder, y: Any, *, input: Any, dim: int, dtype: Any = None) -> list[str]:
    axis = r.constant(dim % max(input.ndim, 1), "int64")
    return r.node("CumSum", [as_dtype(r, input, y.dtype), axis])
