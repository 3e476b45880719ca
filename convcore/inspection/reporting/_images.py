"""Small images in a page: feature maps, kernels, photographs and saliency maps, as PNG."""

from __future__ import annotations

import base64

import numpy as np

from convcore._tensor.html import png
from convcore.inspection._models import channel_axis
from convcore.inspection.reporting._text import number, safe

# Colours from dark blue through green to yellow, evenly apart in lightness.
_STOPS = (
    (40, 20, 80),
    (55, 70, 140),
    (35, 115, 140),
    (35, 155, 130),
    (110, 200, 85),
    (250, 230, 45),
)
_NAN = (230, 30, 40)
_BETWEEN_TILES = (128, 128, 128)
_GAP = 1  # pixels between tiles

# So many colours are told apart by no eye, and a page of 170 images has its palette 170 times.
_COLOURS = 62
_BETWEEN, _MISSING = _COLOURS, _COLOURS + 1


def _palette() -> np.ndarray:
    places = np.linspace(0, len(_STOPS) - 1, _COLOURS)
    channels = [np.interp(places, range(len(_STOPS)), stop) for stop in zip(*_STOPS, strict=True)]
    colours = np.rint(np.stack(channels, axis=1))
    return np.concatenate((colours, [_BETWEEN_TILES, _NAN])).astype(np.uint8)


_PALETTE = _palette()


class Image:
    """An image and what its colours mean."""

    def __init__(self, pixels: np.ndarray, caption: str, coloured: bool = True) -> None:
        palette = _PALETTE if coloured else None
        data = base64.b64encode(png(pixels, palette)).decode("ascii")
        self.source = f"data:image/png;base64,{data}"
        self.caption = caption
        self.rows, self.columns = pixels.shape[:2]

    def html(self, width: int) -> str:
        """Return a figure, enlarged by a whole factor up to a width in screen pixels."""
        zoom = max(1, width // self.columns)
        size = f'width="{self.columns * zoom}" height="{self.rows * zoom}"'
        caption = safe(self.caption)
        return (
            f'<figure><img {size} alt="{caption}" src="{self.source}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )


def _scaled(values: np.ndarray) -> tuple[np.ndarray, str]:
    """Return places in the palette, and the ends of the scale: 1st and 99th percentile."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.full(values.shape, _MISSING, np.uint8), "red: NaN or infinite, all of it"
    given = values[finite].astype(np.float64)
    least, most = (float(end) for end in np.percentile(given, (1, 99)))
    if least == most:
        least, most = float(given.min()), float(given.max())
    span = most - least or 1.0
    shares = (np.where(finite, values, least).astype(np.float64) - least) / span
    places = np.rint((_COLOURS - 1) * np.clip(shares, 0, 1)).astype(np.uint8)
    places[~finite] = _MISSING
    said = (
        f"dark {number(least)} or less to bright {number(most)} or more"
        if least != most
        else (f"all {number(least)}")
    )
    return places, said + ("" if finite.all() else "; red: NaN or infinite")


def _tiled(tiles: np.ndarray, columns: int) -> np.ndarray:
    """Return (N, H, W) beside and below one another, (rows, columns, 1)."""
    n, height, width = tiles.shape
    rows = -(-n // columns)
    sheet = np.full((rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP), _BETWEEN)
    for index, tile in enumerate(tiles):
        top, left = (index // columns) * (height + _GAP), (index % columns) * (width + _GAP)
        sheet[top : top + height, left : left + width] = tile
    return sheet.astype(np.uint8)[:, :, np.newaxis]


def _thinned(values: np.ndarray, most: int) -> np.ndarray:
    """Return every k-th row and column of (..., H, W), at most so many of either."""
    step = max(1, -(-max(values.shape[-2:]) // most))
    return values[..., ::step, ::step]


def maps(
    array: np.ndarray, most_pixels: int, shown: int = 12, what: str = "Feature maps"
) -> Image | None:
    """Return the first feature maps of the first image of (N, C, H, W); None of other shapes."""
    if array.ndim != 4 or not array.size or array.dtype.kind != "f" or array[0, 0].size < 4:
        return None
    first = _thinned(np.asarray(array[0, :shown]), most_pixels)
    places, said = _scaled(first)
    channels = f"channels 0 to {len(first) - 1}" if len(first) > 1 else "channel 0"
    caption = f"{what}: {channels} of {array.shape[1]}, row by row; {said}"
    return Image(_tiled(places, min(len(first), 6)), caption)


def kernels(weight: np.ndarray, shown: int = 16) -> Image | None:
    """Return the first kernels of a convolution, (O, C, KH, KW), or a matrix's first rows."""
    if weight.ndim != 4 or weight.dtype.kind != "f" or weight[0, 0].size < 4:
        return None
    if weight.shape[1] == 3:
        return _colour_kernels(weight[:shown])
    places, said = _scaled(weight[:shown, 0])
    of = f" at input channel 0 of {weight.shape[1]}" if weight.shape[1] > 1 else ""
    caption = f"Kernels: the first {len(places)} of {len(weight)}{of}; {said}"
    return Image(_tiled(places, min(len(places), 8)), caption)


def _colour_kernels(weight: np.ndarray) -> Image:
    finite = np.where(np.isfinite(weight), weight, 0).astype(np.float64)
    most = float(np.abs(finite).max()) or 1.0
    tiles = np.rint(127.5 + 127.5 * finite / most).astype(np.uint8)
    sheets = [_tiled(tiles[:, colour], min(len(tiles), 8)) for colour in range(3)]
    caption = (
        f"Kernels: the first {len(tiles)}, input channels as red, green and blue; grey is 0, "
        f"black \N{MINUS SIGN}{number(most)}, white {number(most)}"
    )
    return Image(np.concatenate(sheets, axis=2), caption, coloured=False)


def photograph(array: np.ndarray, what: str, most_pixels: int = 160) -> Image | None:
    """Return the first image of (N, 1 or 3, H, W) or (N, H, W, 1 or 3), from black to white."""
    if channel_axis(array.shape) == 3:
        array = array.transpose(0, 3, 1, 2)
    if array.ndim != 4 or array.shape[1] not in (1, 3) or array.dtype.kind != "f":
        return None
    values = np.nan_to_num(_thinned(array[0], most_pixels).astype(np.float64), posinf=0, neginf=0)
    least, most = float(values.min()), float(values.max())
    grey = np.rint(255 * (values - least) / ((most - least) or 1.0)).astype(np.uint8)
    caption = f"{what}: black is {number(least)}, white {number(most)}"
    return Image(grey.transpose(1, 2, 0), caption, coloured=False)


def heat(array: np.ndarray, what: str, most_pixels: int = 160) -> Image:
    """Return a map (H, W) in colours."""
    places, said = _scaled(_thinned(array, most_pixels))
    return Image(places[:, :, np.newaxis], f"{what}; {said}")
