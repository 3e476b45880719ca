"""The photo demo's picture: photographs, filter responses and gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from convcore.demo.photo import Responses

_COLUMNS = 4
_SIGNED = "RdBu_r"
# The colour scale ends at this percentile: scaled to a few extreme pixels, the rest would be white.
_PERCENTILE = 99


@dataclass(frozen=True)
class Panel:
    """One image: colours (H, W, 3), or signed values (H, W) with their scale's name and filter."""

    title: str
    image: np.ndarray
    scale: str = ""
    kernel: np.ndarray | None = None


def panels(found: Responses) -> Iterator[Panel]:
    """Yield the panels: for each photograph itself, its responses and its gradient."""
    kernels = found.bank.weight.sum(axis=1)
    for index, name in enumerate(found.photographs.names):
        yield Panel(f"{name}: the photograph", found.photographs.pixels[index].transpose(1, 2, 0))
        for filter_index, title in enumerate(found.bank.titles):
            response = found.responses[index, filter_index]
            yield Panel(f"{name}: {title}", response, "response", kernels[filter_index])
        # The three colours' gradients differ by constant factors only: one sum shows them all.
        gradient = found.gradient[index].sum(axis=0)
        yield Panel(f"{name}: gradient of the energy", gradient, "d energy / d pixel")


def save_picture(found: Responses, file: Path) -> None:
    """Draw all panels and save them; the file's suffix is the format."""
    drawn = list(panels(found))
    rows = -(-len(drawn) // _COLUMNS)
    figure = Figure(figsize=(4.6 * _COLUMNS, 2.85 * rows + 0.7), layout="constrained")
    figure.suptitle(
        "Gabor and Sobel filters over photographs, and the gradient of the responses' energy "
        "(half the sum of squares) back to the pixels",
        fontsize=15,
    )
    axes = list(figure.subplots(rows, _COLUMNS, squeeze=False).flat)
    for ax, panel in zip(axes, drawn, strict=False):
        _draw(figure, ax, panel)
    for ax in axes[len(drawn) :]:
        ax.set_axis_off()
    figure.savefig(file, dpi=100)


def _draw(figure: Figure, ax: Axes, panel: Panel) -> None:
    ax.set_title(panel.title, fontsize=11)
    ax.set_xticks([])
    ax.set_yticks([])
    if panel.image.ndim == 3:
        ax.imshow(panel.image)
        return
    # Colours are centred on 0: white is no response, red and blue its sign.
    reach = float(np.percentile(np.abs(panel.image), _PERCENTILE)) or 1.0
    image = ax.imshow(panel.image, cmap=_SIGNED, vmin=-reach, vmax=reach)
    bar = figure.colorbar(image, ax=ax, shrink=0.85, pad=0.02, extend="both")
    bar.set_label(panel.scale, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    if panel.kernel is not None:
        _draw_kernel(ax, panel.kernel)


def _draw_kernel(ax: Axes, kernel: np.ndarray) -> None:
    """Draw a filter, enlarged, in the upper right corner of its response."""
    inset = ax.inset_axes((0.83, 0.74, 0.17, 0.26))
    reach = np.abs(kernel).max()
    inset.imshow(kernel, cmap=_SIGNED, vmin=-reach, vmax=reach)
    inset.set_xticks([])
    inset.set_yticks([])
