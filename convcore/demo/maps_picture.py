"""The maps demo's picture: a photograph and the inputs of a net's convolutions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from convcore.demo.maps import SHOWN, Input, Sight

_COLUMNS = 3
_COLOURS = ("red", "green", "blue")


def save_picture(found: Sight, net: str, one_scale: bool, file: Path) -> None:
    """Draw the photograph and a block for each convolution; the file's suffix is the format.

    Parameters
    ----------
    found : Sight
    net : str
        What the picture calls the net.
    one_scale : bool
        Whether a convolution's maps have one scale of colours, or each its own.
    file : Path
    """
    rows = -(-(len(found.inputs) + 1) // _COLUMNS)
    figure = Figure(figsize=(5.4 * _COLUMNS, 4.1 * rows + 0.6), layout="constrained")
    scale = "one scale a convolution" if one_scale else "each map on a scale of its own"
    figure.suptitle(
        f"The first {SHOWN} maps that each convolution is given, {scale}\n{net}", fontsize=15
    )
    blocks = figure.subfigures(rows, _COLUMNS, squeeze=False).flat
    ax = next(blocks).subplots()
    ax.imshow(found.photograph.transpose(1, 2, 0))
    ax.set_title("the photograph", fontsize=12)
    ax.set_axis_off()
    for number, (block, one) in enumerate(zip(blocks, found.inputs, strict=False), 1):
        _draw(block, number, one, one_scale)
    figure.savefig(file, dpi=80)


def _draw(block: Figure, number: int, one: Input, one_scale: bool) -> None:
    """Draw one convolution's block: its maps, numbered as its channels are."""
    channels, height, width = one.shape
    block.suptitle(f"{number}. {one.name}: {channels} maps of {height} x {width}", fontsize=12)
    side = round(SHOWN**0.5)
    axes = list(block.subplots(side, side).flat)
    limits = {"vmin": one.maps.min(), "vmax": one.maps.max()} if one_scale else {}
    for index, (ax, shown) in enumerate(zip(axes, one.maps, strict=False)):
        image = ax.imshow(shown, cmap="viridis", interpolation="nearest", **limits)
        colour = f" {_COLOURS[index]}" if channels == len(_COLOURS) else ""
        ax.set_title(f"{index}{colour}", fontsize=9, pad=2)
        if not one_scale:
            _draw_bar(block, image, [ax])
    for ax in axes:
        ax.set_axis_off()
    if one_scale:
        _draw_bar(block, image, axes)


def _draw_bar(block: Figure, image: AxesImage, axes: list[Axes]) -> None:
    """Draw a colour bar that names the two ends of the scale."""
    bar = block.colorbar(image, ax=axes, shrink=0.8, pad=0.02, aspect=12)
    ends = np.unique(image.get_clim())
    bar.set_ticks(ends, labels=[f"{end:.2g}" for end in ends])
    bar.ax.tick_params(labelsize=8, length=2)
