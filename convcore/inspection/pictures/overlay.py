"""Pictures of what a score depends on: an attribution beside and over its image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convcore.inspection.pictures._drawing import array_of, figure_of, limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PERCENTILE = 99  # the scale ends here: scaled to single pixels, the rest would be empty


def saliency_overlay(
    image: Any, attribution: Any, *, opacity: float = 0.6, figure: Any = None
) -> Figure:
    """Draw an image, an attribution of its pixels, and one over the other.

    Parameters
    ----------
    image : (C, H, W) or (1, C, H, W), C 1 or 3
        Scaled to black and white where it is not from 0 to 1.
    attribution : (C, H, W), (1, C, H, W) or (H, W)
        What `convcore.inspection.attribution` returns. Its channels are summed.
    opacity : float
        How much of the image the strongest attribution hides, from 0 to 1.
    figure : Figure, optional
        What is drawn into; by default a new one.

    Raises
    ------
    TypeError, ValueError
        The image is none, the attribution is of another size, or ``opacity`` not from 0 to 1.
    ImportError
        matplotlib is not installed.

    Notes
    -----
    Attributions with negative values are drawn in red and blue, 0 being white; others in one scale.
    The scale ends at the 99th percentile of the absolute values.
    """
    if not 0 <= opacity <= 1:
        raise ValueError(f"opacity must be from 0 to 1, got {opacity}")
    pixels = _pixels(image)
    shares = _shares(attribution)
    if shares.shape != pixels.shape[:2]:
        raise ValueError(
            f"attribution must be of the image's size {pixels.shape[:2]}, got {shares.shape}"
        )
    signed = bool((shares < 0).any())
    end = float(np.nanpercentile(np.abs(shares), _PERCENTILE)) or 1.0
    scale = {"vmin": -end if signed else 0.0, "vmax": end, "cmap": "RdBu_r" if signed else "magma"}
    drawn = figure_of(figure, 9, 3.4)
    left, middle, right = drawn.subplots(1, 3)
    left.imshow(pixels)
    left.set_title("image")
    shown = middle.imshow(shares, **scale)
    middle.set_title("attribution")
    right.imshow(pixels.mean(axis=2), cmap="gray", vmin=0, vmax=1)
    right.imshow(shares, alpha=opacity * np.clip(np.abs(shares) / end, 0, 1), **scale)
    right.set_title("over the image")
    for ax in (left, middle, right):
        ax.set_axis_off()
    drawn.colorbar(shown, ax=middle, shrink=0.7)
    return drawn


def _pixels(image: Any) -> np.ndarray:
    """Return an image as (H, W, 3) from 0 to 1."""
    array = array_of(image, "image", (3, 4))
    if array.ndim == 4 and len(array) == 1:
        array = array[0]
    if array.ndim != 3 or array.shape[0] not in (1, 3):
        raise ValueError(f"image must be one of 1 or 3 channels, got shape {array.shape}")
    least, most = limits(array)
    if least < 0 or most > 1:
        array = (array - least) / (most - least)
    return np.broadcast_to(array.transpose(1, 2, 0), (*array.shape[1:], 3))


def _shares(attribution: Any) -> np.ndarray:
    array = array_of(attribution, "attribution", (2, 3, 4))
    if array.ndim == 4 and len(array) == 1:
        array = array[0]
    if array.ndim == 4:
        raise ValueError(f"attribution must be of one image, got shape {array.shape}")
    return array.sum(axis=0) if array.ndim == 3 else array
