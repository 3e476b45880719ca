"""Elements read and added at indices along one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import as_dtype, composes, ints, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

# By the names that scatter and scatter_reduce have, those of ScatterElements, and its first opset.
_REDUCTIONS: dict[str | None, tuple[str, int]] = {
    None: ("none", 13),
    **{name: ("add", 16) for name in ("add", "sum")},
    **{name: ("mul", 16) for name in ("multiply", "prod")},
    "amax": ("max", 18),
    "amin": ("min", 18),
}


def _fits(input: Tensor, index: Tensor, dim: int) -> bool:
    """Return whether sizes beside an axis are equal: PyTorch cuts the input, ONNX does not."""
    axis = dim % max(input.ndim, 1)
    return all(
        n == m for k, (n, m) in enumerate(zip(input.shape, index.shape, strict=True)) if k != axis
    )


@translates("index_select")
def _index_select(r: Recorder, y: Any, *, input: Any, dim: int, index: Any) -> list[str]:
    return r.node("Gather", [r.name(input), r.name(index)], axis=dim % input.ndim)


@translates("gather")
def _gather(
    r: Recorder, y: Any, *, input: Any, dim: int, index: Any, sparse_grad: bool = False
) -> list[str]:
    if not _fits(input, index, dim):
        raise OnnxError("index has other sizes than input beside dim")
    return r.node("GatherElements", [r.name(input), r.name(index)], axis=dim % input.ndim)


@translates("take_along_dim")
def _take_along_dim(r: Recorder, y: Any, *, input: Any, indices: Any, dim: Any) -> list[str]:
    if dim is None:
        flat = [r.node("Reshape", [r.name(x), ints(r, [-1])])[0] for x in (input, indices)]
        return r.node("GatherElements", flat, axis=0)
    if not _fits(input, indices, dim):
        raise OnnxError("indices has other sizes than input beside dim")
    return r.node("GatherElements", [r.name(input), r.name(indices)], axis=dim % input.ndim)


@composes("take")
def _take(*, input: Any, index: Any) -> Any:
    return input.reshape(-1)[index]


def _scattered(
    r: Recorder, y: Any, input: Any, dim: int, index: Any, src: Any, reduce: str | None
) -> list[str]:
    if reduce not in _REDUCTIONS:
        raise OnnxError(f"reduce={reduce!r}")
    reduction, opset = _REDUCTIONS[reduce]
    if r.opset < opset:
        raise OnnxError(f"reduce={reduce!r} is in opset {opset} and later")
    options: dict[str, Any] = {} if reduction == "none" else {"reduction": reduction}
    names = [as_dtype(r, input, y.dtype), r.name(index), _updates(r, y, index, src)]
    return r.node("ScatterElements", names, axis=dim % y.ndim, **options)


def _updates(r: Recorder, y: Any, index: Any, src: Any) -> str:
    """Return the name of what is written at an index, of its shape."""
    if isinstance(src, Tensor) and src.ndim:
        if src.shape == index.shape:
            return as_dtype(r, src, y.dtype)
        ends = (ints(r, each) for each in ([0] * src.ndim, index.shape, range(src.ndim)))
        return r.node("Slice", [as_dtype(r, src, y.dtype), *ends])[0]
    number = as_dtype(r, src, y.dtype) if isinstance(src, Tensor) else r.number(src, y)
    return r.node("Expand", [number, *r.node("Shape", [r.name(index)])])[0]


@translates("scatter")
def _scatter(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    dim: int,
    index: Any,
    src: Any = None,
    value: Any = None,
    reduce: Any = None,
) -> list[str]:
    return _scattered(r, y, input, dim, index, value if src is None else src, reduce)


@translates("scatter_add")
def _scatter_add(r: Recorder, y: Any, *, input: Any, dim: int, index: Any, src: Any) -> list[str]:
    return _scattered(r, y, input, dim, index, src, "add")


@translates("scatter_reduce")
def _scatter_reduce(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    dim: int,
    index: Any,
    src: Any,
    reduce: str,
    include_self: bool = True,
) -> list[str]:
    if not include_self:
        raise OnnxError("include_self=False")
    return _scattered(r, y, input, dim, index, src, reduce)


def _along(r: Recorder, y: Any, index: Any, dim: int, like: str) -> str:
    """Return the name of an index (n,) as that of ScatterElements, of the shape of ``like``."""
    column = ints(r, [-1 if axis == dim % y.ndim else 1 for axis in range(y.ndim)])
    shaped = r.node("Reshape", [r.name(index), column])
    return r.node("Expand", [*shaped, *r.node("Shape", [like])])[0]


@translates("index_add")
def _index_add(
    r: Recorder, y: Any, *, input: Any, dim: int, index: Any, source: Any, alpha: Any = 1
) -> list[str]:
    if r.opset < 16:
        raise OnnxError("it needs opset 16 or later")
    update = as_dtype(r, source, y.dtype)
    if alpha != 1:
        (update,) = r.node("Mul", [update, r.number(alpha, y)])
    names = [as_dtype(r, input, y.dtype), _along(r, y, index, dim, update), update]
    return r.node("ScatterElements", names, axis=dim % y.ndim, reduction="add")


@translates("one_hot")
def _one_hot(r: Recorder, y: Any, *, input: Any, num_classes: int) -> list[str]:
    if num_classes < 0:
        raise OnnxError("the number of classes depends on the input; give num_classes")
    depth, values = r.constant(num_classes, np.int64), ints(r, [0, 1])
    return r.node("OneHot", [r.name(input), depth, values], axis=-1)
