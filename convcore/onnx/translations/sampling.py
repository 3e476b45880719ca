"""Pictures read at the points of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import convcore
from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import composes, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

_RENAMED = {"bilinear": "linear", "bicubic": "cubic"}  # in opset 20


@translates("grid_sample")
def _grid_sample(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> list[str]:
    if r.opset < (16 if input.ndim == 4 else 20):
        raise OnnxError("GridSample is in opset 16 and later, of volumes 20")
    return r.node(
        "GridSample",
        [r.name(input), r.name(grid)],
        mode=mode if r.opset < 20 else _RENAMED.get(mode, mode),
        padding_mode=padding_mode,
        align_corners=int(bool(align_corners)),
    )


@composes("affine_grid")
def _affine_grid(*, theta: Any, size: Any, align_corners: Any) -> Any:
    # The grid of the identity, with a column of ones, times the matrices of all pictures.
    sizes, rank = list(size)[2:], len(size) - 2
    identity = convcore.eye(rank, rank + 1, dtype=theta.dtype).unsqueeze(0)
    points = F.affine_grid(identity, [1, 1, *sizes], align_corners=bool(align_corners))
    points = points.reshape(-1, rank)
    places = convcore.cat([points, convcore.ones(len(points), 1, dtype=theta.dtype)], 1)
    return places.matmul(theta.transpose(1, 2)).reshape(-1, *sizes, rank)
