"""The digits demo's picture: a digit, its first feature maps, and its input gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from convcore.demo.digits import Look

_COLUMNS = 8  # of feature maps


def save_picture(found: Look, accuracy: float, file: Path) -> None:
    """Draw what the hooks captured and save it; the file's suffix is the format."""
    figure = Figure(figsize=(14, 7.2), layout="constrained")
    figure.suptitle(
        f"A net that reads {accuracy:.1%} of the digits it has not seen, reading one of them",
        fontsize=15,
    )
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1))
    left, middle, right = top.subplots(1, 3)
    _draw(figure, left, found.image, f"the input: a {found.label}, read as {found.answer}", "ink")
    _draw(
        *(figure, middle, found.gradient),
        "the gradient that flowed back to the input",
        f"d score of {found.label} / d pixel",
    )
    _draw_both(right, found)
    rows = -(-len(found.maps) // _COLUMNS)
    reach = np.abs(found.maps).max()
    bottom.suptitle(
        "the first convolution's feature maps, "
        f"from -{reach:.1f} (blue) over 0 (white) to {reach:.1f} (red)",
        fontsize=12,
    )
    for ax, channel in zip(bottom.subplots(rows, _COLUMNS).flat, found.maps, strict=False):
        ax.imshow(channel, cmap="RdBu_r", vmin=-reach, vmax=reach)
        _without_ticks(ax)
    figure.savefig(file, dpi=100)


def _draw(figure: Figure, ax: Axes, image: np.ndarray, title: str, scale: str) -> None:
    signed = image.min() < 0
    reach = np.abs(image).max() or 1.0
    drawn = ax.imshow(
        image, cmap="RdBu_r" if signed else "Greys", vmin=-reach if signed else 0, vmax=reach
    )
    figure.colorbar(drawn, ax=ax, shrink=0.85).set_label(scale)
    ax.set_title(title, fontsize=12)
    _without_ticks(ax)


def _draw_both(ax: Axes, found: Look) -> None:
    """Draw the gradient over the digit: ink raises the score at red, and lowers it at blue."""
    reach = np.abs(found.gradient).max() or 1.0
    ax.imshow(found.image, cmap="Greys", vmin=0, vmax=2)
    ax.imshow(found.gradient, cmap="RdBu_r", vmin=-reach, vmax=reach, alpha=0.5)
    ax.set_title(f"ink at red speaks for a {found.label}, at blue against", fontsize=12)
    _without_ticks(ax)


def _without_ticks(ax: Axes) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
