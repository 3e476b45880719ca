"""Pictures of feature maps, and of the kernels that make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convcore.inspection.pictures._drawing import array_of, figure_of, tiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 8


def feature_maps(
    maps: Any, *, most: int = 32, one_scale: bool = True, title: str = "", figure: Any = None
) -> Figure:
    """Draw a layer's feature maps, numbered by channel.

    Parameters
    ----------
    maps : (C, H, W), or (N, C, H, W) of which the first image is drawn
        Such as ``found["layer1"]`` of `capture`.
    most : int
        Channels that are drawn, the first ones.
    one_scale : bool
        Whether all maps have one scale of colours, which shows how strong they are beside one
        another; False gives each its own.
    title : str
        Whose maps they are, such as the layer's name: shown before their number.
    figure : Figure, optional
        What is drawn into; by default a new one.

    Raises
    ------
    TypeError, ValueError
        ``maps`` are no such numbers, or ``most`` is below 1.
    ImportError
        matplotlib is not installed.

    Examples
    --------
    >>> import convcore
    >>> from convcore.inspection import pictures
    >>> pictures.feature_maps(convcore.rand(1, 6, 8, 8)).savefig("maps.png")  # doctest: +SKIP
    """
    images = array_of(maps, "maps", (3, 4))
    images = images[0] if images.ndim == 4 else images
    shown = images[: _checked(most)]
    columns, rows = _grid(len(shown))
    drawn = figure_of(figure, 1.1 * columns + 1, 1.2 * rows + 0.5)
    _, height, width = images.shape
    numbers = f"{len(shown)} of {len(images)} feature maps of {height} x {width}"
    drawn.suptitle(_titled(title, numbers))
    tiles(drawn, shown, columns, one_scale, cmap="viridis")
    return drawn


def kernels(
    weight: Any, *, channel: int = 0, most: int = 32, title: str = "", figure: Any = None
) -> Figure:
    """Draw a convolution's kernels: in colours where it takes 3 channels, else one channel of them.

    Parameters
    ----------
    weight : (O, C, KH, KW)
        Such as ``net.conv1.weight``.
    channel : int
        The input channel that is drawn where there are others than 3.
    most : int
        Kernels that are drawn, the first ones.
    title : str
        Whose kernels they are: shown before their number.
    figure : Figure, optional
        What is drawn into; by default a new one.

    Raises
    ------
    TypeError, ValueError
        ``weight`` is no such tensor, has no such channel, or ``most`` is below 1.
    ImportError
        matplotlib is not installed.

    Notes
    -----
    0 is in the middle of the scale: white, or grey in colours.
    """
    all_of = array_of(weight, "weight", (4,))
    shown, channels = all_of[: _checked(most)], all_of.shape[1]
    if not 0 <= channel < channels:
        raise ValueError(f"channel must be from 0 to {channels - 1}, got {channel}")
    largest = float(np.nanmax(np.abs(shown))) or 1.0
    columns, rows = _grid(len(shown))
    drawn = figure_of(figure, 0.9 * columns + 1, rows + 0.5)
    numbers = f"{len(shown)} of {len(all_of)} kernels of {all_of.shape[2]} x {all_of.shape[3]}"
    if channels == 3:
        drawn.suptitle(_titled(title, f"{numbers}, as colours; grey is 0"))
        tiles(drawn, 0.5 + 0.5 * shown.transpose(0, 2, 3, 1) / largest, columns, True)
    else:
        drawn.suptitle(_titled(title, f"{numbers}, input channel {channel} of {channels}"))
        scale = {"vmin": -largest, "vmax": largest, "cmap": "RdBu_r"}
        tiles(drawn, shown[:, channel], columns, True, **scale)
    return drawn


def _titled(title: str, numbers: str) -> str:
    return f"{title}: {numbers}" if title else numbers


def _checked(most: int) -> int:
    if most < 1:
        raise ValueError(f"most must be above 0, got {most}")
    return most


def _grid(count: int) -> tuple[int, int]:
    columns = min(count, _COLUMNS)
    return columns, -(-count // columns)
