"""Shapes and dtypes: views, transposes, joined and split tensors, casts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from convcore.onnx.errors import OnnxError
from convcore.onnx.sizes import FreeSize, has_sizes
from convcore.onnx.translation import as_list, cast, ints, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _joins_first(old: Sequence[int], new: Sequence[int]) -> bool:
    """Return whether the first size is the product of several that were at the start."""
    products = [math.prod(old[:k]) for k in range(2, len(old) + 1)]
    return bool(new) and new[0] in products and new[0] != old[0]


def _splits_first(old: Sequence[int], new: Sequence[int]) -> bool:
    """Return whether the first size becomes several, and the last one stays."""
    return len(old) > 2 and new[0] not in (old[0], 1) and old[-1] == new[-1]


def _followed(r: Recorder, x: Any, given: Sequence[int]) -> list[int]:
    """Return sizes with 0 for free ones that an axis keeps, and -1 for the only other one."""
    sizes = list(given)
    free = [k for k, size in enumerate(sizes) if isinstance(size, FreeSize)]
    for k in [k for k in free if k < x.ndim and r.keeps(x, k, sizes[k])]:
        sizes[k] = 0
        free.remove(k)
    if len(free) == 1 and -1 not in sizes:
        sizes[free[0]] = -1
    return sizes


def _reshape(r: Recorder, y: Any, x: Any, given: Sequence[int]) -> list[str]:
    """Reshape; sizes at the start that are taken over, or joined to the first one, stay free."""
    sizes, kept = list(given), True
    if r.earlier:  # sizes that are free are known
        sizes = _followed(r, x, sizes)
    elif -1 not in sizes and _joins_first(x.shape, y.shape):
        sizes[0] = -1
    elif sizes[-1:] == [-1] and _splits_first(x.shape, y.shape) and not r.sizes_are_free:
        sizes[-1] = y.shape[-1]  # or it would take what another batch has more
    for axis, size in enumerate(y.shape):
        own = size if given[axis] == -1 else given[axis]
        kept = kept and axis < x.ndim and size != 0 and r.keeps(x, axis, own)
        if kept and sizes[axis] != -1:
            sizes[axis] = 0
    if 0 in y.shape:
        raise OnnxError(f"a reshape to {tuple(y.shape)}")
    return r.node("Reshape", [r.name(x), ints(r, sizes)])


@translates("view", "reshape")
def _view(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    size: Any = None,
    shape: Any = None,
    more: Any = (),
    dtype: Any = None,
) -> list[str]:
    if dtype is not None:
        raise OnnxError("a view as another dtype")
    first = size if shape is None else shape
    sizes = list(first) if isinstance(first, tuple | list) else [first, *more]
    return _reshape(r, y, input, sizes)


@translates("flatten")
def _flatten(r: Recorder, y: Any, *, input: Any, start_dim: int, end_dim: int) -> list[str]:
    if start_dim == 1 and end_dim in (-1, input.ndim - 1):
        return r.node("Flatten", [r.name(input)], axis=1)
    joined = start_dim % max(input.ndim, 1)
    sizes = r.sizes(input)
    after = sizes[end_dim % max(input.ndim, 1) + 1 :]
    return _reshape(r, y, input, [*sizes[:joined], -1, *after])


@translates("unflatten")
def _unflatten(r: Recorder, y: Any, *, input: Any, dim: int, sizes: Any) -> list[str]:
    own, axis = r.sizes(input), dim % input.ndim
    parts = sizes if has_sizes(sizes) else y.shape[axis : axis + y.ndim - input.ndim + 1]
    return _reshape(r, y, input, [*own[:axis], *parts, *own[axis + 1 :]])


@translates("permute")
def _permute(r: Recorder, y: Any, *, input: Any, dims: Any, more: Any = ()) -> list[str]:
    order = list(dims) if isinstance(dims, tuple | list) else [dims, *more]
    return r.node("Transpose", [r.name(input)], perm=[d % input.ndim for d in order])


@translates("transpose", "swapdims")
def _transpose(r: Recorder, y: Any, *, input: Any, dim0: int, dim1: int) -> list[str]:
    order = list(range(input.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return r.node("Transpose", [r.name(input)], perm=order)


@translates("t")
def _t(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return r.node("Transpose", [r.name(input)])


@translates("squeeze")
def _squeeze(r: Recorder, y: Any, *, input: Any, dim: Any, more: tuple[int, ...]) -> list[str]:
    axes = range(input.ndim) if dim is None else [*as_list(dim, 1), *more]
    gone = [a % input.ndim for a in axes if input.shape[a] == 1]
    return (
        r.node("Squeeze", [r.name(input), ints(r, gone)])
        if gone
        else r.node("Identity", [r.name(input)])
    )


@translates("unsqueeze")
def _unsqueeze(r: Recorder, y: Any, *, input: Any, dim: int) -> list[str]:
    return r.node("Unsqueeze", [r.name(input), ints(r, [dim])])


@translates("cat", "concat", "concatenate")
def _cat(r: Recorder, y: Any, *, tensors: Any, dim: int) -> list[str]:
    return r.node("Concat", [r.name(t) for t in tensors], axis=dim % y.ndim)


@translates("stack")
def _stack(r: Recorder, y: Any, *, tensors: Any, dim: int) -> list[str]:
    axis = ints(r, [dim % y.ndim])
    parts = [r.node("Unsqueeze", [r.name(t), axis])[0] for t in tensors]
    return r.node("Concat", parts, axis=dim % y.ndim)


@translates("split", "chunk", "tensor_split", "split_with_sizes")
def _split(r: Recorder, y: Any, /, *, dim: int, **arguments: Any) -> list[str]:
    x = next(iter(arguments.values()))
    sizes = ints(r, [part.shape[dim] for part in y])
    return r.node("Split", [r.name(x), sizes], count=len(y), axis=dim % x.ndim)


@translates("contiguous", "clone", "positive", "detach", "alias")
def _same(r: Recorder, y: Any, *, input: Any, memory_format: Any = None) -> list[str]:
    return r.node("Identity", [r.name(input)])


@translates(
    "to", "float", "double", "long", "int", "half", "type_as", "bool", "short", "char", "byte"
)
def _to(r: Recorder, y: Any, /, **arguments: Any) -> list[str]:
    return cast(r, y, r.name(next(iter(arguments.values()))))
