"""What all pictures share: figures, arrays from tensors, tiles, and the ends of colour scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore._errors import hinted
from convcore._tensor import Tensor
from convcore._tensor.dtypes import FLOATING
from convcore.nn import Module

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_of(given: Any, width: float, height: float) -> Figure:
    """Return the figure to draw into: the given one, or a new one of this size in inches.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    if given is not None:
        return given
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'convcore[view]'") from error
    return Figure(figsize=(width, height), layout="constrained")


# What of a net is drawn under an argument's name.
_OF_A_NET = {
    "maps": "give what a layer puts out: inspection.capture keeps it",
    "weight": "give a layer's: net.conv1.weight",
}


def _one_of(value: Any, name: str) -> str:
    """Say which one to take of a net's tensors, or of a mapping of them by name."""
    if isinstance(value, Module):
        return _OF_A_NET.get(name, "")
    first = next(iter(value), "") if isinstance(value, Mapping) else ""
    return f"take one of what it holds: {name}[{first!r}]" if first else ""


def array_of(value: Any, name: str, ndims: tuple[int, ...]) -> np.ndarray:
    """Return a tensor or array as an array of floats.

    Raises
    ------
    TypeError, ValueError
        It is neither, not of real numbers, of another rank, or empty; ``name`` is the argument's.
    """
    array = np.asarray(value.detach()._array if isinstance(value, Tensor) else value)
    if array.dtype.kind not in f"{FLOATING}iub":
        kind = type(value).__name__ if array.dtype == object else array.dtype
        raise hinted(
            TypeError(f"{name} must be a tensor or array of numbers, got {kind}"),
            _one_of(value, name),
        )
    if array.ndim not in ndims or not array.size:
        ranks = " or ".join(map(str, ndims))
        raise ValueError(f"{name} must have {ranks} axes and elements, got shape {array.shape}")
    return array.astype(np.float32) if array.dtype.kind != "f" else array


def limits(values: np.ndarray) -> tuple[float, float]:
    """Return the least and the largest finite value, apart from one another; (0, 1) of none."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    least, most = float(finite.min()), float(finite.max())
    return (least, most) if least < most else (least, least + 1.0)


def tiles(figure: Figure, images: np.ndarray, columns: int, one_scale: bool, **shown: Any) -> None:
    """Draw (N, H, W), or (N, H, W, 3) in colours, in a grid, each under its number.

    A colour bar tells the scale that they have together; without ``one_scale`` each has its own.
    """
    rows = -(-len(images) // columns)
    grid = figure.subplots(rows, columns, squeeze=False)
    if one_scale and "vmin" not in shown:
        shown["vmin"], shown["vmax"] = limits(images)
    for ax in grid.flat:
        ax.set_axis_off()
    for number, (ax, image) in enumerate(zip(grid.flat, images, strict=False)):
        drawn = ax.imshow(image, interpolation="nearest", **shown)
        ax.set_title(f"{number}", fontsize=8, pad=2)
    if one_scale and images.ndim == 3:
        figure.colorbar(drawn, ax=grid, shrink=0.8, aspect=30)
