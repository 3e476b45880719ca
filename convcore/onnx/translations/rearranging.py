"""Elements in another order or shape, repeated, or some of them left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import convcore
from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.sizes import FreeSize
from convcore.onnx.translation import as_list, composes, ints, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def _all(first: Any, more: Sequence[Any]) -> list[Any]:
    """Return the arguments of f(1, 2) as of f((1, 2))."""
    return [*first, *more] if isinstance(first, tuple | list) else [first, *more]


# --- sizes of other tensors ----------------------------------------------------------------------


@translates("expand", "broadcast_to")
def _expand(
    r: Recorder, y: Any, *, input: Any, more: Sequence[Any] = (), **given: Any
) -> list[str]:
    # A size of 1 leaves the axis as it is, also one that is free.
    front = y.ndim - input.ndim
    kept = [1 if k >= front and n == input.shape[k - front] else n for k, n in enumerate(y.shape)]
    sizes = _all(next(iter(given.values())), more)
    kept = [n if isinstance(n, FreeSize) else own for n, own in zip(sizes, kept, strict=True)]
    return r.node("Expand", [r.name(input), ints(r, kept)])


@translates("expand_as")
def _expand_as(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    return r.node("Expand", [r.name(input), *r.node("Shape", [r.name(other)])])


@translates("view_as", "reshape_as")
def _view_as(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    return r.node("Reshape", [r.name(input), *r.node("Shape", [r.name(other)])])


@translates("broadcast_tensors")
def _broadcast_tensors(r: Recorder, y: Any, *, tensors: Any) -> list[str]:
    given = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    return [
        r.node("Expand", [r.name(each), ints(r, list(result.shape))])[0]
        for each, result in zip(given, y, strict=True)
    ]


@composes("ravel")
def _ravel(*, input: Any) -> Any:
    return input.reshape(-1)


# --- repeated ------------------------------------------------------------------------------------


def _tiled(r: Recorder, input: Any, repeats: list[int]) -> list[str]:
    names, more = [r.name(input)], len(repeats) - input.ndim
    if more > 0:
        names = r.node("Unsqueeze", [*names, ints(r, range(more))])
    return r.node("Tile", [*names, ints(r, [1] * -more + repeats)])


@translates("repeat")
def _repeat(r: Recorder, y: Any, *, input: Any, repeats: Any, more: Any = ()) -> list[str]:
    return _tiled(r, input, _all(repeats, more))


@translates("tile")
def _tile(r: Recorder, y: Any, *, input: Any, dims: Any, more: Any = ()) -> list[str]:
    return _tiled(r, input, _all(dims, more))


@translates("repeat_interleave")
def _repeat_interleave(
    r: Recorder, y: Any, *, input: Any, repeats: Any, dim: Any, output_size: Any = None
) -> list[str]:
    with r.composing():
        x, axis = (input.reshape(-1), 0) if dim is None else (input, dim % input.ndim)
    if not isinstance(repeats, Tensor) or repeats.numel() == 1:
        return _each_repeated(r, x, int(repeats), axis)
    if r.is_computed(repeats):
        raise OnnxError("as often as computed numbers say")
    places = np.repeat(np.arange(repeats.numel()), repeats.numpy())
    return r.node("Gather", [r.name(x), ints(r, places)], axis=axis)


def _each_repeated(r: Recorder, x: Tensor, count: int, axis: int) -> list[str]:
    """Repeat along a new axis, and join it to the one before, whose size may be free."""
    repeats = [count if k == axis + 1 else 1 for k in range(x.ndim + 1)]
    with r.composing():
        each = x.unsqueeze(axis + 1).repeat(repeats)
        joined = each.flatten(axis, axis + 1) if axis else each.reshape(-1, *x.shape[1:])
        return [r.name(joined)]


# --- moved ---------------------------------------------------------------------------------------


def _reversed(r: Recorder, input: Any, dims: Sequence[int]) -> list[str]:
    axes = [dim % input.ndim for dim in dims]
    limits = ([-1] * len(axes), [_FIRST] * len(axes), axes, [-1] * len(axes))
    return r.node("Slice", [r.name(input), *(ints(r, each) for each in limits)])


@translates("flip")
def _flip(r: Recorder, y: Any, *, input: Any, dims: Any, more: Any = ()) -> list[str]:
    return _reversed(r, input, _all(dims, more))


@translates("fliplr")
def _fliplr(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return _reversed(r, input, [1])


@translates("flipud")
def _flipud(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return _reversed(r, input, [0])


@composes("rot90")
def _rot90(*, input: Any, k: int, dims: Any) -> Any:
    first, second = dims
    if k % 4 == 0:
        return input * 1
    if k % 4 == 2:
        return input.flip(first, second)
    if k % 4 == 1:
        return input.flip(second).transpose(first, second)
    return input.flip(first).transpose(first, second)


@translates("roll")
def _roll(r: Recorder, y: Any, *, input: Any, shifts: Any, dims: Any = None) -> list[str]:
    amounts = as_list(shifts, 1)
    if dims is None or dims == ():
        flat = r.node("Reshape", [r.name(input), ints(r, [-1])])
        return r.node(
            "Reshape", [*_rolled(r, flat, 0, amounts[0], y.numel()), ints(r, r.sizes(input))]
        )
    names = [r.name(input)]
    for shift, dim in zip(amounts, as_list(dims, 1), strict=True):
        names = _rolled(r, names, dim % input.ndim, shift, input.shape[dim])
    return names


def _rolled(r: Recorder, names: list[str], axis: int, shift: int, size: int) -> list[str]:
    """Put the last values of an axis first; a shift below its size holds for every size."""
    if abs(shift) >= size:
        shift %= max(size, 1)
    if not shift:
        return r.node("Identity", names)
    parts = [
        r.node("Slice", [*names, *(ints(r, [each]) for each in (start, stop, axis))])[0]
        for start, stop in ((-shift, _LAST), (0, -shift))
    ]
    return r.node("Concat", parts, axis=axis)


@composes("movedim", "moveaxis")
def _movedim(*, input: Any, source: Any, destination: Any) -> Any:
    sources = [dim % input.ndim for dim in as_list(source, 1)]
    goals = [dim % input.ndim for dim in as_list(destination, 1)]
    order = [axis for axis in range(input.ndim) if axis not in sources]
    for goal, axis in sorted(zip(goals, sources, strict=True)):
        order.insert(goal, axis)
    return input.permute(order)


@composes("swapaxes")
def _swapaxes(*, input: Any, axis0: int, axis1: int) -> Any:
    return input.transpose(axis0, axis1)


@composes("adjoint")
def _adjoint(*, input: Any) -> Any:
    return input.transpose(-1, -2)


# --- parts ---------------------------------------------------------------------------------------


@translates("unbind")
def _unbind(r: Recorder, y: Any, *, input: Any, dim: int) -> list[str]:
    axis = dim % input.ndim
    parts = r.node("Split", [r.name(input), ints(r, [1] * len(y))], count=len(y), axis=axis)
    return [r.node("Squeeze", [part, ints(r, [axis])])[0] for part in parts]


@translates("narrow")
def _narrow(r: Recorder, y: Any, *, input: Any, dim: int, start: Any, length: int) -> list[str]:
    if isinstance(start, Tensor) and r.is_computed(start):
        raise OnnxError("from a computed start on")
    first, axis = start, dim % input.ndim
    if not isinstance(start, FreeSize):
        first = int(start) % max(input.shape[dim], 1)
    limits = (ints(r, [each]) for each in (first, first + length, axis))
    return r.node("Slice", [r.name(input), *limits])


@translates("select")
def _select(r: Recorder, y: Any, *, input: Any, dim: int, index: int) -> list[str]:
    return r.node("Gather", [r.name(input), r.constant(index, np.int64)], axis=dim % input.ndim)


def _enter_triangle(name: str, upper: int) -> None:
    @translates(name)
    def triangle(r: Recorder, y: Any, *, input: Any, diagonal: int = 0) -> list[str]:
        if r.opset < 14:
            raise OnnxError("Trilu is in opset 14 and later")
        return r.node("Trilu", [r.name(input), r.constant(diagonal, np.int64)], upper=upper)


_enter_triangle("tril", 0)
_enter_triangle("triu", 1)


@translates("diagonal")
def _diagonal(
    r: Recorder, y: Any, *, input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> list[str]:
    if r.sizes_are_free:
        raise OnnxError("where sizes are free")
    axes = [dim1 % input.ndim, dim2 % input.ndim]
    order = [*axes, *(k for k in range(input.ndim) if k not in axes)]
    steps = np.arange(y.shape[-1])
    places = np.stack([steps + max(-offset, 0), steps + max(offset, 0)], -1)
    turned = r.node("Transpose", [r.name(input)], perm=order)
    found = r.node("GatherND", [*turned, r.constant(places, np.int64)])
    return r.node("Transpose", found, perm=[*range(1, y.ndim), 0])


@composes("trace")
def _trace(*, input: Any) -> Any:
    return input.diagonal().sum()


# --- joined --------------------------------------------------------------------------------------


def _of_rank(x: Tensor, rank: int) -> Tensor:
    while x.ndim < rank:
        # One axis becomes a row, and two axes a picture of one channel behind them.
        x = x.unsqueeze(0) if x.ndim < 2 else x.unsqueeze(2)
    return x


def _enter_atleast(rank: int) -> None:
    @composes(f"atleast_{rank}d")
    def atleast(*, tensors: Any, more: Any) -> Any:
        if isinstance(tensors, Tensor) and not more:
            return _of_rank(tensors, rank)
        return tuple(_of_rank(x, rank) for x in _all(tensors, more))


for _rank in (1, 2, 3):
    _enter_atleast(_rank)


@composes("hstack")
def _hstack(*, tensors: Any) -> Any:
    parts = [_of_rank(x, 1) for x in tensors]
    return convcore.cat(parts, min(parts[0].ndim - 1, 1))


@composes("vstack", "row_stack")
def _vstack(*, tensors: Any) -> Any:
    return convcore.cat([_of_rank(x, 2) for x in tensors], 0)


@composes("dstack")
def _dstack(*, tensors: Any) -> Any:
    return convcore.cat([_of_rank(x, 3) for x in tensors], 2)


@composes("column_stack")
def _column_stack(*, tensors: Any) -> Any:
    return convcore.cat([x if x.ndim > 1 else x.reshape(-1, 1) for x in tensors], 1)


@composes("meshgrid")
def _meshgrid(*, tensors: Any, indexing: Any = None) -> Any:
    lines = list(tensors[0] if isinstance(tensors[0], tuple | list) else tensors)
    rank = len(lines)
    sizes = [line.numel() for line in lines]
    grids = [
        line.reshape([-1 if k == axis else 1 for k in range(rank)]).expand(sizes)
        for axis, line in enumerate(lines)
    ]
    return tuple(g.transpose(0, 1) for g in grids) if indexing == "xy" else tuple(grids)


# --- windows -------------------------------------------------------------------------------------


def _pair(value: Any) -> list[int]:
    return as_list(value, 2)


@composes("unfold")
def _unfold(*, input: Any, **options: Any) -> Any:
    if "kernel_size" not in options:
        return _windows(input, options)
    size, dilation, padding, stride = map(_pair, list(options.values())[:4])
    x = input if input.ndim == 4 else input.unsqueeze(0)
    x = convcore.nn.functional.pad(x, (padding[1],) * 2 + (padding[0],) * 2)
    rows, columns = map(_starts, x.shape[2:], size, dilation, stride)
    parts = [x[:, :, row, column].flatten(2) for row in rows for column in columns]
    windows = convcore.stack(parts, 2).flatten(1, 2)
    return windows if input.ndim == 4 else windows.squeeze(0)


def _starts(size: int, kernel: int, dilation: int, stride: int) -> list[slice]:
    """Return where the windows of an axis have their first elements, their second ones, ..."""
    last = (size - dilation * (kernel - 1) - 1) // stride * stride
    return [slice(k * dilation, k * dilation + last + 1, stride) for k in range(kernel)]


def _windows(input: Tensor, options: dict[str, int]) -> Tensor:
    """Return the windows of one axis, as Tensor.unfold does."""
    axis, size, step = options["dimension"] % input.ndim, options["size"], options["step"]
    starts = range(0, input.shape[axis] - size + 1, step)
    return convcore.stack([input.narrow(axis, k, size).movedim(axis, -1) for k in starts], axis)
