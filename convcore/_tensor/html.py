"""How notebooks show a tensor: an image as an image, anything else as the text that prints.

Only a grid of at most `_SHOWN` by `_SHOWN` pixels is ever read, whatever the tensor's size.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from typing import Any

import numpy as np

_LEAST, _MOST = 8, 8192  # pixels a side of what may be an image
_SHOWN = 256  # pixels a side of what is shown
_WIDE = 128  # screen pixels a side that a smaller image is enlarged to
_LONGEST = 20_000  # characters of text


def tensor_html(tensor: Any) -> str:
    """Return the HTML that a notebook shows for a tensor.

    An image has 1 or 3 channels, before the rows and columns or behind them, and is of uint8, bool
    or finite floats.  Floats from 0 to 1 are shown as they are, others scaled to black and white.
    """
    text = repr(tensor)
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
    text = f"<pre>{html.escape(text)}</pre>"
    pixels = None if tensor.is_meta else _grid(tensor._array)
    shown = None if pixels is None else _as_bytes(pixels)
    if shown is None:
        return text
    grey, values = shown
    rows, columns = grey.shape[:2]
    zoom = max(1, _WIDE // max(rows, columns))
    caption = f"{type(tensor).__name__} of {list(tensor.shape)}, {tensor.dtype}{values}"
    source = base64.b64encode(png(grey)).decode("ascii")
    return (
        f'<img alt="{html.escape(caption)}" width="{columns * zoom}" height="{rows * zoom}" '
        f'style="image-rendering: pixelated" src="data:image/png;base64,{source}">'
        f"<details><summary>{html.escape(caption)}</summary>{text}</details>"
    )


def _grid(array: np.ndarray) -> np.ndarray | None:
    """Return the pixels to show, channels last; None of what does not look like an image."""
    if array.ndim != 3 or array.dtype.kind not in "ubfV" or array.dtype.itemsize > 8:
        return None
    if array.dtype.kind == "u" and array.dtype != np.uint8:
        return None
    if array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = array.transpose(1, 2, 0)
    rows, columns, channels = array.shape
    if channels not in (1, 3) or not _LEAST <= min(rows, columns) <= max(rows, columns) <= _MOST:
        return None
    step = -(-max(rows, columns) // _SHOWN)
    return array[::step, ::step]


def _as_bytes(pixels: np.ndarray) -> tuple[np.ndarray, str] | None:
    """Return pixels of 0 to 255, and what to say of their values; None if they are not finite."""
    if pixels.dtype == np.uint8:
        return pixels, ""
    if pixels.dtype == bool:
        return pixels.astype(np.uint8) * np.uint8(255), ""
    values = pixels.astype(np.float64)
    least, most = float(values.min()), float(values.max())
    if not np.isfinite([least, most]).all():
        return None
    scaled = least < 0 or most > 1
    if scaled:
        values = (values / 2 - least / 2) / max(most / 2 - least / 2, np.finfo(float).tiny)
    said = f", {least:.3g} to {most:.3g}{' scaled to black and white' if scaled else ''}"
    return np.rint(values * 255).astype(np.uint8), said


def png(pixels: np.ndarray, palette: np.ndarray | None = None) -> bytes:
    """Return a PNG file of uint8 pixels, (rows, columns, 1 or 3).

    With a palette, uint8 (up to 256, 3), pixels of 1 channel are the places of their colours in it.
    """
    rows, columns, channels = pixels.shape
    lines = np.zeros((rows, 1 + columns * channels), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = pixels.reshape(rows, -1)
    kind = 3 if palette is not None else 0 if channels == 1 else 2
    head = struct.pack(">IIBBBBB", columns, rows, 8, kind, 0, 0, 0)
    colours = [] if palette is None else [(b"PLTE", palette.tobytes())]
    packed = zlib.compress(lines.tobytes(), 9)
    chunks = ((b"IHDR", head), *colours, (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
