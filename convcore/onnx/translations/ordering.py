"""Sorted values, the largest of them, and their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convcore.onnx.translation import composes, ints, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _picked(r: Recorder, input: Any, count: str, dim: int, largest: bool) -> list[str]:
    names = [r.name(input), count]
    return r.node("TopK", names, count=2, axis=dim % input.ndim, largest=int(largest), sorted=1)


@translates("topk")
def _topk(
    r: Recorder, y: Any, *, input: Any, k: int, dim: int, largest: bool, sorted: bool
) -> list[str]:
    return _picked(r, input, ints(r, [k]), dim, largest)


def _sorted(r: Recorder, input: Any, dim: int, descending: bool) -> list[str]:
    shape = r.node("Shape", [r.name(input)])
    (size,) = r.node("Gather", [*shape, ints(r, [dim % input.ndim])])
    return _picked(r, input, size, dim, descending)


@translates("sort")
def _sort(
    r: Recorder, y: Any, *, input: Any, dim: int, descending: bool, stable: bool
) -> list[str]:
    return _sorted(r, input, dim, descending)


@translates("argsort")
def _argsort(
    r: Recorder, y: Any, *, input: Any, dim: int, descending: bool, stable: bool
) -> list[str]:
    return _sorted(r, input, dim, descending)[1:]


@composes("kthvalue")
def _kthvalue(*, input: Any, k: int, dim: int, keepdim: bool) -> Any:
    found = [each.narrow(dim, k - 1, 1) for each in input.topk(k, dim, largest=False)]
    return tuple(found if keepdim else [each.squeeze(dim) for each in found])


@composes("median")
def _median(*, input: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        return input.reshape(-1).kthvalue((input.numel() + 1) // 2)[0]
    return input.kthvalue((input.shape[dim] + 1) // 2, dim, keepdim)
