"""The maps demo's picture: a photograph and the inputs of a net's convolutions."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from convcore.demo.maps import SHOWN, Input, Sight

_COLUMNS = 3
_COLOURS = ("red", "green", "blue")


def save_picture(found: Sight, file: Path) -> None:
    """Draw the photograph and a block for each convolution; the file's suffix is the format."""
    rows = -(-(len(found.inputs) + 1) // _COLUMNS)
    figure = Figure(figsize=(5.4 * _COLUMNS, 4.1 * rows + 0.6), layout="constrained")
    figure.suptitle(
        f"The first {SHOWN} maps that each convolution of ResNet-18 is given, dark to bright from "
        "each map's least to its largest",
        fontsize=15,
    )
    blocks = figure.subfigures(rows, _COLUMNS, squeeze=False).flat
    ax = next(blocks).subplots()
    ax.imshow(found.photograph.transpose(1, 2, 0))
    ax.set_title("the photograph", fontsize=12)
    ax.set_axis_off()
    for block, one in zip(blocks, found.inputs, strict=False):
        _draw(block, one)
    figure.savefig(file, dpi=80)


def _draw(block: Figure, one: Input) -> None:
    channels, height, width = one.shape
    block.suptitle(f"{one.name}: {channels} maps of {height} x {width}", fontsize=12)
    side = round(SHOWN**0.5)
    axes = list(block.subplots(side, side).flat)
    for index, (ax, shown) in enumerate(zip(axes, one.maps, strict=False)):
        ax.imshow(shown, cmap="viridis", interpolation="nearest")
        if channels == len(_COLOURS):
            ax.set_title(_COLOURS[index], fontsize=9, pad=2)
    for ax in axes:
        ax.set_axis_off()
