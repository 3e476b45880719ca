"""The digits demo's picture: a digit, its first feature maps, and its input gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from convcore.demo.digits import Look

_COLUMNS = 8  # of feature maps


def save_picture(found: Look, accuracy: float, one_scale: bool, file: Path) -> None:
    """Draw what the hooks captured and save it; the file's suffix is the format.

    one_scale : whether the feature maps have one scale of colours, or each its own
    """
    figure = Figure(figsize=(14, 7.2), layout="constrained")
    figure.suptitle(
        f"A net that reads {accuracy:.1%} of the digits it has not seen, and one of them",
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
    _draw_maps(bottom, found.maps, one_scale)
    figure.savefig(file, dpi=100)


def _draw_maps(figure: Figure, maps: np.ndarray, one_scale: bool) -> None:
    """Draw (channels, H, W) feature maps, numbered, with their colour bar or bars."""
    scale = "one scale" if one_scale else "each on a scale of its own"
    figure.suptitle(f"the first convolution's {len(maps)} feature maps, {scale}", fontsize=12)
    axes = figure.subplots(-(-len(maps) // _COLUMNS), _COLUMNS)
    reach = np.abs(maps).max()
    for number, (ax, channel) in enumerate(zip(axes.flat, maps, strict=False)):
        most = (reach if one_scale else np.abs(channel).max()) or 1.0
        drawn = ax.imshow(channel, cmap="RdBu_r", vmin=-most, vmax=most)
        ax.set_title(f"{number}", fontsize=9, pad=2)
        _without_ticks(ax)
        if not one_scale:
            bar = figure.colorbar(drawn, ax=ax, shrink=0.8, aspect=12, ticks=[-most, 0, most])
            bar.ax.set_yticklabels([f"{-most:.1f}", "0", f"{most:.1f}"], fontsize=7)
    if one_scale:
        figure.colorbar(drawn, ax=axes, shrink=0.85).set_label("output of the convolution")


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
